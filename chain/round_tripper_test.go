package chain_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
)

// serve is a server and a client with options, both closed with the test.
func serve(t *testing.T, h http.HandlerFunc, opts ...catena.Option) (*catena.Client, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := catena.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, s.URL
}

func hello(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "hello, "+r.Header.Get("X-Name"))
}

// An interceptor of the application's that proceeds again must have ended the
// body of the response before, whichever chain of its own it asks.
func TestProceedAgainWithOpenBody(t *testing.T) {
	plain := func(c chain.Chain) chain.Chain { return c }
	changed := func(c chain.Chain) chain.Chain {
		return c.With(func(c *chain.Config) { c.ReadTimeout = time.Minute })
	}
	end := map[string]func(*http.Response){
		"left open": func(*http.Response) {},
		"closed":    func(r *http.Response) { r.Body.Close() },
		"read":      func(r *http.Response) { io.Copy(io.Discard, r.Body) },
	}
	for name, of := range map[string]func(chain.Chain) chain.Chain{"its chain": plain, "a changed chain": changed} {
		for how, end := range end {
			t.Run(name+", "+how, func(t *testing.T) {
				i := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
					resp, err := of(c).Proceed(c.Request())
					if err != nil {
						return nil, err
					}
					end(resp)
					return of(c).Proceed(c.Request())
				})
				c, url := serve(t, hello, catena.WithInterceptor(i))
				resp, err := c.Get(t.Context(), url)
				if how == "left open" {
					if err == nil || !strings.Contains(err.Error(), "body of the response before is open") {
						t.Errorf("got %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			})
		}
	}
}

// middleware is an http.RoundTripper that adds a header and counts.
type middleware struct {
	next http.RoundTripper
	n    atomic.Int32
}

func (m *middleware) RoundTrip(req *http.Request) (*http.Response, error) {
	m.n.Add(1)
	req = req.Clone(req.Context())
	req.Header.Set("X-Name", "middleware")
	return m.next.RoundTrip(req)
}

func TestFromRoundTripper(t *testing.T) {
	var wraps int
	m := &middleware{}
	i := chain.FromRoundTripper(func(next http.RoundTripper) http.RoundTripper {
		wraps++
		m.next = next
		return m
	})
	for place, option := range map[string]catena.Option{
		"application": catena.WithInterceptor(i), "network": catena.WithNetworkInterceptor(i),
	} {
		c, url := serve(t, hello, option)
		for range 2 {
			resp, err := c.Get(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != "hello, middleware" || err != nil {
				t.Errorf("%s: got %q, %v", place, body, err)
			}
			if info, ok := chain.InfoOf(resp); !ok || info.Protocol != "http/1.1" || info.Connection == nil {
				t.Errorf("%s: the response's info is %v, %v", place, info, ok)
			}
			if c.Pool().IdleCount() != 1 {
				t.Errorf("%s: %d idle connections", place, c.Pool().IdleCount())
			}
		}
	}
	if wraps != 1 || m.n.Load() != 4 {
		t.Errorf("wrapped %d times, ran %d times", wraps, m.n.Load())
	}
}

// One interceptor twice in a chain, and two at a time, find each its own rest.
func TestFromRoundTripperTwice(t *testing.T) {
	var order []string
	layer := func(name string) chain.Interceptor {
		return chain.FromRoundTripper(func(next http.RoundTripper) http.RoundTripper {
			return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
				order = append(order, name)
				return next.RoundTrip(req)
			})
		})
	}
	a, b := layer("a"), layer("b")
	c, url := serve(t, hello, catena.WithInterceptor(a, b, a))
	resp, err := c.Get(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := strings.Join(order, ""); got != "aba" {
		t.Errorf("ran in the order %s", got)
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestFromRoundTripperThatReplacesTheContext(t *testing.T) {
	i := chain.FromRoundTripper(func(next http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
			return next.RoundTrip(req.WithContext(context.Background()))
		})
	})
	c, url := serve(t, hello, catena.WithInterceptor(i))
	_, err := c.Post(t.Context(), url, "text/plain", strings.NewReader("x"))
	if err == nil || !strings.Contains(err.Error(), "instead of deriving from it") {
		t.Errorf("got %v", err)
	}
}

func TestFromRoundTripperThatFails(t *testing.T) {
	boom := errors.New("boom")
	i := chain.FromRoundTripper(func(http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(*http.Request) (*http.Response, error) { return nil, boom })
	})
	c, url := serve(t, hello, catena.WithInterceptor(i))
	if _, err := c.Get(t.Context(), url); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

// Middleware that bounds the request by a context of its own ends the body too.
func TestFromRoundTripperWithTimeout(t *testing.T) {
	i := chain.FromRoundTripper(func(next http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithTimeout(req.Context(), 50*time.Millisecond)
			defer cancel()
			return next.RoundTrip(req.WithContext(ctx))
		})
	})
	hang := make(chan struct{})
	defer close(hang)
	c, url := serve(t, func(http.ResponseWriter, *http.Request) { <-hang }, catena.WithInterceptor(i))
	start := time.Now()
	_, err := c.Get(t.Context(), url)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	var ours *catena.TimeoutError
	if errors.As(err, &ours) {
		t.Errorf("the middleware's timeout is taken for the client's: %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A mistake is told where it is made.
func TestFromRoundTripperOfNothing(t *testing.T) {
	for want, wrap := range map[string]func(http.RoundTripper) http.RoundTripper{
		"catena: FromRoundTripper: wrap is nil":       nil,
		"catena: FromRoundTripper: wrap returned nil": func(http.RoundTripper) http.RoundTripper { return nil },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %q", got, want)
				}
			}()
			chain.FromRoundTripper(wrap)
		}()
	}
}
