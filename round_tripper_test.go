package catena_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/chain"
)

func TestRoundTripperServesAnHTTPClient(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		var seen []string
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			cookie := "none"
			if c, err := r.Cookie("session"); err == nil {
				cookie = c.Value
			}
			seen = append(seen, r.Method+" "+r.URL.Path+" "+string(body)+" cookie="+cookie)
			switch r.URL.Path {
			case "/login":
				http.SetCookie(rw, &http.Cookie{Name: "session", Value: "42", Path: "/"})
				http.Redirect(rw, r, "/home", http.StatusFound)
			case "/again":
				http.Redirect(rw, r, "/target", http.StatusTemporaryRedirect)
			default:
				io.WriteString(rw, "welcome")
			}
		})
		jar, _ := cookiejar.New(nil)
		var asked []string
		client := &http.Client{Transport: w.client.RoundTripper(), Jar: jar, CheckRedirect: func(req *http.Request, via []*http.Request) error {
			asked = append(asked, via[len(via)-1].URL.Path+" to "+req.URL.Path)
			return nil
		}}
		got := w.slurp(client.Do(w.request("POST", "/login", strings.NewReader("name"))))
		w.slurp(client.Do(w.request("PUT", "/again", strings.NewReader("text"))))
		if got != "welcome" {
			w.Errorf("body %q", got)
		}
		want := []string{
			"POST /login name cookie=none", "GET /home  cookie=42",
			"PUT /again text cookie=42", "PUT /target text cookie=42",
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			w.Errorf("the server saw (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"/login to /home", "/again to /target"}, asked); diff != "" {
			w.Errorf("CheckRedirect was asked (-want +got):\n%s", diff)
		}
		if n := w.client.Pool().ConnectionCount(); n != 1 {
			w.Errorf("%d connections for calls in a row, want 1", n)
		}
		client.CloseIdleConnections()
		if n := w.client.Pool().ConnectionCount(); n != 0 {
			w.Errorf("%d connections after CloseIdleConnections", n)
		}
	}, catena.WithCookieJar(unwantedJar{t}))
}

// unwantedJar is a jar that a RoundTripper is not to ask.
type unwantedJar struct{ t *testing.T }

func (j unwantedJar) SetCookies(*url.URL, []*http.Cookie) {
	j.t.Error("the client's jar was given cookies")
}
func (j unwantedJar) Cookies(*url.URL) []*http.Cookie {
	j.t.Error("the client's jar was asked for cookies")
	return nil
}

func TestRoundTripperObeysTheTimeoutOfHTTPClient(t *testing.T) {
	for _, path := range []string{"/silent", "/halfway"} {
		t.Run(path[1:], func(t *testing.T) {
			overProtocols(t, allProtocols, func(w *world) {
				w.serve(func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/halfway" {
						rw.Header().Set("Content-Length", "10")
						io.WriteString(rw, "half ")
						rw.(http.Flusher).Flush()
					}
					<-r.Context().Done()
				})
				client := &http.Client{Transport: w.client.RoundTripper(), Timeout: 3 * time.Second}
				began := time.Now()
				resp, err := client.Do(w.request("GET", path, nil))
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				var timeout net.Error
				if !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
					w.Errorf("error %v, want a timeout that is context.DeadlineExceeded", err)
				}
				if took := time.Since(began); took != 3*time.Second {
					w.Errorf("it took %v, want 3 s", took)
				}
			})
		})
	}
}

func TestRoundTripperReturnsEveryStatusAsItIs(t *testing.T) {
	for _, head := range []string{
		"301 Moved Permanently\r\nLocation: /elsewhere",
		"303 See Other\r\nLocation: /elsewhere",
		"304 Not Modified",
		"308 Permanent Redirect\r\nLocation: /elsewhere",
		"401 Unauthorized\r\nWWW-Authenticate: Basic realm=x",
		"407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=x",
		"408 Request Timeout",
		"417 Expectation Failed",
		"421 Misdirected Request",
		"503 Service Unavailable\r\nRetry-After: 0",
	} {
		t.Run(head[:3], func(t *testing.T) {
			overProtocols(t, []string{h1}, func(w *world) {
				count := w.replies("HTTP/1.1 " + head + "\r\nContent-Length: 0\r\n\r\n")
				resp, err := w.client.RoundTripper().RoundTrip(w.request("POST", "/", strings.NewReader("once")))
				w.slurp(resp, err)
				if got := resp.Status[:3]; got != head[:3] {
					w.Errorf("status %s", got)
				}
				if n := count.Load(); n != 1 {
					w.Errorf("%d requests were sent, want 1", n)
				}
			})
		})
	}
}

