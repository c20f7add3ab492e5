package connection

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
)

// exploding panics, or ends its goroutine, as fail does.
type exploding struct {
	event.NopListener
	fail func()
}

func (e exploding) Read([]byte) (int, error) { e.fail(); return 0, io.EOF }

func (exploding) Close() error { return nil }

func (e exploding) RequestBodyEnd(event.Call, int64) { e.fail() }

// Whoever leaves early takes the goroutine that waits for a response with him:
// the buffer it reads into is given back right afterwards.
func TestWatcherEndsBeforeAPanicGoesOn(t *testing.T) {
	explode := exploding{fail: func() { panic("boom") }}
	for name, prepare := range map[string]func(c *call){
		"body":     func(c *call) { c.request.Body = explode },
		"listener": func(c *call) { c.a.listener = explode },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, PoolOptions{}, nil)
			w.raw("a.test", "192.0.2.1", func(_ int, c net.Conn) { io.Copy(io.Discard, c) })
			c := w.newCall(t.Context(), "http://a.test/")
			c.request.Method, c.request.Body = "POST", io.NopCloser(&io.LimitedReader{})
			prepare(c)
			if err := c.connect(); err != nil {
				t.Fatal(err)
			}
			x := c.exchange
			if err := x.WriteRequestHeaders(c.request, -1, false); err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() {
					if recover() != "boom" {
						t.Error("the panic does not go on")
					}
				}()
				x.SendBodyWatching(c.request)
			}()
			if !x.conn.closed.Load() {
				t.Error("the response is still waited for")
			}
			c.end(nil, io.EOF)
			w.expect(0, 0)
		})
	}
}

// A plain proxy that refuses a large body may have read nothing of it, whatever it
// says: nobody else gets its connection.
func TestRefusedBodyEndsTheConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		size   int
		status string
		direct bool
		idle   int
	}{
		"large, refused":              {skippedBody, "407 Proxy Authentication Required", false, 0},
		"small, refused":              {skippedBody - 1, "407 Proxy Authentication Required", false, 1},
		"large, welcome":              {skippedBody, "200 OK", false, 1},
		"large, not for us":           {skippedBody, "502 Bad Gateway", false, 1},
		"large, refused by an origin": {skippedBody, "422 Unprocessable Content", true, 1},
	} {
		for _, watched := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, watched %t", name, watched), func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, nil)
				host := "a.test"
				if !tc.direct {
					host = "q.test"
					w.through(proxyNamed(host))
				}
				w.raw(host, "192.0.2.1", func(_ int, c net.Conn) {
					r := bufio.NewReader(c)
					if req, err := http.ReadRequest(r); err == nil {
						io.Copy(io.Discard, req.Body)
						io.WriteString(c, "HTTP/1.1 "+tc.status+"\r\nContent-Length: 2\r\n\r\nno")
					}
					io.Copy(io.Discard, r)
				})
				c := w.newCall(t.Context(), "http://a.test/")
				c.request.Method, c.request.Body = "POST", io.NopCloser(bytes.NewReader(make([]byte, tc.size)))
				c.request.ContentLength = int64(tc.size)
				if err := c.connect(); err != nil {
					t.Fatal(err)
				}
				resp, err := c.post(watched)
				if err != nil {
					t.Fatal(err)
				}
				c.a.Settle()
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				c.life.Finish()
				w.expect(tc.idle, tc.idle)
				if tc.idle > 0 {
					return
				}
				if diff := cmp.Diff([]event.Reason{event.ReasonNotReusable}, w.closings()); diff != "" {
					t.Errorf("why connections were closed (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// post sends the request with its body and reads the response's head.
func (c *call) post(watched bool) (*http.Response, error) {
	x := c.exchange
	if err := x.WriteRequestHeaders(c.request, c.request.ContentLength, false); err != nil {
		return nil, err
	}
	if watched {
		return x.SendBodyWatching(c.request)
	}
	if err := x.SendBody(c.request); err != nil {
		return nil, err
	}
	return x.ReadResponseHeaders(nil)
}
