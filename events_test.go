package catena_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/proxy"
)

// answer writes "abc", whatever is asked.
func answer(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	io.WriteString(w, "abc")
}

// answeredEarly posts a body without end to a server that does not want it.
func (w *world) answeredEarly() {
	w.serve(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "close")
		rw.WriteHeader(http.StatusRequestEntityTooLarge)
	})
	endless := &endlessBody{closed: make(chan struct{})}
	w.do(w.request("POST", "/", endless), "")
	endless.checkClosed(w.T)
}

// One file of testdata/events for each scenario: see there what a call tells.
func TestEventsOfSuccess(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "first-call", run: func(w *world) {
			w.serve(answer)
			w.get("/", "abc")
		}},
		{name: "pooled-second-call", run: func(w *world) {
			w.serve(answer)
			w.get("/first", "abc")
			w.get("/second", "abc")
		}},
		{name: "ip-literal", run: func(w *world) {
			w.serve(answer)
			w.do(w.requestTo("GET", w.url("192.0.2.1", "/"), nil), "abc")
		}},
		{name: "empty-body", run: func(w *world) {
			w.serve(func(http.ResponseWriter, *http.Request) {})
			w.get("/", "")
		}},
		{name: "head", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, _ *http.Request) { rw.Header().Set("Content-Length", "3") })
			w.do(w.request("HEAD", "/", nil), "")
		}},
		{name: "chunked-with-trailers", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Trailer", "Checksum")
				io.WriteString(rw, "abc")
				rw.(http.Flusher).Flush()
				io.WriteString(rw, "def")
				rw.Header().Set("Checksum", "1")
			})
			resp, err := w.client.Do(w.request("GET", "/", nil))
			if err != nil {
				w.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if string(body) != "abcdef" || err != nil || resp.Trailer.Get("Checksum") != "1" {
				w.Errorf("body %q, %v, trailer %v", body, err, resp.Trailer)
			}
		}},
		{name: "post-known-length", run: func(w *world) {
			w.serve(answer)
			w.do(w.request("POST", "/", strings.NewReader("Hello")), "abc")
		}},
		{name: "post-unknown-length", run: func(w *world) {
			w.serve(answer)
			w.do(w.request("POST", "/", bodyOf("Hello")), "abc")
		}},
		{name: "post-empty", run: func(w *world) {
			w.serve(answer)
			w.do(w.request("POST", "/", bodyOf("")), "abc")
		}},
		{name: "early-hints", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Link", "</style.css>; rel=preload")
				rw.WriteHeader(http.StatusEarlyHints)
				answer(rw, r)
			})
			w.get("/", "abc")
		}},
		{name: "queued", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Second)
				answer(rw, r)
			})
			w.client.Dispatcher().SetMaxCalls(1)
			done := make(chan error, 2)
			for _, path := range []string{"/first", "/second"} {
				w.client.NewCall(w.request("GET", path, nil)).Enqueue(func(resp *http.Response, err error) {
					if err == nil {
						_, err = io.ReadAll(resp.Body)
						resp.Body.Close()
					}
					done <- err
				})
			}
			for range 2 {
				if err := <-done; err != nil {
					w.Error(err)
				}
			}
		}},
		{name: "plain-proxy", over: []string{h1}, opts: func(*world) []catena.Option {
			return []catena.Option{catena.WithProxy(proxy.Proxy{Type: proxy.HTTP, Host: other, Port: 8080})}
		}, run: func(w *world) {
			w.serve(answer)
			w.get("/first", "abc")
			w.do(w.requestTo("GET", w.url(twin, "/"), nil), "abc")
		}},
		{name: "early-response", over: onHTTP1, run: func(w *world) { w.answeredEarly() }},
		{name: "early-response-duplex", over: onHTTP2, beside: []string{"RequestFailed"},
			run: func(w *world) { w.answeredEarly() }},
	})
}

func TestEventsOfFollowUps(t *testing.T) {
	redirect := func(to string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/from" {
				rw.Header().Set("Location", to)
				rw.WriteHeader(http.StatusFound)
			}
		}
	}
	runScenarios(t, []scenario{
		{name: "redirect-same-host", run: func(w *world) {
			w.serve(redirect("/to"))
			w.get("/from", "")
		}},
		{name: "redirect-other-host", run: func(w *world) {
			w.serve(redirect(w.url(other, "/to")))
			w.get("/from", "")
		}},
		{name: "redirect-with-body", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				redirect("/to")(rw, r)
				answer(rw, r)
			})
			w.get("/from", "abc")
		}},
		{name: "redirect-with-close", over: onHTTP1, run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Connection", "close")
				redirect("/to")(rw, r)
			})
			w.get("/from", "")
		}},
		{name: "too-many-follow-ups", opts: func(*world) []catena.Option {
			return []catena.Option{catena.WithMaxFollowUps(1)}
		}, run: func(w *world) {
			w.serve(redirect("/from"))
			w.fail(w.request("GET", "/from", nil))
		}},
		{name: "authenticate", opts: func(*world) []catena.Option {
			return []catena.Option{catena.WithAuthenticator(auth.Basic("user", "secret"))}
		}, run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				if _, _, ok := r.BasicAuth(); !ok {
					rw.Header().Set("WWW-Authenticate", `Basic realm="test"`)
					rw.WriteHeader(http.StatusUnauthorized)
					return
				}
				answer(rw, r)
			})
			w.get("/", "abc")
		}},
		{name: "continue-fulfilled", run: func(w *world) {
			w.serve(answer) // reading the body asks for it
			w.do(expecting(w), "abc")
		}},
		{name: "continue-refused", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(http.StatusForbidden)
			})
			w.do(expecting(w), "")
		}},
		{name: "continue-silent", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				time.Sleep(5 * time.Second)
				answer(rw, r)
			})
			w.do(expecting(w), "abc")
		}},
	})
}