// shape is what of a request must not change.
func shape(req *http.Request) *http.Request {
	c := *req
	c.Body, c.GetBody = nil, nil
	if req.URL != nil {
		u := *req.URL
		c.URL = &u
	}
	c.Header, c.Trailer = req.Header.Clone(), req.Trailer.Clone()
	return &c
}

func diffRequests(want, got *http.Request) string {
	return cmp.Diff(want, got, cmpopts.IgnoreUnexported(http.Request{}), cmp.AllowUnexported(url.Userinfo{}))
}

func TestRoundTripperNeverChangesTheRequest(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		authorized := make(chan string, 1)
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			authorized <- r.Header.Get("Authorization")
			answer(rw, r)
		})
		body := &counted{Reader: strings.NewReader("Hello")}
		req := w.request("POST", "/a%2Fb?q=1", body)
		req.URL.User = url.UserPassword("user", "secret")
		req.Header.Set("X-Own", "1")
		req.Header["User-Agent"] = []string{""}
		req.Host = "virtual.test"
		req.Trailer = http.Header{"X-Sum": {"5"}}
		req.TransferEncoding = []string{"chunked"}
		before := shape(req)
		resp, err := w.client.RoundTripper().RoundTrip(req)
		if got := w.slurp(resp, err); got != "abc" {
			w.Errorf("body %q", got)
		}
		if diff := diffRequests(before, shape(req)); diff != "" {
			w.Errorf("the request changed (-before +after):\n%s", diff)
		}
		if req.Body != io.ReadCloser(body) {
			w.Error("the request has another body")
		}
		if n := body.closes.Load(); n != 1 {
			w.Errorf("the body was closed %d times", n)
		}
		if resp.Request != req {
			w.Error("the response's request is not the one given")
		}
		if _, ok := catena.InfoOf(resp); ok {
			w.Error("InfoOf knows of a RoundTripper's response")
		}
		if got := <-authorized; got != "" {
			w.Errorf("user info of the URL was sent: %q", got)
		}
	}, catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		req := c.Request().Clone(c.Request().Context())
		req.Header.Set("X-Added", "by an interceptor")
		return c.Proceed(req)
	})))
}

func TestRoundTripperTakesOneRequestFromManyGoroutines(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(answer)
		req := w.request("GET", "/", nil)
		before := shape(req)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				resp, err := w.client.RoundTripper().RoundTrip(req)
				if err != nil {
					w.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
		}
		all.Wait()
		if diff := diffRequests(before, shape(req)); diff != "" {
			w.Errorf("the request changed (-before +after):\n%s", diff)
		}
	})
}

func TestRoundTripperClosesTheBodyWhateverHappens(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, spoil := range map[string]func(w *world, req *http.Request) *http.Request{
		"no URL":         func(_ *world, req *http.Request) *http.Request { req.URL = nil; return req },
		"no host":        func(_ *world, req *http.Request) *http.Request { req.URL.Host = ""; return req },
		"invalid method": func(_ *world, req *http.Request) *http.Request { req.Method = "BAD METHOD"; return req },
		"invalid header": func(_ *world, req *http.Request) *http.Request { req.Header["X"] = []string{"a\nb"}; return req },
		"other scheme":   func(_ *world, req *http.Request) *http.Request { req.URL.Scheme = "ftp"; return req },
		"canceled":       func(_ *world, req *http.Request) *http.Request { return req.WithContext(canceled) },
		"unknown host":   func(_ *world, req *http.Request) *http.Request { req.URL.Host = "unknown.test"; return req },
		"nobody listens": func(_ *world, req *http.Request) *http.Request { return req },
		"closed client": func(w *world, req *http.Request) *http.Request {
			w.client.Close()
			return req
		},
		"no header": func(_ *world, req *http.Request) *http.Request { req.Header = nil; return req },
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, []string{h1}, func(w *world) {
				body := &counted{Reader: strings.NewReader("Hello")}
				req := spoil(w, w.request("POST", "/", body))
				before := shape(req)
				resp, err := w.client.RoundTripper().RoundTrip(req)
				if err == nil || resp != nil {
					w.Fatalf("response %v, error %v: want an error alone", resp, err)
				}
				var ours *catena.CallError
				if !errors.As(err, &ours) {
					w.Errorf("the error is a %T, want a *CallError", err)
				}
				if n := body.closes.Load(); n != 1 {
					w.Errorf("the body was closed %d times", n)
				}
				if diff := diffRequests(before, shape(req)); diff != "" {
					w.Errorf("the request changed (-before +after):\n%s", diff)
				}
			})
		})
	}
}

