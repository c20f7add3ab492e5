package catena_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/event"
)

// limits are the timeouts that the tests below tell apart by their length.
func limits(*world) []catena.Option {
	return []catena.Option{
		catena.WithConnectTimeout(3 * time.Second),
		catena.WithWriteTimeout(5 * time.Second),
		catena.WithReadTimeout(7 * time.Second),
	}
}

var timeouts = []struct {
	name    string
	over    []string
	prepare func(w *world) *http.Request
	step    event.Step
	after   time.Duration
	// waits is for how long the call does other things before.
	waits time.Duration
}{
	{name: "connect", step: "connect", after: 3 * time.Second, waits: 2 * latency,
		prepare: func(w *world) *http.Request {
			w.net.SetFaults(originAddr, simnet.Faults{BlackHole: true})
			return w.request("GET", "/", nil)
		}},
	{name: "connect to each address", step: "connect", after: 3 * time.Second, waits: 2*latency + 3*time.Second,
		prepare: func(w *world) *http.Request {
			w.net.SetFaults(twinAddr1, simnet.Faults{BlackHole: true})
			w.net.SetFaults(twinAddr2, simnet.Faults{BlackHole: true})
			return w.requestTo("GET", w.url(twin, "/"), nil)
		}},
	{name: "TLS handshake", over: overTLS, step: "tls", after: 3 * time.Second, waits: 4 * latency,
		prepare: func(w *world) *http.Request {
			w.peer(swallow)
			return w.request("GET", "/", nil)
		}},
	{name: "TLS handshake, byte by byte", over: overTLS, step: "tls", after: 3 * time.Second, waits: 4 * latency,
		prepare: func(w *world) *http.Request {
			w.serve(answer)
			drip := simnet.Link{Chunk: 1, Every: time.Second}
			w.net.SetFaults(originAddr, simnet.Faults{ToClient: drip})
			return w.request("GET", "/", nil)
		}},
	{name: "response head", step: "read", after: 7 * time.Second,
		prepare: func(w *world) *http.Request {
			w.serve(hang)
			return w.request("GET", "/", nil)
		}},
	{name: "response head after a body", step: "read", after: 7 * time.Second,
		prepare: func(w *world) *http.Request {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				hang(rw, r)
			})
			return w.request("POST", "/", strings.NewReader("Hello"))
		}},
	{name: "response head, byte by byte", over: []string{h1}, step: "read", after: 7 * time.Second,
		prepare: func(w *world) *http.Request {
			w.peer(func(c net.Conn) {
				for b := range bytes.SplitSeq([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), nil) {
					time.Sleep(time.Second)
					if _, err := c.Write(b); err != nil {
						return
					}
				}
			})
			return w.request("GET", "/", nil)
		}},
	{name: "response body", step: "read", after: 7 * time.Second,
		prepare: func(w *world) *http.Request {
			w.serve(stopHalfway)
			return w.request("GET", "/", nil)
		}},
	{name: "small request body", over: onHTTP1, step: "write", after: 5 * time.Second,
		prepare: func(w *world) *http.Request {
			w.serve(hang)
			w.net.SetFaults(originAddr, simnet.Faults{ToServer: simnet.Link{Window: 2 << 10}})
			return w.request("POST", "/", strings.NewReader(strings.Repeat("x", 60<<10)))
		}},
	{name: "large request body", step: "write", after: 5 * time.Second,
		prepare: func(w *world) *http.Request {
			w.serve(hang)
			body := &endlessBody{closed: make(chan struct{})}
			w.Cleanup(func() { body.checkClosed(w.T) })
			return w.request("POST", "/", body)
		}},
}

// Each timeout says which it was and after what, and is neither early nor late
// (promise 9).
func TestTimeouts(t *testing.T) {
	for _, tt := range timeouts {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, tt.over, limits, func(w *world) {
				req := tt.prepare(w)
				began := time.Now()
				err := w.fail(req)
				took := time.Since(began) - tt.waits
				if took < tt.after || took > tt.after+max(tt.after/10, time.Second) {
					w.Errorf("it took %v, want %v", took, tt.after)
				}
				checkTimeout(w.T, err, event.TimeoutError{Step: tt.step, After: tt.after})
			})
		})
	}
}