func expecting(w *world) *http.Request {
	req := w.request("POST", "/", strings.NewReader("Hello"))
	req.Header.Set("Expect", "100-continue")
	return req
}

func TestEventsOfInterceptors(t *testing.T) {
	application := func(f chain.InterceptorFunc) func(*world) []catena.Option {
		return func(*world) []catena.Option { return []catena.Option{catena.WithInterceptor(f)} }
	}
	network := func(f chain.InterceptorFunc) func(*world) []catena.Option {
		return func(*world) []catena.Option { return []catena.Option{catena.WithNetworkInterceptor(f)} }
	}
	runScenarios(t, []scenario{
		{name: "short-circuit", opts: application(func(c chain.Chain) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Request: c.Request(), Body: io.NopCloser(strings.NewReader("own"))}, nil
		}), run: func(w *world) {
			w.get("/", "own")
		}},
		{name: "proceeds-twice", opts: application(func(c chain.Chain) (*http.Response, error) {
			resp, err := c.Proceed(c.Request())
			if err != nil {
				return nil, err
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return c.Proceed(c.Request())
		}), run: func(w *world) {
			w.serve(answer)
			w.get("/", "abc")
		}},
		{name: "network-interceptor-buffers", opts: network(func(c chain.Chain) (*http.Response, error) {
			resp, err := c.Proceed(c.Request())
			if err != nil {
				return nil, err
			}
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				return nil, err
			}
			resp.Body.Close()
			resp.Body = io.NopCloser(strings.NewReader(string(text)))
			return resp, nil
		}), run: func(w *world) {
			w.serve(answer)
			w.get("/", "abc")
		}},
		{name: "interceptor-loses-body", opts: network(func(c chain.Chain) (*http.Response, error) {
			resp, err := c.Proceed(c.Request())
			if err == nil {
				resp.Body = io.NopCloser(strings.NewReader("own"))
			}
			return resp, err
		}), run: func(w *world) {
			w.serve(answer)
			w.get("/", "own")
		}},
		{name: "network-interceptor-fails-late", opts: network(func(c chain.Chain) (*http.Response, error) {
			if _, err := c.Proceed(c.Request()); err != nil {
				return nil, err
			}
			return nil, io.ErrNoProgress
		}), run: func(w *world) {
			w.serve(answer)
			w.fail(w.request("GET", "/", nil))
		}},
		{name: "panic-before", opts: application(func(chain.Chain) (*http.Response, error) { panic("boom") }),
			run: func(w *world) { w.panics(w.request("GET", "/", nil)) }},
		{name: "panic-after", opts: network(panicsAfter), run: func(w *world) {
			w.serve(answer)
			w.panics(w.request("GET", "/", nil))
		}},
		{name: "panic-in-body", run: func(w *world) {
			w.serve(answer)
			req := w.request("POST", "/", hidden{panicking{}})
			req.ContentLength = 5
			w.panics(req)
		}},
	})
}

// panicsAfter is a network interceptor.
var panicsAfter = chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
	c.Proceed(c.Request())
	panic("boom")
})

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("boom") }

// panics executes a request that has to panic.
func (w *world) panics(req *http.Request) {
	w.Helper()
	defer func() {
		if recover() != "boom" {
			w.Error("the panic does not go on")
		}
	}()
	w.client.Do(req)
}

// Events tell when things happen, not when they are asked for.
func TestTimesOfEvents(t *testing.T) {
	const pause = 250 * time.Millisecond
	wait := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		time.Sleep(pause)
		return c.Proceed(c.Request())
	})
	inWorld(t, nil, func(*world) []catena.Option {
		return []catena.Option{catena.WithInterceptor(wait), catena.WithNetworkInterceptor(wait)}
	}, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			time.Sleep(pause)
			rw.Header().Set("Content-Length", "3")
			rw.(http.Flusher).Flush()
			time.Sleep(pause)
			answer(rw, r)
		})
		w.get("/", "abc")
		for _, size := range []int64{5, 100 << 10} { // written alone, and watched
			w.calls.Reset()
			req := w.request("POST", "/", &slowReader{bytes.NewReader(make([]byte, size)), pause})
			req.ContentLength = size
			w.do(req, "abc")
			want := map[string]time.Duration{ // since the event before
				"ReuseDecision":        pause,             // the application interceptor
				"RequestHeadersStart":  pause,             // the network interceptor
				"RequestBodyEnd":       pause,             // the body's first byte
				"ResponseHeadersStart": pause + 2*latency, // the server
				"ResponseBodyStart":    pause,             // the server again
			}
			var last time.Time
			for _, e := range w.calls.Events() {
				took := e.At.Sub(last).Round(time.Millisecond)
				if !last.IsZero() && took != want[e.Name] {
					w.Errorf("%d bytes: %s comes after %v, want %v", size, e.Name, took, want[e.Name])
				}
				last = e.At
			}
		}
	})
}

// slowReader waits before its first Read.
type slowReader struct {
	io.Reader
	pause time.Duration
}

func (r *slowReader) Read(p []byte) (int, error) {
	time.Sleep(r.pause)
	r.pause = 0
	return r.Reader.Read(p)
}