func TestRoundTripperBodiesThatNetHTTPPromises(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/204":
				rw.WriteHeader(http.StatusNoContent)
			case "/empty":
			default:
				rw.Header().Set("Trailer", "X-Sum")
				io.WriteString(rw, "abc")
				rw.(http.Flusher).Flush()
				rw.Header().Set("X-Sum", "3")
			}
		})
		for _, r := range []struct{ method, path, body string }{
			{"HEAD", "/", ""}, {"GET", "/204", ""}, {"GET", "/empty", ""}, {"GET", "/", "abc"},
		} {
			resp, err := w.client.RoundTripper().RoundTrip(w.request(r.method, r.path, nil))
			if err != nil {
				w.Fatal(err)
			}
			if resp.Body == nil {
				w.Fatalf("%s %s: nil body", r.method, r.path)
			}
			if got := w.slurp(resp, nil); got != r.body {
				w.Errorf("%s %s: body %q", r.method, r.path, got)
			}
			if r.body != "" && resp.Trailer.Get("X-Sum") != "3" {
				w.Errorf("trailer %v", resp.Trailer)
			}
			if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil {
				w.Errorf("%s %s: Read after Close gave %d, %v", r.method, r.path, n, err)
			}
		}
	})
}

// tagging is middleware made for net/http.
type tagging struct {
	next http.RoundTripper
	tag  string
}

func (t tagging) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Add("X-Tag", t.tag)
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		resp.Header.Add("X-Tag", t.tag)
	}
	return resp, err
}

func TestRoundTripperInAChainOfOthers(t *testing.T) {
	wrapped := catena.WithInterceptor(chain.FromRoundTripper(func(next http.RoundTripper) http.RoundTripper {
		return tagging{next, "inner"}
	}))
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			io.WriteString(rw, strings.Join(r.Header["X-Tag"], " "))
		})
		client := &http.Client{Transport: tagging{tagging{w.client.RoundTripper(), "middle"}, "outer"}}
		resp, err := client.Do(w.request("GET", "/", nil))
		if got := w.slurp(resp, err); got != "outer middle inner" {
			w.Errorf("the server saw the tags %q", got)
		}
		if diff := cmp.Diff([]string{"inner", "middle", "outer"}, resp.Header["X-Tag"]); diff != "" {
			w.Errorf("tags of the response (-want +got):\n%s", diff)
		}
	}, wrapped)
}

func TestRoundTripperRecoversSafely(t *testing.T) {
	overProtocols(t, onHTTP1, func(w *world) {
		var count atomic.Int64
		w.peer(func(c net.Conn) {
			c = w.secured(c)
			from := bufio.NewReader(c)
			for served := 0; ; served++ {
				req, err := http.ReadRequest(from)
				if err != nil {
					return
				}
				io.Copy(io.Discard, req.Body)
				count.Add(1)
				if served > 0 { // a connection serves one request and dies of the second
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		rt := w.client.RoundTripper()
		for range 2 {
			resp, err := rt.RoundTrip(w.request("GET", "/", nil))
			if got := w.slurp(resp, err); got != "ok" {
				w.Errorf("body %q", got)
			}
			if _, ok := catena.InfoOf(resp); ok {
				w.Error("InfoOf knows of a RoundTripper's response")
			}
		}
		if n := count.Load(); n != 3 {
			w.Errorf("the server had %d requests, want 3: one was sent again", n)
		}
		body := &counted{Reader: bytes.NewReader([]byte("once"))}
		if resp, err := rt.RoundTrip(w.request("POST", "/", body)); err == nil {
			resp.Body.Close()
			w.Error("a POST that may have been acted on was sent again")
		}
		if n := count.Load(); n != 4 {
			w.Errorf("the server had %d requests, want 4", n)
		}
	})
}

// net/http's Client says method and URL itself; the error has them all the same,
// and the events have it in full.
func TestRoundTripperErrorsSayNothingTwice(t *testing.T) {
	overProtocols(t, []string{h1}, func(w *world) {
		w.net.SetFaults(originAddr, simnet.Faults{Refuse: true})
		hc := &http.Client{Transport: w.client.RoundTripper()}
		url := w.url(origin, "/a")
		_, err := hc.Do(w.requestTo("GET", url, nil))
		var ours *catena.CallError
		if !errors.As(err, &ours) || ours.Method != "GET" || ours.URL != url {
			w.Fatalf("error %+v, want a *CallError of GET %s", err, url)
		}
		if n := strings.Count(err.Error(), url); n != 1 || strings.Contains(err.Error(), "GET") {
			w.Errorf("the text is %q", err)
		}
		if !strings.HasPrefix(fmt.Sprintf("%+v", ours), "dial tcp") {
			w.Errorf("in full: %+v", ours)
		}
		events := w.calls.Events()
		if last := events[len(events)-1]; !strings.HasPrefix(last.Err.Error(), "GET "+url+": ") {
			w.Errorf("the event has %q", last.Err)
		}
	})
}
