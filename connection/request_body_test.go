package connection

import (
	"io"
	"net"
	"testing"

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
