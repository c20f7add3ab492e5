package chain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/route"
)

// owner is the call that a Run works for.
type owner struct{ request *http.Request }

func (owner) ID() uint64                               { return 7 }
func (o owner) Request() *http.Request                 { return o.request }
func (owner) RedactedHeader(h http.Header) http.Header { return h }
func (owner) RedactedURL(u *url.URL) string            { return u.Redacted() }

func pass(c chain.Chain) (*http.Response, error) { return c.Proceed(c.Request()) }

// line is a chain without a network: application interceptors, three links in the
// place of the engine's, network interceptors, and one that answers.
type line struct {
	application, network []chain.Interceptor
	answer               chain.InterceptorFunc // nil: 200 without body
}

func config() *chain.Config {
	return &chain.Config{
		Network:                 &route.Network{},
		Pool:                    connection.NewPool(connection.PoolOptions{}),
		MaxResponseHeaderBytes:  1,
		MaxResponseHeaderFields: 1,
	}
}

func (l line) run(t *testing.T) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://a.test/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer := l.answer
	if answer == nil {
		answer = func(chain.Chain) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil }
	}
	var life lifetime.Context
	life.Init(req.Context(), nil)
	defer life.Finish()
	allocation := &connection.StreamAllocation{}
	allocation.Init(owner{req}, nil, event.NopListener{}, &life, &route.Database{})
	all := append([]chain.Interceptor{}, l.application...)
	for range 3 {
		all = append(all, chain.InterceptorFunc(pass))
	}
	all = append(all, l.network...)
	all = append(all, answer)
	r := &chain.Run{
		Interceptors: all, Application: len(l.application),
		Call: owner{req}, Listener: event.NopListener{}, Allocation: allocation,
	}
	return r.Start(req, config())
}

// named is an interceptor that tells its name.
type named struct {
	name      string
	intercept func(chain.Chain) (*http.Response, error)
}

func (n named) String() string                                  { return n.name }
func (n named) Intercept(c chain.Chain) (*http.Response, error) { return n.intercept(c) }

// typed has no name but its type.
type typed struct{}

func (typed) Intercept(chain.Chain) (*http.Response, error) { return nil, nil }

func answersNothing(chain.Chain) (*http.Response, error) { return nil, nil }

