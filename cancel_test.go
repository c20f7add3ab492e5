package catena_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
)

// ending is a way in which a call ends before it is done, one second in.
type ending struct {
	name     string
	start    func(w *world, req *http.Request) *catena.Call
	canceled bool // errors.Is(err, context.Canceled)
	deadline bool // errors.Is(err, context.DeadlineExceeded)
	ours     bool // *TimeoutError of step "call"
	theirs   bool // by the caller's context
	closed   bool // errors.Is(err, ErrClosed)
}

var errBecause = errors.New("the user has gone")

var endings = []ending{
	{name: "Cancel", canceled: true, start: func(w *world, req *http.Request) *catena.Call {
		call := w.client.NewCall(req)
		time.AfterFunc(time.Second, call.Cancel)
		return call
	}},
	{name: "context canceled", theirs: true, canceled: true, start: func(w *world, req *http.Request) *catena.Call {
		ctx, cancel := context.WithCancel(req.Context())
		time.AfterFunc(time.Second, cancel)
		return w.client.NewCall(req.WithContext(ctx))
	}},
	{name: "context canceled with a cause", theirs: true, canceled: true, start: func(w *world, req *http.Request) *catena.Call {
		ctx, cancel := context.WithCancelCause(req.Context())
		time.AfterFunc(time.Second, func() { cancel(errBecause) })
		return w.client.NewCall(req.WithContext(ctx))
	}},
	{name: "context deadline", theirs: true, deadline: true, start: func(w *world, req *http.Request) *catena.Call {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		w.Cleanup(cancel)
		return w.client.NewCall(req.WithContext(ctx))
	}},
	{name: "call timeout", deadline: true, ours: true, start: func(w *world, req *http.Request) *catena.Call {
		return w.client.NewCall(req, catena.WithCallTimeout(time.Second))
	}},
	{name: "client closed", canceled: true, closed: true, start: func(w *world, req *http.Request) *catena.Call {
		time.AfterFunc(time.Second, func() { w.client.Close() })
		return w.client.NewCall(req)
	}},
}

func (e ending) check(t *testing.T, err error) {
	t.Helper()
	var failed *catena.CallError
	if !errors.As(err, &failed) {
		t.Fatalf("error %T %v, want a *CallError", err, err)
	}
	if got := errors.Is(err, context.Canceled); got != e.canceled {
		t.Errorf("errors.Is(%v, context.Canceled) is %v", err, got)
	}
	if got := errors.Is(err, context.DeadlineExceeded); got != e.deadline {
		t.Errorf("errors.Is(%v, context.DeadlineExceeded) is %v", err, got)
	}
	if got := errors.Is(err, catena.ErrClosed); got != e.closed {
		t.Errorf("errors.Is(%v, ErrClosed) is %v", err, got)
	}
	var netErr net.Error
	if !errors.As(err, &netErr) || netErr.Timeout() != e.deadline {
		t.Errorf("%v: net.Error.Timeout is %v", err, netErr.Timeout())
	}
	var timeout *catena.TimeoutError
	if got := errors.As(err, &timeout); got != e.ours {
		t.Errorf("%v: is a *TimeoutError: %v", err, got)
	} else if e.ours && (timeout.Step != "call" || timeout.After != time.Second) {
		t.Errorf("%v: timeout %+v", err, timeout)
	}
	if e.name == "context canceled with a cause" && !errors.Is(err, errBecause) {
		t.Errorf("%v: the cause is lost", err)
	}
}

// inWorld runs test in a bubble for each of the protocols.
func inWorld(t *testing.T, over []string, opts func(*world) []catena.Option, test func(w *world)) {
	t.Helper()
	if over == nil {
		over = allProtocols
	}
	for _, protocol := range over {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, protocol)
				if opts != nil {
					client, err := w.client.With(opts(w)...)
					if err != nil {
						t.Fatal(err)
					}
					w.client = client
				}
				test(w)
				w.close()
				synctest.Wait()
				if n := w.net.Open(); n != 0 {
					t.Errorf("%d ends of connections are left open", n)
				}
				if err := catenatest.CheckEvents(w.calls.Events()); err != nil {
					t.Errorf("events out of order: %v", err)
				}
				if err := catenatest.CheckConnectionEvents(w.conns.Events()); err != nil {
					t.Errorf("events of connections out of order: %v", err)
				}
			})
		})
	}
}

