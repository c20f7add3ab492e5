package catena_test

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/catena-http/catena"
)

// frames answers HTTP/2 requests one frame at a time: reply gets each request's
// number, of all connections, and its stream.
func (w *world) frames(reply func(f *http2.Framer, n int, stream uint32)) {
	var requests atomic.Int32
	w.peer(func(c net.Conn) {
		c = w.secured(c)
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(c, c)
		f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					f.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				reply(f, int(requests.Add(1)), frame.StreamID)
			}
		}
	})
}

// ok is a 200 without content.
func ok(f *http2.Framer, stream uint32) {
	f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, EndStream: true,
		BlockFragment: []byte{0x88}, // :status 200, of the static table
	})
}

func TestEventsOfHTTP2(t *testing.T) {
	refuse := func(times int) func(f *http2.Framer, n int, stream uint32) {
		return func(f *http2.Framer, n int, stream uint32) {
			if n <= times {
				f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
				return
			}
			ok(f, stream)
		}
	}
	runScenarios(t, []scenario{
		{name: "refused-stream", over: onHTTP2, run: func(w *world) {
			w.frames(refuse(1))
			w.do(w.request("POST", "/", nil), "")
		}},
		{name: "refused-stream-twice", over: onHTTP2, run: func(w *world) {
			w.frames(refuse(2))
			w.do(w.request("POST", "/", nil), "")
		}},
		{name: "refused-stream-always", over: onHTTP2, run: func(w *world) {
			w.frames(refuse(100))
			w.fail(w.request("POST", "/", nil))
		}},
		{name: "goaway-below", over: onHTTP2, run: func(w *world) {
			w.frames(func(f *http2.Framer, n int, stream uint32) {
				if n == 1 {
					f.WriteGoAway(0, http2.ErrCodeNo, nil)
					return
				}
				ok(f, stream)
			})
			w.do(w.request("POST", "/", nil), "")
		}},
		{name: "reset-stream", over: onHTTP2, run: func(w *world) {
			w.frames(func(f *http2.Framer, _ int, stream uint32) {
				f.WriteRSTStream(stream, http2.ErrCodeInternal)
			})
			w.fail(w.request("GET", "/", nil))
		}},
		{name: "protocol-error", over: onHTTP2, run: func(w *world) {
			w.frames(func(f *http2.Framer, _ int, stream uint32) {
				f.WriteHeaders(http2.HeadersFrameParam{
					StreamID: stream, EndHeaders: true, EndStream: true, BlockFragment: []byte{0x80},
				})
			})
			w.fail(w.request("GET", "/", nil))
		}},
	})
}

// An enqueued call whose interceptor panics fails with what it panicked with.
func TestEventsOfEnqueuedPanic(t *testing.T) {
	runScenarios(t, []scenario{{name: "panic-enqueued", opts: func(*world) []catena.Option {
		return []catena.Option{catena.WithNetworkInterceptor(panicsAfter)}
	}, run: func(w *world) {
		w.serve(answer)
		ended := make(chan error)
		w.client.NewCall(w.request("GET", "/", nil)).Enqueue(func(_ *http.Response, err error) { ended <- err })
		if err := <-ended; kind(err) != "(panic: boom)" {
			w.Errorf("error is %v", err)
		}
	}}})
}