func checkTimeout(t *testing.T, err error, want event.TimeoutError) {
	t.Helper()
	var failed *catena.CallError
	var timeout *catena.TimeoutError
	if !errors.As(err, &failed) || !errors.As(err, &timeout) || *timeout != want {
		t.Errorf("error %v, want a *CallError with %+v", err, want)
		return
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: it is os.ErrDeadlineExceeded: %v, context.DeadlineExceeded: %v", err,
			errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded))
	}
	if !failed.Timeout() {
		t.Errorf("%v: Timeout is false", err)
	}
	if n := len(failed.Attempts); n == 0 || failed.Attempts[n-1].Step != want.Step || failed.Attempts[n-1].Retried {
		t.Errorf("%+v: want a last attempt that failed in step %s", err, want.Step)
	}
}

// A dialer that ignores its context is not waited for.
func TestConnectTimeoutOfStubbornDialer(t *testing.T) {
	inWorld(t, nil, func(w *world) []catena.Option {
		return append(limits(w), catena.WithDialContext(func(_ context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(time.Minute)
			return w.net.DialContext(context.Background(), network, addr)
		}))
	}, func(w *world) {
		w.serve(answer)
		began := time.Now()
		err := w.fail(w.request("GET", "/", nil))
		if took := time.Since(began) - 2*latency; took != 3*time.Second {
			w.Errorf("it took %v", took)
		}
		checkTimeout(w.T, err, event.TimeoutError{Step: "connect", After: 3 * time.Second})
		time.Sleep(2 * time.Minute) // the late connection is closed: see inWorld
	})
}

// Slow is not dead: what keeps moving meets no read or write timeout, however
// long it takes.
func TestNoTimeoutWhileBytesMove(t *testing.T) {
	t.Run("response body", func(t *testing.T) {
		inWorld(t, nil, limits, func(w *world) {
			w.serve(func(rw http.ResponseWriter, _ *http.Request) {
				for range 10 {
					io.WriteString(rw, "x")
					rw.(http.Flusher).Flush()
					time.Sleep(6 * time.Second)
				}
			})
			w.get("/", strings.Repeat("x", 10))
		})
	})
	t.Run("interim responses", func(t *testing.T) { // a sign of life each
		inWorld(t, nil, limits, func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				for range 5 {
					time.Sleep(6 * time.Second)
					rw.WriteHeader(http.StatusProcessing)
				}
				answer(rw, r)
			})
			w.get("/", "abc")
		})
	})
	t.Run("request body", func(t *testing.T) {
		inWorld(t, nil, limits, func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				buffer := make([]byte, 1<<20)
				for {
					if _, err := io.ReadFull(r.Body, buffer); err != nil {
						break
					}
					time.Sleep(3 * time.Second)
				}
				io.WriteString(rw, "abc")
			})
			if w.protocol == h1 || w.protocol == https1 { // HTTP/2 has windows of its own
				w.net.SetFaults(originAddr, simnet.Faults{ToServer: simnet.Link{Window: 64 << 10}})
			}
			w.do(w.request("POST", "/", bytes.NewReader(make([]byte, 8<<20))), "abc")
		})
	})
	t.Run("request body that comes slowly", func(t *testing.T) {
		inWorld(t, nil, limits, func(w *world) {
			w.serve(answer)
			r, send := io.Pipe()
			go func() { // ends with the body
				for range 5 {
					time.Sleep(8 * time.Second)
					io.WriteString(send, "x")
				}
				send.Close()
			}()
			w.do(w.request("POST", "/", r), "abc")
		})
	})
}

func TestNoTimeouts(t *testing.T) {
	inWorld(t, nil, func(*world) []catena.Option {
		return []catena.Option{catena.WithConnectTimeout(0), catena.WithWriteTimeout(0), catena.WithReadTimeout(0)}
	}, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			answer(rw, r)
		})
		w.get("/", "abc")
	})
}