// Whatever a call waits for, it ends at once, with the error that says why, and
// leaves nothing behind: the bubble would not end if a goroutine did.
func TestCallsEndAtOnce(t *testing.T) {
	for _, p := range phases {
		for _, e := range endings {
			t.Run(p.name+"/"+e.name, func(t *testing.T) {
				inWorld(t, p.over, p.opts, func(w *world) {
					began := time.Now()
					call := e.start(w, p.prepare(w))
					_, err := finish(call)
					if took := time.Since(began); took != time.Second {
						w.Errorf("the call took %v, want 1s", took)
					}
					e.check(w.T, err)
					if !e.theirs && !call.IsCanceled() {
						w.Error("IsCanceled is false")
					}
					if n := w.client.Dispatcher().RunningCount(); n != 0 {
						w.Errorf("%d calls still run", n)
					}
				})
			})
		}
	}
}

// After a call that was ended, the next one to the same host works.
func TestNextCallWorks(t *testing.T) {
	for _, p := range phases {
		if p.name == "tls" {
			continue // its server speaks no TLS at all
		}
		t.Run(p.name, func(t *testing.T) {
			inWorld(t, p.over, p.opts, func(w *world) {
				req := p.prepare(w)
				if p.name == "dns" || p.name == "connect" {
					w.serve(hang)
				}
				call := w.client.NewCall(req)
				time.AfterFunc(time.Second, call.Cancel)
				if _, err := finish(call); !errors.Is(err, context.Canceled) {
					w.Fatalf("the call ends with %v", err)
				}
				w.net.SetDNSFault(origin)
				w.net.SetFaults(originAddr)
				// hang answers this one too, by silence.
				err := w.fail(w.request("GET", "/", nil), catena.WithReadTimeout(2*time.Second))
				var timeout *catena.TimeoutError
				if !errors.As(err, &timeout) || timeout.Step != "read" {
					w.Errorf("the next call ends with %v, want the read timeout", err)
				}
			})
		})
	}
}

// A call that waits in the dispatcher's queue leaves it at once.
func TestCallsEndInQueue(t *testing.T) {
	for _, e := range endings {
		if e.ours || e.name == "client closed" {
			continue // the call timeout begins later; Close ends the running call too
		}
		t.Run(e.name, func(t *testing.T) {
			inWorld(t, []string{h1}, nil, func(w *world) {
				w.serve(func(rw http.ResponseWriter, r *http.Request) {
					time.Sleep(5 * time.Second)
					answer(rw, r)
				})
				w.client.Dispatcher().SetMaxCalls(1)
				running, queued := make(chan error, 1), make(chan error, 1)
				w.client.NewCall(w.request("GET", "/", nil)).Enqueue(func(resp *http.Response, err error) {
					if err == nil {
						resp.Body.Close()
					}
					running <- err
				})
				began := time.Now()
				body := newSilentBody()
				call := e.start(w, w.request("POST", "/", body))
				call.Enqueue(func(_ *http.Response, err error) { queued <- err })
				e.check(w.T, <-queued)
				if took := time.Since(began); took != time.Second {
					w.Errorf("it took %v", took)
				}
				body.checkClosed(w.T)
				if err := <-running; err != nil {
					w.Errorf("the running call ends with %v", err)
				}
				if n := w.client.Dispatcher().QueuedCount(); n != 0 {
					w.Errorf("%d calls wait", n)
				}
			})
		})
	}
}

// A resolver that ignores its context holds neither calls nor more than one
// goroutine.
func TestStubbornResolver(t *testing.T) {
	inWorld(t, []string{h1}, func(w *world) []catena.Option {
		return []catena.Option{catena.WithDNS(w.net), catena.WithCallTimeout(200 * time.Millisecond)}
	}, func(w *world) {
		w.net.SetDNSFault(origin, simnet.DNSFault{Hang: true, IgnoreContext: true})
		began := time.Now()
		ended := make(chan error)
		for range 100 {
			go func() {
				_, err := finish(w.client.NewCall(w.request("GET", "/", nil)))
				ended <- err
			}()
		}
		for range 100 {
			if err := <-ended; kind(err) != "(timeout: call after 200ms)" {
				w.Errorf("a call ends with %v", err)
			}
		}
		if took := time.Since(began); took != 200*time.Millisecond {
			w.Errorf("the calls took %v", took)
		}
		if n := w.net.Lookups(origin); n != 1 {
			w.Errorf("%d lookups run", n)
		}
	})
}

