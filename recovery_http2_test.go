package catena_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/chain"
)

// framedConn is the server's side of an HTTP/2 connection by prior knowledge, one
// frame at a time.
type framedConn struct {
	*peerConn
	*http2.Framer
	encoded bytes.Buffer
	encoder *hpack.Encoder

	skipStream uint32 // not a request: nextRequest passes it over
}

// framed begins HTTP/2 on c, whose client did.
func framed(c *peerConn) *framedConn {
	io.ReadFull(c.r, make([]byte, len(http2.ClientPreface)))
	f := &framedConn{peerConn: c, Framer: http2.NewFramer(c.Conn, c.r)}
	f.encoder = hpack.NewEncoder(&f.encoded)
	f.WriteSettings()
	return f
}

// nextRequest reads until a request is complete and returns its stream, with the
// body noted; 0 where the connection ended. Windows are opened as needed.
func (f *framedConn) nextRequest() uint32 {
	bodies := map[uint32]*bytes.Buffer{}
	done := func(id uint32) uint32 {
		f.peer.mu.Lock()
		defer f.peer.mu.Unlock()
		f.peer.requests = append(f.peer.requests, seenRequest{conn: f.n, body: bodies[id].String()})
		return id
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return 0
		}
		id := frame.Header().StreamID
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			bodies[id] = &bytes.Buffer{}
			if frame.StreamEnded() {
				return done(id)
			}
		case *http2.DataFrame:
			if id != f.skipStream {
				bodies[id].Write(frame.Data())
			}
			if n := uint32(len(frame.Data())); n > 0 {
				f.WriteWindowUpdate(0, n)
				if id != f.skipStream {
					f.WriteWindowUpdate(id, n)
				}
			}
			if frame.StreamEnded() && id != f.skipStream {
				return done(id)
			}
		}
	}
}

func (f *framedConn) field(name, value string) {
	f.encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
}

// respond answers a stream with 200 and body.
func (f *framedConn) respond(id uint32, body string) {
	f.headers(id)
	f.WriteData(id, true, []byte(body))
}

func (f *framedConn) headers(id uint32) {
	f.encoded.Reset()
	f.field(":status", "200")
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.encoded.Bytes(), EndHeaders: true})
}

// rest answers everything with "ok".
func (f *framedConn) rest() {
	for id := f.nextRequest(); id != 0; id = f.nextRequest() {
		f.respond(id, "ok")
	}
}

// refusals is how a server of HTTP/2 turns a request down, and what comes of it.
type refusal struct {
	name string
	// turnDown gets the first requests: those on the connections before the last
	// one, or the first so many on any.
	turnDown func(f *framedConn, id uint32)
	times    int
	get      string
	post     string
	oneShot  string
}

const (
	refusedFirst  = "read, written, again: not-processed\n"
	refusedReused = "read, reused, written, again: not-processed\n"
	refusedLast   = "read, written: "
	lastReused    = "read, reused, written: "
)