// The call timeout bounds all of a call, up to its body's end.
func TestCallTimeout(t *testing.T) {
	second := catena.WithCallTimeout(time.Second)
	half := func(rw http.ResponseWriter, r *http.Request) {
		time.Sleep(500 * time.Millisecond)
		answer(rw, r)
	}
	check := func(w *world, began time.Time, err error) {
		w.Helper()
		if took := time.Since(began); took != time.Second {
			w.Errorf("it took %v", took)
		}
		var timeout *catena.TimeoutError
		if !errors.As(err, &timeout) || *timeout != (catena.TimeoutError{Step: "call", After: time.Second}) {
			w.Errorf("error is %v", err)
		}
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.Canceled) {
			w.Errorf("%v: wrong identity", err)
		}
	}
	t.Run("redirects", func(t *testing.T) {
		inWorld(t, nil, nil, func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Location", r.URL.Path+"x")
				rw.WriteHeader(http.StatusFound)
				half(rw, r)
			})
			began := time.Now()
			check(w, began, w.fail(w.request("GET", "/", nil), second))
		})
	})
	t.Run("body", func(t *testing.T) {
		inWorld(t, nil, nil, func(w *world) {
			w.serve(stopHalfway)
			began := time.Now()
			call := w.client.NewCall(w.request("GET", "/", nil), second)
			resp, err := call.Execute()
			if err != nil {
				w.Fatal(err)
			}
			_, err = io.ReadAll(resp.Body)
			check(w, began, err)
			if !call.IsCanceled() {
				w.Error("IsCanceled is false")
			}
			resp.Body.Close()
		})
	})
	t.Run("over in time", func(t *testing.T) {
		inWorld(t, nil, nil, func(w *world) {
			w.serve(half)
			call := w.client.NewCall(w.request("GET", "/", nil), second)
			if _, err := finish(call); err != nil {
				w.Fatal(err)
			}
			time.Sleep(time.Minute)
			if call.IsCanceled() {
				w.Error("the timeout ran on after the call's end")
			}
			w.get("/", "abc")
			if n := w.net.Dials(originAddr); n != 1 {
				w.Errorf("%d connections", n)
			}
		})
	})
	t.Run("queue does not count", func(t *testing.T) {
		inWorld(t, nil, nil, func(w *world) {
			w.serve(half)
			w.client.Dispatcher().SetMaxCalls(1)
			ended := make(chan error)
			for range 5 {
				w.client.NewCall(w.request("GET", "/", nil), second).Enqueue(func(resp *http.Response, err error) {
					if err == nil {
						_, err = io.ReadAll(resp.Body)
						resp.Body.Close()
					}
					ended <- err
				})
			}
			for range 5 {
				if err := <-ended; err != nil {
					w.Error(err)
				}
			}
		})
	})
	t.Run("caller's deadline is sooner", func(t *testing.T) {
		inWorld(t, nil, nil, func(w *world) {
			w.serve(hang)
			ctx, cancel := context.WithTimeout(w.Context(), time.Second/2)
			defer cancel()
			err := w.fail(w.request("GET", "/", nil).WithContext(ctx), second)
			var timeout *catena.TimeoutError
			if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) {
				w.Errorf("error is %v, want the caller's own deadline", err)
			}
		})
	})
}

// The deadline that an interceptor sees is the sooner one.
func TestDeadlineOfRequestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, h1)
		defer w.close()
		w.serve(func(rw http.ResponseWriter, r *http.Request) { answer(rw, r) })
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		client, err := w.client.With(catena.WithInterceptor(deadlines(func(at time.Time) {
			if d := at.Sub(began); d != time.Second {
				t.Errorf("the deadline is after %v", d)
			}
		})))
		if err != nil {
			t.Fatal(err)
		}
		w.client = client
		w.do(w.request("GET", "/", nil).WithContext(ctx), "abc", catena.WithCallTimeout(time.Second))
	})
}