func TestOrder(t *testing.T) {
	var log []string
	logging := func(name string) chain.Interceptor {
		return chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
			log = append(log, name)
			resp, err := c.Proceed(c.Request())
			log = append(log, "-"+name)
			return resp, err
		})
	}
	l := line{}
	for i := range 6 { // more than a call has room for without asking for memory
		l.application = append(l.application, logging(fmt.Sprint("a", i)))
		l.network = append(l.network, logging(fmt.Sprint("n", i)))
	}
	if _, err := l.run(t); err != nil {
		t.Fatal(err)
	}
	want := "a0 a1 a2 a3 a4 a5 n0 n1 n2 n3 n4 n5 -n5 -n4 -n3 -n2 -n1 -n0 -a5 -a4 -a3 -a2 -a1 -a0"
	if got := strings.Join(log, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What interceptors are held to: the error names the one that broke it.
func TestContract(t *testing.T) {
	twice := func(c chain.Chain) (*http.Response, error) {
		if _, err := c.Proceed(c.Request()); err != nil {
			return nil, err
		}
		return c.Proceed(c.Request())
	}
	to := func(change func(u *url.URL)) func(chain.Chain) (*http.Response, error) {
		return func(c chain.Chain) (*http.Response, error) {
			req := c.Request().Clone(c.Request().Context())
			change(req.URL)
			return c.Proceed(req)
		}
	}
	short := func(chain.Chain) (*http.Response, error) { return &http.Response{StatusCode: 201}, nil }
	for name, tc := range map[string]struct {
		application, network func(chain.Chain) (*http.Response, error)
		says                 string // "": no error
	}{
		"both pass on":                       {pass, pass, ""},
		"application answers itself":         {short, nil, ""},
		"application proceeds twice":         {twice, nil, ""},
		"application changes the host":       {to(func(u *url.URL) { u.Host = "b.test" }), nil, ""},
		"application answers nothing":        {answersNothing, nil, "the one returned neither a response nor an error"},
		"network answers nothing":            {nil, answersNothing, "the one returned neither a response nor an error"},
		"network answers itself":             {nil, short, "network interceptor the one must call Proceed exactly once"},
		"network proceeds twice":             {nil, twice, "network interceptor the one must call Proceed exactly once"},
		"network changes the host":           {nil, to(func(u *url.URL) { u.Host = "b.test" }), "network interceptor the one must keep host and port"},
		"network changes the port":           {nil, to(func(u *url.URL) { u.Host = "a.test:81" }), "network interceptor the one must keep host and port"},
		"network changes the scheme":         {nil, to(func(u *url.URL) { u.Scheme = "https" }), "network interceptor the one must keep host and port"},
		"network breaks the host":            {nil, to(func(u *url.URL) { u.Host = "a.test:0" }), "network interceptor the one must keep host and port"},
		"network writes the same host":       {nil, to(func(u *url.URL) { u.Host = "A.test:80" }), ""},
		"network changes the path":           {nil, to(func(u *url.URL) { u.Path = "/y" }), ""},
		"application proceeds with nil":      {func(c chain.Chain) (*http.Response, error) { return c.Proceed(nil) }, nil, "the one proceeds with a nil request"},
		"application proceeds without a URL": {func(c chain.Chain) (*http.Response, error) { return c.Proceed(&http.Request{}) }, nil, "the one proceeds with a nil request or URL"},
		"network changes the settings": {nil, func(c chain.Chain) (*http.Response, error) {
			return c.With(func(*chain.Config) {}).Proceed(c.Request())
		}, "network interceptor the one changes the settings"},
		"application makes invalid settings": {func(c chain.Chain) (*http.Response, error) {
			return c.With(func(c *chain.Config) { c.ReadTimeout = -1 }).Proceed(c.Request())
		}, nil, "interceptor the one: invalid settings: read timeout is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			l := line{}
			if tc.application != nil {
				l.application = []chain.Interceptor{named{"the one", tc.application}}
			}
			if tc.network != nil {
				l.network = []chain.Interceptor{named{"the one", tc.network}}
			}
			resp, err := l.run(t)
			switch {
			case tc.says == "" && (err != nil || resp.Body == nil):
				t.Errorf("got %v, %v", resp, err)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

func TestInterceptorNames(t *testing.T) {
	for want, i := range map[string]chain.Interceptor{
		"chain_test.typed":          typed{},
		"chain_test.answersNothing": chain.InterceptorFunc(answersNothing),
		"somebody":                  named{"somebody", answersNothing},
	} {
		_, err := line{application: []chain.Interceptor{i}}.run(t)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in: %v", want, err)
		}
	}
}

func TestBodyIsNeverNil(t *testing.T) {
	resp, err := line{}.run(t)
	if err != nil || resp.Body != http.NoBody {
		t.Errorf("got %v, %v", resp, err)
	}
}

// An interceptor's own answer is a response like others; one that has a Request
// stays as it is.
func TestOwnAnswerIsCompleted(t *testing.T) {
	changed, err := http.NewRequestWithContext(t.Context(), "GET", "http://a.test/changed", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ answer, want http.Response }{
		"nothing but a status": {
			http.Response{StatusCode: 401},
			http.Response{StatusCode: 401, Status: "401 Unauthorized", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: changed},
		},
		"a status without a name": {
			http.Response{StatusCode: 599, Proto: "HTTP/2.0", ProtoMajor: 2, Header: http.Header{"A": {"b"}}},
			http.Response{StatusCode: 599, Status: "599", Proto: "HTTP/2.0", ProtoMajor: 2, Header: http.Header{"A": {"b"}}, Request: changed},
		},
		"with a request": {
			http.Response{StatusCode: 200, Request: &http.Request{Method: "PUT"}},
			http.Response{StatusCode: 200, Request: &http.Request{Method: "PUT"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := line{application: []chain.Interceptor{
				chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) { return c.Proceed(changed) }),
				chain.InterceptorFunc(func(chain.Chain) (*http.Response, error) { return &tc.answer, nil }),
			}}
			got, err := l.run(t)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Body = http.NoBody
			if diff := cmp.Diff(&tc.want, got, cmp.Comparer(func(a, b *http.Request) bool { return a == b || a.Method == "PUT" && b.Method == "PUT" })); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// With changes a copy, for the links below alone.
func TestWith(t *testing.T) {
	var seen []time.Duration
	look := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		seen = append(seen, c.Config().ReadTimeout)
		return c.Proceed(c.Request())
	})
	change := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		changed := c.With(func(c *chain.Config) { c.ReadTimeout = time.Second })
		if c.Config().ReadTimeout != 0 || changed.Config().ReadTimeout != time.Second {
			t.Error("the wrong chain changed")
		}
		if _, err := changed.Proceed(c.Request()); err != nil {
			return nil, err
		}
		return c.Proceed(c.Request())
	})
	_, err := line{application: []chain.Interceptor{look, change, look}, network: []chain.Interceptor{look}}.run(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{0, time.Second, time.Second, 0, 0}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
}

func TestLinkKnowsItsCall(t *testing.T) {
	i := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		if c.Call().ID() != 7 || c.Connection() != nil {
			t.Errorf("call %d, connection %v", c.Call().ID(), c.Connection())
		}
		return c.Proceed(c.Request())
	})
	if _, err := (line{application: []chain.Interceptor{i}}).run(t); err != nil {
		t.Fatal(err)
	}
}

func TestErrorWins(t *testing.T) {
	boom := errors.New("boom")
	resp, err := line{answer: func(chain.Chain) (*http.Response, error) {
		return &http.Response{Body: io.NopCloser(strings.NewReader(""))}, boom
	}}.run(t)
	if resp != nil || err != boom {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestConfigValidate(t *testing.T) {
	for name, change := range map[string]func(*chain.Config){
		"":                               func(*chain.Config) {},
		"connect timeout":                func(c *chain.Config) { c.ConnectTimeout = -1 },
		"read timeout":                   func(c *chain.Config) { c.ReadTimeout = -1 },
		"write timeout":                  func(c *chain.Config) { c.WriteTimeout = -1 },
		"expect-continue timeout":        func(c *chain.Config) { c.ExpectContinueTimeout = -1 },
		"follow-up limit":                func(c *chain.Config) { c.MaxFollowUps = -1 },
		"response header limit in bytes": func(c *chain.Config) { c.MaxResponseHeaderBytes = 0 },
		"response header limit in field": func(c *chain.Config) { c.MaxResponseHeaderFields = 0 },
		"interim response limit":         func(c *chain.Config) { c.MaxInterimResponses = -1 },
		"retry policy RetryPolicy(9)":    func(c *chain.Config) { c.RetryPolicy = 9 },
		"no network":                     func(c *chain.Config) { c.Network = nil },
		"no pool":                        func(c *chain.Config) { c.Pool = nil },
		"spdy":                           func(c *chain.Config) { c.Network = &route.Network{Protocols: []string{"spdy"}} },
	} {
		c := config()
		change(c)
		err := c.Validate()
		if (err == nil) != (name == "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestRetryPolicyString(t *testing.T) {
	for p, want := range map[chain.RetryPolicy]string{chain.RetrySafe: "safe", chain.RetryLikeOkHttp: "okhttp", 7: "RetryPolicy(7)"} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestInfos(t *testing.T) {
	var infos chain.Infos
	ctx := valueContext{t.Context(), &infos}
	requests := make([]*http.Request, 3)
	for i := range requests {
		requests[i], _ = http.NewRequestWithContext(ctx, "GET", "http://a.test/", nil)
		infos.Add(requests[i], chain.Info{Protocol: fmt.Sprint(i)})
	}
	infos.Add(requests[1], chain.Info{Protocol: "again"})
	for i, want := range []string{"0", "again", "2"} {
		info, ok := chain.InfoOf(&http.Response{Request: requests[i]})
		if !ok || info.Protocol != want {
			t.Errorf("request %d: %v, %v", i, info, ok)
		}
	}
	stranger, _ := http.NewRequestWithContext(ctx, "GET", "http://a.test/", nil)
	for name, resp := range map[string]*http.Response{
		"nil":                nil,
		"without request":    {},
		"of another request": {Request: stranger},
		"of nobody's call":   {Request: httpRequest(t)},
	} {
		if info, ok := chain.InfoOf(resp); ok {
			t.Errorf("%s: %v", name, info)
		}
	}
}

type valueContext struct {
	context.Context
	infos *chain.Infos
}

func (c valueContext) Value(key any) any {
	if v := c.infos.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

func httpRequest(t *testing.T) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://a.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

var _ net.Error = (*chain.CallError)(nil)