var refusals = []refusal{
	{
		name:     "REFUSED_STREAM once",
		turnDown: func(f *framedConn, id uint32) { f.WriteRSTStream(id, http2.ErrCodeRefusedStream) }, times: 1,
		get: okTwice + refusedFirst + "on 1 1", post: okTwice + refusedFirst + "on 1 1",
		oneShot: "error: REFUSED_STREAM, not processed\n" + refusedLast + "one-shot-body\non 1",
	},
	{
		name:     "REFUSED_STREAM three times",
		turnDown: func(f *framedConn, id uint32) { f.WriteRSTStream(id, http2.ErrCodeRefusedStream) }, times: 3,
		get:     okTwice + refusedFirst + refusedReused + refusedFirst + "on 1 1 2 2",
		post:    okTwice + refusedFirst + refusedReused + refusedFirst + "on 1 1 2 2",
		oneShot: "error: REFUSED_STREAM, not processed\n" + refusedLast + "one-shot-body\non 1",
	},
	{
		name:     "REFUSED_STREAM for ever",
		turnDown: func(f *framedConn, id uint32) { f.WriteRSTStream(id, http2.ErrCodeRefusedStream) }, times: 100,
		get:     "error: REFUSED_STREAM, not processed\n" + refusedFirst + refusedReused + refusedFirst + lastReused + "too-many-refusals\non 1 1 2 2",
		post:    "error: REFUSED_STREAM, not processed\n" + refusedFirst + refusedReused + refusedFirst + lastReused + "too-many-refusals\non 1 1 2 2",
		oneShot: "error: REFUSED_STREAM, not processed\n" + refusedLast + "one-shot-body\non 1",
	},
	{
		name:     "GOAWAY below the stream",
		turnDown: func(f *framedConn, id uint32) { f.WriteGoAway(0, http2.ErrCodeNo, nil) }, times: 1,
		get: okTwice + refusedFirst + "on 1 2", post: okTwice + refusedFirst + "on 1 2",
		oneShot: "error: not processed\n" + refusedLast + "one-shot-body\non 1",
	},
	{
		name:     "RST_STREAM with INTERNAL_ERROR",
		turnDown: func(f *framedConn, id uint32) { f.WriteRSTStream(id, http2.ErrCodeInternal) }, times: 1,
		get:     "error: INTERNAL_ERROR\n" + refusedLast + "no-more-routes\non 1",
		post:    "error: INTERNAL_ERROR\n" + refusedLast + "may-have-been-acted-on\non 1",
		oneShot: "error: INTERNAL_ERROR\n" + refusedLast + "one-shot-body\non 1",
	},
}

// TestRefusals turns requests down on HTTP/2.
func TestRefusals(t *testing.T) {
	for _, r := range refusals {
		for _, kind := range []struct{ name, method, body, want string }{
			{"GET", "GET", "", r.get},
			{"POST", "POST", "hello", r.post},
			{"large POST", "POST", strings.Repeat("b", 100<<10), r.post},
			{"one-shot POST", "POST", "hello", r.oneShot},
		} {
			t.Run(r.name+"/"+kind.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					network, peer := framedNetwork(t, func(f *framedConn) {
						for id := f.nextRequest(); id != 0; id = f.nextRequest() {
							if len(f.peer.seen()) <= r.times {
								r.turnDown(f, id)
							} else {
								f.respond(id, "ok")
							}
						}
					})
					client := h2cClient(t, network)
					defer client.Close()
					req := bodyRequest(t, kind.method, "http://origin.test/", kind.body)
					if strings.HasPrefix(kind.name, "one-shot") {
						req.GetBody = nil
					}
					closes := countCloses(req)
					began := time.Now()
					got := outcomeOf(client.Do(req)) + "\non"
					if took := time.Since(began); took > time.Second {
						t.Errorf("it took %v", took)
					}
					for i, s := range peer.seen() {
						got += fmt.Sprintf(" %d", s.conn)
						if s.body != kind.body {
							t.Errorf("request %d had a body of %d bytes, want %d", i, len(s.body), len(kind.body))
						}
					}
					if diff := gocmp.Diff(kind.want, got); diff != "" {
						t.Errorf("outcome (-want +got):\n%s", diff)
					}
					for i, n := range closes() {
						if n != 1 {
							t.Errorf("body %d was closed %d times", i, n)
						}
					}
				})
			})
		}
	}
}

// roomyWindow is more than a test sends: see meetFault.
const roomyWindow = 4 << 20

