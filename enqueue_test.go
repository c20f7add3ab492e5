package catena_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
)

// outcome is what a callback got, and on which goroutine.
type outcome struct {
	body      string
	err       error
	goroutine string
}

// enqueue enqueues call and returns where its outcomes arrive: there is room for
// one too many.
func enqueue(call *catena.Call) <-chan outcome {
	got := make(chan outcome, 2)
	call.Enqueue(func(resp *http.Response, err error) {
		o := outcome{err: err, goroutine: goroutine()}
		if err == nil {
			var body []byte
			body, o.err = io.ReadAll(resp.Body)
			resp.Body.Close()
			o.body = string(body)
		}
		got <- o
	})
	return got
}

// goroutine names the one that asks.
func goroutine() string {
	trace := make([]byte, 64)
	trace = trace[:runtime.Stack(trace, false)]
	return string(trace[:bytes.IndexByte(trace, '[')])
}

// only is the one outcome of a call, which has to come at once.
func (w *world) only(got <-chan outcome) outcome {
	w.Helper()
	synctest.Wait()
	if n := len(got); n != 1 {
		w.Fatalf("the callback ran %d times", n)
	}
	return <-got
}

// slow answers after a second.
func slow(rw http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(time.Second):
		answer(rw, r)
	case <-r.Context().Done():
	}
}

func TestEnqueueKeepsTheDispatchersLimits(t *testing.T) {
	for _, limits := range []struct{ all, perHost, want int }{{64, 2, 4}, {3, 64, 3}, {1, 1, 1}, {-1, -1, 12}} {
		t.Run(fmt.Sprint(limits.all, " ", limits.perHost), func(t *testing.T) {
			d := catena.NewDispatcher(catena.DispatcherOptions{MaxCalls: limits.all, MaxCallsPerHost: limits.perHost})
			overProtocols(t, []string{h1, h2}, func(w *world) {
				var now, most atomic.Int64
				w.serve(func(rw http.ResponseWriter, r *http.Request) {
					n := now.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					slow(rw, r)
					now.Add(-1)
				})
				var all []<-chan outcome
				for range 6 {
					for _, host := range []string{origin, other} {
						all = append(all, enqueue(w.client.NewCall(w.requestTo("GET", w.url(host, "/"), nil))))
					}
				}
				time.Sleep(time.Minute)
				for _, got := range all {
					if o := w.only(got); o.err != nil || o.body != "abc" {
						w.Errorf("body %q, %v", o.body, o.err)
					}
				}
				if n := most.Load(); n != int64(limits.want) {
					w.Errorf("%d calls ran at a time, want %d", n, limits.want)
				}
			}, catena.WithDispatcher(d))
		})
	}
}

// The limits are for enqueued calls alone.
func TestExecuteIsBoundByNoLimit(t *testing.T) {
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(slow)
		w.client.Dispatcher().SetMaxCalls(1)
		waiting := enqueue(w.client.NewCall(w.request("GET", "/", nil)))
		var all sync.WaitGroup
		began := time.Now()
		for range 8 {
			all.Go(func() { w.get("/", "abc") })
		}
		all.Wait()
		if took := time.Since(began); took > 1500*time.Millisecond {
			w.Errorf("8 calls took %v", took)
		}
		w.only(waiting)
	})
}

func TestEnqueueCallsBackOnceAndOnAnotherGoroutine(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(w *world) *catena.Call
		want    error // nil: any error but success too where fails is set
		fails   bool
	}{
		"success": {prepare: func(w *world) *catena.Call { return w.client.NewCall(w.request("GET", "/", nil)) }},
		"closed client": {want: catena.ErrClosed, prepare: func(w *world) *catena.Call {
			w.client.Close()
			return w.client.NewCall(w.request("GET", "/", nil))
		}},
		"closed after NewCall": {want: catena.ErrClosed, prepare: func(w *world) *catena.Call {
			call := w.client.NewCall(w.request("GET", "/", nil))
			w.client.Close()
			return call
		}},
		"executed before": {want: catena.ErrAlreadyExecuted, prepare: func(w *world) *catena.Call {
			call := w.client.NewCall(w.request("GET", "/", nil))
			finish(call)
			return call
		}},
		"canceled before": {want: context.Canceled, prepare: func(w *world) *catena.Call {
			call := w.client.NewCall(w.request("GET", "/", nil))
			call.Cancel()
			return call
		}},
		"nil request": {fails: true, prepare: func(w *world) *catena.Call { return w.client.NewCall(nil) }},
		"no URL":      {fails: true, prepare: func(w *world) *catena.Call { return w.client.NewCall(&http.Request{}) }},
		"invalid option": {fails: true, prepare: func(w *world) *catena.Call {
			return w.client.NewCall(w.request("GET", "/", nil), catena.WithReadTimeout(-1))
		}},
		"unknown host": {fails: true, prepare: func(w *world) *catena.Call {
			return w.client.NewCall(w.requestTo("GET", w.url("unknown.test", "/"), nil))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, []string{h1, h2}, func(w *world) {
				w.serve(answer)
				got := enqueue(test.prepare(w))
				time.Sleep(time.Minute)
				o := w.only(got)
				if o.goroutine == goroutine() {
					w.Error("the callback ran on the caller's goroutine")
				}
				if failed := o.err != nil; failed != (test.fails || test.want != nil) || !errors.Is(o.err, test.want) && !test.fails {
					w.Errorf("error %v, want %v", o.err, test.want)
				}
				var ours *catena.CallError
				if o.err != nil && !errors.As(o.err, &ours) {
					w.Errorf("the error is a %T, want a *CallError", o.err)
				}
			})
		})
	}
}

