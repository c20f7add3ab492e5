package http2_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// A head larger than a frame goes out in several, with nothing in between.
func TestLargeRequestHead(t *testing.T) {
	p := newPeer(t, http2.Options{})
	req := request(t, "GET", "http://x.test/")
	req.Header = http.Header{"X-A": {strings.Repeat("\x7e", 50<<10)}}
	open(t, p.client, terms, req, 0)
	if got := p.headers(); len(got.fields["x-a"]) != 50<<10 || !got.end {
		t.Errorf("x-a of %d bytes, end %t", len(got.fields["x-a"]), got.end)
	}
}

// The last ids are not used: the connection is retired, its streams go on.
func TestStreamIDsRunOut(t *testing.T) {
	p := newPeer(t, http2.Options{})
	why := retirement(p.client)
	p.client.SkipStreams(http2.LastStreamID - 1)
	s, id := p.get()
	late := p.client.NewStream(terms)
	err := late.WriteRequestHeaders(request(t, "GET", "http://x.test/"), 0)
	var u *wire.UnprocessedError
	if !errors.As(err, &u) || !u.Shutdown || p.client.Reserve() {
		t.Errorf("a stream beyond: %v", err)
	}
	p.respond(id, true, ":status", "200")
	head(t, s)
	s.End()
	if !strings.Contains(why(), "stream ids") {
		t.Errorf("retired for %q", why())
	}
}

// A small request is one write, head and body, and its last frame ends it.
func TestSmallRequestIsOneWrite(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s := newStream(t, p.client, terms)
	s.WriteRequestHeaders(request(t, "POST", "http://x.test/"), 5)
	s.ReadFrom(strings.NewReader("hello"))
	if len(p.frames) > 0 {
		t.Errorf("the client sent %+v before the request was finished", p.next())
	}
	if err := s.FinishRequest(nil); err != nil {
		t.Fatal(err)
	}
	p.headers()
	if f := p.next(); f.data != "hello" || !f.end {
		t.Errorf("got %+v, want the body with END_STREAM", f)
	}
}

// Streams that wait for each other's readers do not hold each other up: twenty
// bodies opened at once and read one after the other.
func TestBodiesReadInTurn(t *testing.T) {
	const size = 8 << 20
	c := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		for chunk, n := make([]byte, 64<<10), 0; n < size; n += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	var bodies []io.Reader
	for i := range 20 {
		s := open(t, c, terms, request(t, "GET", fmt.Sprintf("http://x.test/%d", i)), 0)
		bodies = append(bodies, head(t, s).Body)
	}
	for i, body := range bodies {
		within(t, func() {
			if n, err := io.Copy(io.Discard, body); n != size || err != nil {
				t.Errorf("body %d: %d bytes, %v", i, n, err)
			}
		})
	}
}

// A head does not wait for a body that the server's window stops, nor for one
// that is being written.
func TestHeadsPassBodies(t *testing.T) {
	p := newPeer(t, http2.Options{}, xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 1 << 20})
	up, _ := p.post(-1)
	sent := make(chan error, 1)
	go func() { _, err := io.WriteString(up, strings.Repeat("x", 4<<20)); sent <- err }()
	for n := 0; n < 65535; n += len(p.next().data) {
	}
	p.works()
	p.grant(0, 8<<20)
	s := open(t, p.client, terms, request(t, "GET", "http://x.test/"), 0)
	id := p.headersPast()
	p.respond(id, true, ":status", "200")
	head(t, s)
	up.Cancel()
	if err := <-sent; err == nil {
		t.Error("a canceled upload does not fail")
	}
}