// framedNetwork is a network with one server of HTTP/2 at origin.test:80.
func framedNetwork(t *testing.T, serve func(f *framedConn)) (*simnet.Network, *faultyPeer) {
	network := simnet.New(simnet.WithLatency(time.Millisecond), simnet.WithWindow(roomyWindow))
	network.AddHost("origin.test", "192.0.2.1")
	listener, err := network.Listen("192.0.2.1:80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	return network, startFaultyPeer(t, listener, func(c *peerConn) { serve(framed(c)) })
}

func h2cClient(t *testing.T, network *simnet.Network, opts ...catena.Option) *catena.Client {
	return h1Client(t, append([]catena.Option{catena.WithProtocols("h2c"), catena.WithDialContext(network.DialContext),
		catena.WithDNS(network)}, opts...)...)
}

// TestGracefulGoAway: the stream in flight ends well, the next call goes to
// another connection.
func TestGracefulGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, peer := framedNetwork(t, func(f *framedConn) {
			if f.n > 1 {
				f.rest()
				return
			}
			id := f.nextRequest()
			f.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
			time.Sleep(100 * time.Millisecond)
			f.WriteGoAway(id, http2.ErrCodeNo, nil)
			f.respond(id, "first")
			f.rest()
		})
		client := h2cClient(t, network)
		defer client.Close()
		first := make(chan string)
		go func() { first <- outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/a", ""))) }()
		time.Sleep(40 * time.Millisecond)
		if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/b", ""))); got != `200 "ok"` {
			t.Errorf("the second call: %s", got)
		}
		if got := <-first; got != `200 "first"` {
			t.Errorf("the first call: %s", got)
		}
		if n := peer.accepted(); n != 2 {
			t.Errorf("%d connections, want 2", n)
		}
	})
}

// A server that lets its connections go often refuses nothing: a call that finds
// one pooled connection after the other shut down, before it has sent anything,
// goes on to the next. On connections of its own there is an end to it.
func TestGoAwayBeforeTheStream(t *testing.T) {
	const shortLived = 10
	for name, tc := range map[string]struct {
		pooled bool
		want   string
	}{
		"pooled connections": {true, okTwice + strings.Repeat("write, reused, again: not-processed\n", shortLived) + "on 11 connections"},
		"fresh connections": {false, "error: not processed\n" + strings.Repeat("write, again: not-processed\n", 3) +
			"write: too-many-refusals\non 4 connections"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, peer := framedNetwork(t, func(f *framedConn) {
					if tc.pooled {
						f.respond(f.nextRequest(), "ok")
					}
					if f.n <= shortLived {
						time.Sleep(100 * time.Millisecond)
						f.WriteGoAway(1, http2.ErrCodeNo, nil)
					}
					f.rest()
				})
				var client *catena.Client
				other := func() {
					if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/other", ""))); got != `200 "ok"` {
						t.Errorf("another call: %s", got)
					}
				}
				client = h2cClient(t, network, catena.WithNetworkInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
					if c.Request().URL.Path == "/" && peer.accepted() <= shortLived {
						time.Sleep(200 * time.Millisecond) // the connection is shut down meanwhile
						if tc.pooled {
							other()
						}
					}
					return c.Proceed(c.Request())
				})))
				defer client.Close()
				if tc.pooled {
					other()
				}
				got := outcomeOf(client.Do(bodyRequest(t, "POST", "http://origin.test/", "hello")))
				got += fmt.Sprintf("\non %d connections", peer.accepted())
				if diff := gocmp.Diff(tc.want, got); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestResetAfterData: what came before the reset is read, then the error, which
// is not tried again.
func TestResetAfterData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, _ := framedNetwork(t, func(f *framedConn) {
			id := f.nextRequest()
			f.headers(id)
			f.WriteData(id, false, []byte("some"))
			f.WriteRSTStream(id, http2.ErrCodeInternal)
			f.rest()
		})
		client := h2cClient(t, network)
		defer client.Close()
		want := "200, \"some\", then error: INTERNAL_ERROR\nread, written: response-begun"
		resp, err := client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))
		time.Sleep(50 * time.Millisecond)
		if got := outcomeOf(resp, err); got != want {
			t.Errorf("outcome %q; want %q", got, want)
		}
	})
}
