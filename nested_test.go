package catena_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// A client whose interceptor hands its calls to another client's RoundTripper.
func TestClientOnTopOfAnother(t *testing.T) {
	for name, through := range map[string]func(inner http.RoundTripper) chain.Interceptor{
		"interceptor": func(inner http.RoundTripper) chain.Interceptor {
			return chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) { return inner.RoundTrip(c.Request()) })
		},
		"FromRoundTripper": func(inner http.RoundTripper) chain.Interceptor {
			return chain.FromRoundTripper(func(http.RoundTripper) http.RoundTripper { return inner })
		},
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, allProtocols, func(w *world) {
				w.serve(func(rw http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/silent":
						hang(rw, r)
					case "/halfway":
						stopHalfway(rw, r)
					default:
						answer(rw, r)
					}
				})
				outer, err := catena.New(catena.WithInterceptor(through(w.client.RoundTripper())))
				if err != nil {
					w.Fatal(err)
				}
				defer outer.Close()
				body := &counted{Reader: strings.NewReader("Hello")}
				resp, err := outer.Do(w.request("POST", "/", body))
				if got := w.slurp(resp, err); got != "abc" {
					w.Errorf("body %q", got)
				}
				if n := body.closes.Load(); n != 1 {
					w.Errorf("the request body was closed %d times", n)
				}
				for _, path := range []string{"/silent", "/halfway"} {
					began := time.Now()
					_, err := finish(outer.NewCall(w.request("GET", path, nil), catena.WithCallTimeout(time.Second)))
					var timeout *catena.TimeoutError
					if !errors.As(err, &timeout) || timeout.Step != event.StepCall || timeout.After != time.Second {
						w.Errorf("%s: error %v, want the outer client's call timeout", path, err)
					}
					if took := time.Since(began); took != time.Second {
						w.Errorf("%s took %v", path, took)
					}
					call := outer.NewCall(w.request("GET", path, nil))
					time.AfterFunc(time.Second, call.Cancel)
					if _, err := finish(call); !errors.Is(err, context.Canceled) {
						w.Errorf("%s: error %v, want context.Canceled", path, err)
					}
				}
			})
		})
	}
}

// However many want to run a call, one does.
func TestCallRunsOnceForManyGoroutines(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		var served, ran, refused atomic.Int64
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			served.Add(1)
			answer(rw, r)
		})
		call := w.client.NewCall(w.request("GET", "/", nil))
		var all sync.WaitGroup
		note := func(err error) {
			switch {
			case err == nil:
				ran.Add(1)
			case errors.Is(err, catena.ErrAlreadyExecuted):
				refused.Add(1)
			default:
				w.Error(err)
			}
		}
		for i := range 16 {
			all.Go(func() {
				if i%2 == 0 {
					_, err := finish(call)
					note(err)
					return
				}
				note((<-enqueue(call)).err)
			})
		}
		all.Wait()
		if served.Load() != 1 || ran.Load() != 1 || refused.Load() != 15 {
			w.Errorf("%d requests, %d calls ran, %d were refused", served.Load(), ran.Load(), refused.Load())
		}
	})
}

// A plain HTTP proxy's 407 is answered by a client, and by the user of its
// RoundTripper.
func TestChallengeOfAPlainProxy(t *testing.T) {
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Proxy-Authorization") == "" {
				rw.Header().Set("Proxy-Authenticate", "Basic realm=x")
				rw.WriteHeader(http.StatusProxyAuthRequired)
				return
			}
			io.WriteString(rw, r.RequestURI)
		})
		target := "http://behind.test/path"
		w.do(w.requestTo("GET", target, nil), target)
		resp, err := w.client.RoundTripper().RoundTrip(w.requestTo("GET", target, nil))
		w.slurp(resp, err)
		if resp.StatusCode != http.StatusProxyAuthRequired {
			w.Errorf("the RoundTripper returns %s", resp.Status)
		}
	}, catena.WithProxy(proxy.Proxy{Type: proxy.HTTP, Host: other, Port: 8080}),
		catena.WithProxyAuthenticator(auth.Basic("user", "secret")))
}