func TestEnqueuedCallThatWaitsLeavesAtOnce(t *testing.T) {
	deadline := 300 * time.Millisecond
	for name, test := range map[string]struct {
		end  func(w *world, call *catena.Call, cancel func())
		want error
	}{
		"Cancel":       {func(_ *world, call *catena.Call, _ func()) { call.Cancel() }, context.Canceled},
		"context":      {func(_ *world, _ *catena.Call, cancel func()) { cancel() }, context.Canceled},
		"deadline":     {func(*world, *catena.Call, func()) { time.Sleep(deadline) }, context.DeadlineExceeded},
		"CancelAll":    {func(w *world, _ *catena.Call, _ func()) { w.client.Dispatcher().CancelAll() }, context.Canceled},
		"Client.Close": {func(w *world, _ *catena.Call, _ func()) { w.client.Close() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, []string{h1, h2}, func(w *world) {
				var asked atomic.Int64
				w.serve(func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/waits" {
						asked.Add(1)
					}
					slow(rw, r)
				})
				d := w.client.Dispatcher()
				d.SetMaxCalls(1)
				first := enqueue(w.client.NewCall(w.request("GET", "/first", nil)))
				ctx, cancel := context.WithTimeout(w.Context(), deadline)
				defer cancel()
				body := &counted{Reader: strings.NewReader("Hello")}
				call := w.client.NewCall(w.request("POST", "/waits", body).WithContext(ctx))
				got := enqueue(call)
				synctest.Wait()
				if d.QueuedCount() != 1 {
					w.Fatalf("%d calls wait", d.QueuedCount())
				}
				test.end(w, call, cancel)
				o := w.only(got)
				if !errors.Is(o.err, test.want) {
					w.Errorf("error %v, want %v", o.err, test.want)
				}
				if !call.IsCanceled() {
					w.Error("the call is not canceled")
				}
				if n := body.closes.Load(); n != 1 {
					w.Errorf("the body was closed %d times", n)
				}
				if n := d.QueuedCount(); n != 0 {
					w.Errorf("%d calls wait still", n)
				}
				time.Sleep(time.Minute)
				<-first
				if asked.Load() != 0 || len(got) != 0 {
					w.Error("the call ran after all")
				}
			})
		})
	}
}

// What its listener does when a call begins to wait must not keep it waiting.
func TestEnqueuedCallCanceledByItsListener(t *testing.T) {
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(slow)
		w.client.Dispatcher().SetMaxCalls(1)
		first := enqueue(w.client.NewCall(w.request("GET", "/", nil)))
		got := enqueue(w.client.NewCall(w.request("GET", "/", nil), catena.WithEventListener(&canceler{})))
		if o := w.only(got); !errors.Is(o.err, context.Canceled) {
			w.Errorf("error %v, want context.Canceled", o.err)
		}
		time.Sleep(time.Minute)
		if o := w.only(first); o.err != nil {
			w.Error(o.err)
		}
	})
}

// canceler cancels a call that has to wait.
type canceler struct{ event.NopListener }

func (*canceler) DispatcherQueueStart(c event.Call) { c.(*catena.Call).Cancel() }