// A connection that a dialer brings after the call has ended is closed, and never
// used.
func TestLateConnection(t *testing.T) {
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			dialed := make(chan net.Conn, 1)
			dialer := func(w *world) []catena.Option {
				dialed = make(chan net.Conn, 1)
				return []catena.Option{catena.WithDialContext(func(_ context.Context, network, addr string) (net.Conn, error) {
					time.Sleep(5 * time.Second) // whatever the context says
					c, err := w.net.DialContext(context.Background(), network, addr)
					dialed <- c
					return c, err
				})}
			}
			inWorld(t, nil, dialer, func(w *world) {
				w.serve(answer)
				began := time.Now()
				_, err := finish(e.start(w, w.request("GET", "/", nil)))
				if took := time.Since(began); took != time.Second {
					w.Errorf("the call took %v", took)
				}
				e.check(w.T, err)
				late := (<-dialed).(*simnet.Conn)
				synctest.Wait()
				if _, err := late.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
					w.Errorf("the late connection is open: %v", err)
				}
				if n := late.Sent(); n != 0 {
					w.Errorf("%d bytes were sent on it", n)
				}
			})
		})
	}
}

// A cancellation that was there before is noticed before anything is done.
func TestEndedBeforeExecute(t *testing.T) {
	inWorld(t, nil, nil, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		body := newSilentBody()
		err := w.fail(w.requestTo("POST", w.url(origin, "/"), body).WithContext(ctx))
		if !errors.Is(err, context.Canceled) {
			w.Errorf("error is %v", err)
		}
		body.checkClosed(w.T)
		if n := w.net.Lookups(origin); n != 0 {
			w.Errorf("%d lookups", n)
		}
	})
}

// A body whose Read ignores Close keeps its own goroutine only as long as that
// Read takes; the call ends with it.
func TestStubbornBody(t *testing.T) {
	inWorld(t, nil, nil, func(w *world) {
		w.serve(hang)
		body := &stubbornBody{release: make(chan struct{})}
		time.AfterFunc(5*time.Second, func() { close(body.release) })
		req := w.request("POST", "/", body)
		req.ContentLength = 10
		call := w.client.NewCall(req)
		time.AfterFunc(time.Second, call.Cancel)
		if _, err := finish(call); !errors.Is(err, context.Canceled) {
			w.Errorf("error is %v", err)
		}
		if body.closes != 1 {
			w.Errorf("the body was closed %d times", body.closes)
		}
	})
}

type stubbornBody struct {
	release chan struct{}
	closes  int // Cancel's goroutine closes before release is closed
}

func (b *stubbornBody) Read(p []byte) (int, error) {
	<-b.release
	return len(p), nil
}

func (b *stubbornBody) Close() error { b.closes++; return nil }

// An interceptor that puts another context in the place of the call's does not
// keep the call from ending, and nothing is tried again then.
func TestCallsEndWhoseContextWasReplaced(t *testing.T) {
	replace := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		return c.Proceed(c.Request().WithContext(context.Background()))
	})
	for place, with := range map[string]catena.Option{
		"application": catena.WithInterceptor(replace), "network": catena.WithNetworkInterceptor(replace),
	} {
		for _, e := range endings {
			t.Run(place+"/"+e.name, func(t *testing.T) {
				inWorld(t, nil, func(*world) []catena.Option { return []catena.Option{with} }, func(w *world) {
					w.serve(hang)
					began := time.Now()
					_, err := finish(e.start(w, w.requestTo("GET", w.url(twin, "/"), nil)))
					if took := time.Since(began); took != time.Second {
						w.Errorf("the call took %v, want 1s", took)
					}
					e.check(w.T, err)
					var failed *catena.CallError
					if !errors.As(err, &failed) || len(failed.Attempts) != 1 || failed.Attempts[0].Retried || failed.Attempts[0].Why != event.ReasonCanceled {
						w.Errorf("%+v, want one attempt that is not made again", err)
					}
				})
			})
		}
	}
}
