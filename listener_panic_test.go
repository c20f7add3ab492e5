package catena_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/proxy"
)

// eventNames are the methods of a listener.
func eventNames[L any]() (names []string) {
	listener := reflect.TypeFor[L]()
	for i := range listener.NumMethod() {
		if m := listener.Method(i); m.IsExported() {
			names = append(names, m.Name)
		}
	}
	return names
}

// panicsAt makes a listener that panics at the first event of a name.
func panicsAt(w *world, name string) *intruder {
	i := newIntruder(w)
	armed := true
	i.do = func(at string) {
		if armed && at == name {
			armed = false
			panic("boom: " + name)
		}
	}
	return i
}

// A listener that panics breaks its call and nothing else: what was open is closed,
// and whoever waits for the call's end sees it.
func TestListenerPanics(t *testing.T) {
	names := append(eventNames[event.Listener](), eventNames[event.ConnectionListener]()...)
	for _, name := range names {
		if name == "CallStart" || name == "Canceled" || strings.HasPrefix(name, "Dispatcher") {
			continue // before the call has begun; beside it
		}
		t.Run(name, func(t *testing.T) {
			overProtocols(t, []string{h1, https1, h2}, func(w *world) {
				w.serve(func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/half" {
						cutHalfway(rw, r)
					}
					io.Copy(io.Discard, r.Body)
					answer(rw, r)
				})
				i := panicsAt(w, name)
				client := w.derive(w.client, catena.WithEventListener(i), catena.WithConnectionListener(event.JoinConnection(w.conns, i)))
				for _, path := range []string{"/", "/half", "/"} {
					w.carefully(client.NewCall(w.request("POST", path, strings.NewReader("Hello"))))
				}
				safely(func() { client.CloseIdleConnections() })
				synctest.Wait()
				ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
				defer cancel()
				if err := client.Shutdown(ctx); err != nil {
					w.Errorf("a call has not ended: %v", err)
				}
				if n := w.client.Pool().ConnectionCount(); n != 0 {
					w.Errorf("%d connections are left in the pool", n)
				}
			})
		})
	}
}

// carefully executes a call, whatever panics on the way.
func (w *world) carefully(call *catena.Call) {
	var resp *http.Response
	safely(func() { resp, _ = call.Execute() })
	if resp == nil {
		return
	}
	safely(func() { io.ReadAll(resp.Body) })
	safely(func() { resp.Body.Close() })
}

func safely(f func()) {
	defer func() { recover() }()
	f()
}

// What panics in the application's hooks leaves no socket and no open event.
func TestHookPanics(t *testing.T) {
	for name, opt := range map[string]catena.Option{
		"verifier": catena.WithHostnameVerifier(func(string, *tls.ConnectionState) error { panic("boom") }),
		"selector": catena.WithProxySelector(proxy.SelectorFunc(func(context.Context, *url.URL) ([]proxy.Proxy, error) { panic("boom") })),
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, overTLS, func(w *world) {
				w.serve(answer)
				client := w.derive(w.client, opt)
				w.carefully(client.NewCall(w.request("GET", "/", nil)))
				time.Sleep(time.Second) // until the server has heard of it
				if n := w.net.Open(); n != 0 {
					w.Errorf("%d ends of connections are open", n)
				}
			})
		})
	}
}

// A writer that panics while a body is copied to it leaves one that can be closed.
func TestWriterPanicsBesideTheBody(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(answer)
		resp, err := w.client.Do(w.request("GET", "/", nil))
		if err != nil {
			w.Fatal(err)
		}
		safely(func() { io.Copy(panickingWriter{}, resp.Body) })
		resp.Body.Close()
		if n := w.client.Pool().Stats(); n.Open != n.Idle {
			w.Errorf("the pool has %v", n)
		}
	})
}

type panickingWriter struct{}

func (panickingWriter) Write([]byte) (int, error) { panic("boom") }

// An enqueued call is told to done once, however it ends: nobody above it could
// recover.
func TestEnqueuedCallThatExplodes(t *testing.T) {
	interceptor := func(f func()) catena.Option {
		return catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
			f()
			return c.Proceed(c.Request())
		}))
	}
	at := func(name string) func(w *world) catena.Option {
		return func(w *world) catena.Option { return catena.WithEventListener(panicsAt(w, name)) }
	}
	for name, test := range map[string]struct {
		opt   func(w *world) catena.Option
		close func() error // of the request's body
		want  string
	}{
		"Goexit":             {opt: func(*world) catena.Option { return interceptor(runtime.Goexit) }, want: lifetime.ErrGoexit.Error()},
		"CallEnd":            {opt: at("CallEnd"), want: "panic: boom: CallEnd"},
		"CallFailed":         {opt: at("CallFailed"), close: func() error { panic("boom: close") }, want: "boom"},
		"ConnectionReleased": {opt: at("ConnectionReleased"), want: "panic: boom: ConnectionReleased"},
		"DispatcherQueueEnd": {opt: at("DispatcherQueueEnd"), want: "panic: boom: DispatcherQueueEnd"},
		"Close": {
			opt:   func(*world) catena.Option { return catena.WithUserAgent("any") },
			close: func() error { panic("boom: close") }, want: "panic: boom: close",
		},
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, []string{h1, h2}, func(w *world) {
				w.serve(func(rw http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
				client := w.derive(w.client, test.opt(w))
				client.Dispatcher().SetMaxCalls(1)
				release := make(chan struct{})
				w.client.NewCall(w.request("GET", "/", nil)).Enqueue(func(resp *http.Response, _ error) {
					<-release
					resp.Body.Close()
				})
				req := w.request("POST", "/", nil)
				if test.close != nil {
					req.Body, req.ContentLength = &closing{strings.NewReader("Hello"), test.close}, 5
				}
				got := enqueue(client.NewCall(req))
				close(release)
				time.Sleep(time.Minute)
				o := w.only(got)
				var ours *catena.CallError
				if !errors.As(o.err, &ours) || !strings.Contains(o.err.Error(), test.want) {
					w.Errorf("got %v, want %s", o.err, test.want)
				}
				synctest.Wait()
				if stats := w.client.Pool().Stats(); stats.Open != stats.Idle {
					w.Errorf("the pool has %v", stats)
				}
				if n := w.client.Dispatcher().RunningCount(); n != 0 {
					w.Errorf("%d calls run still", n)
				}
			})
		})
	}
}

// closing is a body with a Close of the test's.
type closing struct {
	io.Reader
	close func() error
}

func (c *closing) Close() error { return c.close() }