func TestEnqueuedCallsTimeoutBeginsBehindTheQueue(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(slow)
		w.client.Dispatcher().SetMaxCalls(1)
		var all []<-chan outcome
		for range 4 { // the last one waits for three seconds
			all = append(all, enqueue(w.client.NewCall(w.request("GET", "/", nil), catena.WithCallTimeout(1500*time.Millisecond))))
		}
		time.Sleep(time.Minute)
		for _, got := range all {
			if o := w.only(got); o.err != nil {
				w.Error(o.err)
			}
		}
	})
}

func TestEnqueuedCallThatPanics(t *testing.T) {
	boom := errors.New("boom")
	for _, place := range []string{"application", "network", "body", "body of unknown length"} {
		t.Run(place, func(t *testing.T) {
			overProtocols(t, onHTTP1, func(w *world) {
				w.serve(answer)
				var opt catena.Option
				blow := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
					resp, err := c.Proceed(c.Request())
					if err != nil {
						return nil, err
					}
					io.ReadFull(resp.Body, make([]byte, 1))
					panic(boom)
				})
				var body io.Reader
				switch place {
				case "application":
					opt = catena.WithInterceptor(blow)
				case "network":
					opt = catena.WithNetworkInterceptor(blow)
				default:
					opt, body = catena.WithUserAgent("x"), explosive{boom}
				}
				client, err := w.client.With(opt)
				if err != nil {
					w.Fatal(err)
				}
				req := w.request("POST", "/", body)
				if place == "body" {
					req.ContentLength = 5
				}
				got := enqueue(client.NewCall(req))
				time.Sleep(time.Minute)
				o := w.only(got)
				var panicked *catena.PanicError
				if !errors.As(o.err, &panicked) || panicked.Value != any(boom) || !errors.Is(o.err, boom) {
					w.Fatalf("error %v, want a *PanicError with boom", o.err)
				}
				// The first read of such a body is on a goroutine of its own.
				if place != "body of unknown length" && !strings.Contains(string(panicked.Stack), "enqueue_test.go") {
					w.Errorf("the stack does not tell where it was:\n%s", panicked.Stack)
				}
				if n := w.client.Pool().ConnectionCount(); n != 0 {
					w.Errorf("%d connections are left in the pool", n)
				}
				if n := w.client.Dispatcher().RunningCount(); n != 0 {
					w.Errorf("%d calls run still", n)
				}
			})
		})
	}
}

type explosive struct{ value any }

func (e explosive) Read([]byte) (int, error) { panic(e.value) }

// The callback holds the call's place, an open body does not.
func TestEnqueuedCallsPlaceIsTheCallbacks(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(answer)
		d := w.client.Dispatcher()
		d.SetMaxCalls(1)
		goOn := make(chan struct{})
		open := make(chan io.Closer, 1)
		w.client.NewCall(w.request("GET", "/", nil)).Enqueue(func(resp *http.Response, err error) {
			if err != nil {
				w.Error(err)
				return
			}
			<-goOn
			open <- resp.Body
		})
		next := enqueue(w.client.NewCall(w.request("GET", "/", nil)))
		time.Sleep(time.Minute)
		if len(next) != 0 || d.QueuedCount() != 1 || d.RunningCount() != 1 {
			w.Errorf("%d calls wait and %d run beside the callback", d.QueuedCount(), d.RunningCount())
		}
		close(goOn)
		time.Sleep(time.Minute)
		if o := w.only(next); o.err != nil {
			w.Error(o.err)
		}
		(<-open).Close()
	})
}

func TestEnqueueFromACallback(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(answer)
		w.client.Dispatcher().SetMaxCalls(1)
		var order []string
		done := make(chan struct{})
		var follow func(n int)
		follow = func(n int) {
			w.client.NewCall(w.request("GET", fmt.Sprint("/", n), nil)).Enqueue(func(resp *http.Response, err error) {
				if err != nil {
					w.Error(err)
				} else {
					resp.Body.Close()
				}
				order = append(order, fmt.Sprint(n))
				if n == 3 {
					close(done)
					return
				}
				follow(n + 1)
			})
		}
		follow(1)
		<-done
		if diff := cmp.Diff([]string{"1", "2", "3"}, order); diff != "" {
			w.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// The mistake is told where it is made, and the call can still be run.
func TestEnqueueWithoutCallback(t *testing.T) {
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(answer)
		call := w.client.NewCall(w.request("GET", "/", nil))
		func() {
			defer func() {
				if got := recover(); got != "catena: Enqueue: done is nil" {
					w.Errorf("panic %v", got)
				}
			}()
			call.Enqueue(nil)
		}()
		if _, err := finish(call); err != nil {
			w.Error(err)
		}
	})
}
