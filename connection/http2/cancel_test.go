package http2_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/catena-http/catena/connection/http2"
	xhttp2 "golang.org/x/net/http2"
)

// Cancel wakes every wait at once and resets the stream, whatever the phase.
// Virtual time shows that no timer was needed.
func TestCancel(t *testing.T) {
	tests := map[string]struct {
		wait func(t *testing.T, p *peer, s *http2.Stream) error
		none bool // the stream was never opened, or it is over: no reset
	}{
		"before the request": {func(t *testing.T, p *peer, s *http2.Stream) error {
			s.Cancel()
			return s.WriteRequestHeaders(request(t, "GET", "http://x.test/"), 0)
		}, true},
		"in Write": {func(t *testing.T, p *peer, s *http2.Stream) error {
			start(t, p, s, -1)
			_, err := io.WriteString(s, large)
			return err
		}, false},
		"in FinishRequest": {func(t *testing.T, p *peer, s *http2.Stream) error {
			start(t, p, s, -1)
			if _, err := io.WriteString(s, strings.Repeat("x", 65535+100)); err != nil {
				return err
			}
			return s.FinishRequest(nil)
		}, false},
		"in AwaitResponse": {func(t *testing.T, p *peer, s *http2.Stream) error {
			start(t, p, s, 5)
			_, err := s.AwaitResponse(terms.ReadTimeout)
			return err
		}, false},
		"before the head": {func(t *testing.T, p *peer, s *http2.Stream) error {
			start(t, p, s, 0)
			_, err := s.ReadResponseHeaders(nil)
			return err
		}, false},
		"before the head, uploading": {func(t *testing.T, p *peer, s *http2.Stream) error {
			start(t, p, s, -1)
			_, err := s.ReadResponseHeaders(nil)
			return err
		}, false},
		"in the body": {func(t *testing.T, p *peer, s *http2.Stream) error {
			p.respond(start(t, p, s, 0), false, ":status", "200")
			_, err := io.ReadAll(head(t, s).Body)
			return err
		}, false},
		"in the body, uploading": {func(t *testing.T, p *peer, s *http2.Stream) error {
			p.respond(start(t, p, s, -1), false, ":status", "200")
			_, err := io.ReadAll(head(t, s).Body)
			return err
		}, false},
		"after the end": {func(t *testing.T, p *peer, s *http2.Stream) error {
			p.respond(start(t, p, s, 0), true, ":status", "200")
			head(t, s)
			s.Cancel()
			_, err := s.Write(nil)
			return err
		}, true},
	}
	for name, tt := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s := newStream(t, p.client, terms)
			spent := stopwatch()
			got := make(chan error, 1)
			go func() { got <- tt.wait(t, p, s) }()
			synctest.Wait()
			for range 3 {
				go s.Cancel()
			}
			err := <-got
			if name != "after the end" && (err == nil || !strings.Contains(err.Error(), "canceled")) {
				t.Errorf("error %v, want that of a canceled stream", err)
			}
			if d := spent(); d != 0 {
				t.Errorf("after %v, want at once", d)
			}
			s.End()
			synctest.Wait()
			if tt.none {
				for len(p.frames) > 0 {
					if f := p.next(); f.typ == xhttp2.FrameRSTStream {
						t.Errorf("got %+v, want none", f)
					}
				}
			} else if code := p.reset(1); code != xhttp2.ErrCodeCancel {
				t.Errorf("reset with %v, want CANCEL", code)
			}
			p.works()
		})
	}
}

// start opens s and returns its id.
func start(t *testing.T, p *peer, s *http2.Stream, size int64) uint32 {
	if err := errors.Join(s.WriteRequestHeaders(request(t, "POST", "http://x.test/"), size), s.Flush()); err != nil {
		t.Error(err)
		return 0
	}
	return p.headers().stream
}

// A stream that waits for the server's SETTINGS can be canceled.
func TestCancelWhileWaitingForSettings(t *testing.T) {
	bubble(t, "settings", func(t *testing.T) {
		p := newSilentPeer(t, http2.Options{})
		p.get()
		s := newStream(t, p.client, terms)
		got := make(chan error, 1)
		go func() { got <- s.WriteRequestHeaders(request(t, "GET", "http://x.test/"), 0) }()
		synctest.Wait()
		spent := stopwatch()
		s.Cancel()
		if err := <-got; err == nil || !strings.Contains(err.Error(), "canceled") {
			t.Errorf("error %v", err)
		}
		if s.Written() || spent() != 0 {
			t.Errorf("Written %t after %v", s.Written(), spent())
		}
	})
}

// End and the body's Close reset what is unfinished, once.
func TestEndResets(t *testing.T) {
	tests := map[string]func(t *testing.T, p *peer, s *http2.Stream){
		"End before the head": func(t *testing.T, p *peer, s *http2.Stream) {
			start(t, p, s, 0)
			s.End()
		},
		"End in the upload": func(t *testing.T, p *peer, s *http2.Stream) {
			start(t, p, s, -1)
			s.End()
		},
		"Close in the body": func(t *testing.T, p *peer, s *http2.Stream) {
			p.respond(start(t, p, s, 0), false, ":status", "200")
			body := head(t, s).Body
			body.Close()
			body.Close()
			s.End()
		},
		"Close in the upload": func(t *testing.T, p *peer, s *http2.Stream) {
			id := start(t, p, s, -1)
			p.respond(id, false, ":status", "200")
			p.data(id, true, "data")
			body := head(t, s).Body
			io.ReadAll(body)
			body.Close()
			if _, err := io.WriteString(s, "more"); err == nil {
				t.Error("a Write after Close does not fail")
			}
			s.End()
		},
	}
	for name, f := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s := newStream(t, p.client, terms)
			f(t, p, s)
			s.End()
			p.reset(1)
			synctest.Wait()
			if len(p.frames) > 0 {
				t.Errorf("then got %+v", p.next())
			}
			p.works()
		})
	}
}

// A Close wakes the Read beside it.
func TestCloseBesideRead(t *testing.T) {
	bubble(t, "close", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		s, id := p.get()
		p.respond(id, false, ":status", "200")
		body := head(t, s).Body
		got := make(chan error, 1)
		go func() { _, err := body.Read(make([]byte, 1)); got <- err }()
		synctest.Wait()
		spent := stopwatch()
		body.Close()
		if err := <-got; err == nil || err == io.EOF || spent() != 0 {
			t.Errorf("error %v after %v", err, spent())
		}
	})
}

// What is left unread gives its share of the connection's window back, so that
// closing bodies early starves nobody.
func TestUnreadBodiesLeaveTheWindow(t *testing.T) {
	const bodies, chunks, chunk = 20, 16, 16 << 10
	bubble(t, "window", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		synctest.Wait()
		before := p.credit.Load()
		for range bodies {
			s, id := p.get()
			p.respond(id, false, ":status", "200")
			resp := head(t, s)
			for range chunks {
				p.data(id, false, strings.Repeat("x", chunk))
			}
			resp.Body.Close()
			s.End()
			p.reset(id)
		}
		synctest.Wait()
		if got, want := p.credit.Load()-before, int64(bodies*chunks*chunk); got < want-chunk {
			t.Errorf("%d bytes of the window came back, of %d", got, want)
		}
		p.works()
	})
}
