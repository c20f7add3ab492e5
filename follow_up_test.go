package catena_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/proxy"
)

// TestInterimResponsesOfACall: the bound holds for the call, not for each of its
// requests.
func TestInterimResponsesOfACall(t *testing.T) {
	const hints = "HTTP/1.1 103 Early Hints\r\n\r\n"
	for _, test := range []struct {
		second int
		want   string
	}{
		{40, `200 "ok"`},
		{41, "error: protocol, too many interim\nread, reused, written: protocol-error"},
	} {
		peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
			c.readRequest()
			c.send(strings.Repeat(hints, 60) + rawAnswer("302 Found", "", "Location: /next"))
			c.readRequest()
			c.send(strings.Repeat(hints, test.second) + rawAnswer("200 OK", "ok"))
		})
		if got := outcomeOf(h1Client(t).Do(bodyRequest(t, "GET", peer.url("/"), ""))); got != test.want {
			t.Errorf("%d interim responses: %s; want %s", 60+test.second, got, test.want)
		}
	}
}

// TestRepeatedStatuses: a server that always says the same.
func TestRepeatedStatuses(t *testing.T) {
	for _, test := range []struct {
		status  string
		fields  []string
		method  string
		oneShot bool
		opts    []catena.Option
		seen    int
	}{
		{"408 Request Timeout", nil, "GET", false, nil, 2},
		{"408 Request Timeout", nil, "POST", false, nil, 2},
		{"408 Request Timeout", nil, "POST", true, nil, 1},
		{"408 Request Timeout", []string{"Connection: close"}, "POST", false, nil, 2},
		{"408 Request Timeout", []string{"Retry-After: 0"}, "GET", false, nil, 2},
		{"408 Request Timeout", []string{"Retry-After: 5"}, "GET", false, nil, 1},
		{"408 Request Timeout", []string{"Retry-After: soon"}, "GET", false, nil, 1},
		{"408 Request Timeout", nil, "GET", false, []catena.Option{catena.WithRetryOnConnectionFailure(false)}, 1},
		{"503 Service Unavailable", []string{"Retry-After: 0"}, "POST", false, nil, 2},
		{"503 Service Unavailable", []string{"Retry-After: 0"}, "POST", true, nil, 1},
		{"503 Service Unavailable", []string{"Retry-After: 0"}, "GET", false, []catena.Option{catena.WithRetryOnConnectionFailure(false)}, 2},
		{"503 Service Unavailable", []string{"Retry-After: -1"}, "GET", false, nil, 1},
		{"503 Service Unavailable", []string{"Retry-After: abc"}, "GET", false, nil, 1},
		{"503 Service Unavailable", []string{"Retry-After: Thu, 01 Jan 1970 00:00:00 GMT"}, "GET", false, nil, 1},
		{"503 Service Unavailable", nil, "GET", false, nil, 1},
		{"429 Too Many Requests", []string{"Retry-After: 0"}, "GET", false, nil, 1},
		{"421 Misdirected Request", nil, "GET", false, nil, 1},
	} {
		t.Run(fmt.Sprint(test.status, test.fields, test.method, test.oneShot), func(t *testing.T) {
			peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
				for c.readRequest() {
					c.send(rawAnswer(test.status, "text", test.fields...))
					if len(test.fields) > 0 && test.fields[0] == "Connection: close" {
						return
					}
				}
			})
			var body string
			if test.method == "POST" {
				body = "hello"
			}
			req := bodyRequest(t, test.method, peer.url("/"), body)
			if test.oneShot {
				req.GetBody = nil
			}
			want := fmt.Sprintf("%s \"text\"", test.status[:3])
			if got := outcomeOf(h1Client(t, test.opts...).Do(req)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if n := len(peer.seen()); n != test.seen {
				t.Errorf("%d requests, want %d", n, test.seen)
			}
			for i, s := range peer.seen() {
				if s.body != body {
					t.Errorf("request %d has the body %q", i, s.body)
				}
			}
		})
	}
}

// TestFollowUpLimit: 20 follow-ups are made, the 21st fails the call.
func TestFollowUpLimit(t *testing.T) {
	for _, test := range []struct {
		redirects int
		opts      []catena.Option
		seen      int
		fails     bool
	}{
		{20, nil, 21, false},
		{21, nil, 21, true},
		{3, []catena.Option{catena.WithMaxFollowUps(2)}, 3, true},
		{1, []catena.Option{catena.WithMaxFollowUps(0)}, 1, true},
	} {
		peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
			for c.readRequest() {
				if n := len(c.peer.seen()); n <= test.redirects {
					c.send(redirectTo(302, fmt.Sprint("/", n)))
				} else {
					c.send(rawAnswer("200 OK", "ok"))
				}
			}
		})
		client := h1Client(t, test.opts...)
		resp, err := client.Do(bodyRequest(t, "GET", peer.url("/"), ""))
		if fails := err != nil; fails != test.fails {
			t.Errorf("%d redirects: error %v", test.redirects, err)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("too many follow-up requests: %d (WithMaxFollowUps allows %d)", test.seen, test.seen-1)) {
			t.Errorf("error %q does not tell how many", err)
		}
		outcomeOf(resp, err)
		if n := len(peer.seen()); n != test.seen {
			t.Errorf("%d redirects: %d requests, want %d", test.redirects, n, test.seen)
		}
		if n := client.Pool().IdleCount(); n != 1 {
			t.Errorf("%d idle connections, want 1", n)
		}
	}
}

// TestChallenges: what an authenticator's answer, silence or failure makes of a
// 401, and what a 407 of an origin comes to.
func TestChallenges(t *testing.T) {
	broken := errors.New("the vault is closed")
	authenticator := func(f func(resp *http.Response) (*http.Request, error)) catena.Option {
		return catena.WithAuthenticator(auth.AuthenticatorFunc(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) { return f(resp) }))
	}
	for _, test := range []struct {
		name   string
		status string
		opts   []catena.Option
		want   string
		seen   int
		idle   int
	}{
		{"none", "401 Unauthorized", nil, `401 "text"`, 1, 1},
		{"gives up", "401 Unauthorized", []catena.Option{authenticator(func(*http.Response) (*http.Request, error) { return nil, nil })}, `401 "text"`, 1, 1},
		{"wrong password", "401 Unauthorized", []catena.Option{catena.WithAuthenticator(auth.Basic("user", "wrong"))}, `401 "text"`, 2, 1},
		{"always answers", "401 Unauthorized", []catena.Option{authenticator(func(resp *http.Response) (*http.Request, error) {
			return resp.Request.Clone(resp.Request.Context()), nil
		})}, "error: protocol", 21, 1},
		{"answers with the same request", "401 Unauthorized", []catena.Option{authenticator(func(resp *http.Response) (*http.Request, error) {
			if auth.ResponseCount(resp) > 1 {
				return nil, nil
			}
			return resp.Request, nil
		})}, `401 "text"`, 2, 1},
		{"fails", "401 Unauthorized", []catena.Option{authenticator(func(*http.Response) (*http.Request, error) { return nil, broken })}, "broken", 1, 1},
		{"407 of an origin", "407 Proxy Authentication Required", []catena.Option{catena.WithProxyAuthenticator(auth.Basic("user", "secret"))}, "error: protocol", 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
				for c.readRequest() {
					c.send(rawAnswer(test.status, "text", `WWW-Authenticate: Basic realm="a"`, `Proxy-Authenticate: Basic realm="a"`))
				}
			})
			client := h1Client(t, test.opts...)
			req := bodyRequest(t, "POST", peer.url("/"), "hello")
			closes := countCloses(req)
			resp, err := client.Do(req)
			got := outcomeOf(resp, err)
			if errors.Is(err, broken) {
				got = "broken"
			}
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			for i, s := range peer.seen() {
				if s.body != "hello" || s.Header.Get("Proxy-Authorization") != "" {
					t.Errorf("request %d: body %q, fields %v", i, s.body, s.Header)
				}
			}
			if n := len(peer.seen()); n != test.seen {
				t.Errorf("%d requests, want %d", n, test.seen)
			}
			if n := client.Pool().IdleCount(); n != test.idle {
				t.Errorf("%d idle connections, want %d", n, test.idle)
			}
			for i, n := range closes() {
				if n != 1 {
					t.Errorf("body %d was closed %d times", i, n)
				}
			}
		})
	}
}

// TestExpectationFailed: the request is sent once more without Expect; one that was
// announced and not sent costs the connection.
func TestExpectationFailed(t *testing.T) {
	peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
		for {
			req := c.readHead()
			if req == nil {
				return
			}
			if req.Header.Get("Expect") != "" {
				c.send(rawAnswer("417 Expectation Failed", "no"))
				continue
			}
			body, _ := io.ReadAll(req.Body)
			c.send(rawAnswer("200 OK", string(body)))
		}
	})
	req := bodyRequest(t, "POST", peer.url("/"), "hello")
	req.Header.Set("Expect", "100-continue")
	if got := outcomeOf(h1Client(t).Do(req)); got != `200 "hello"` {
		t.Error(got)
	}
	if seen := peer.seen(); len(seen) != 2 || seen[1].conn != 2 {
		t.Errorf("the server saw %d requests", len(seen))
	}
}

// TestRetryingInterceptor: responses that an interceptor gives up for another try
// share one connection.
func TestRetryingInterceptor(t *testing.T) {
	peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
		for c.readRequest() {
			if len(c.peer.seen()) < 3 {
				c.send(rawAnswer("503 Service Unavailable", "later"))
			} else {
				c.send(rawAnswer("200 OK", "ok"))
			}
		}
	})
	again := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		for {
			resp, err := c.Proceed(c.Request())
			if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
				return resp, err
			}
			resp.Body.Close()
		}
	})
	client := h1Client(t, catena.WithInterceptor(again))
	if got := outcomeOf(client.Do(bodyRequest(t, "GET", peer.url("/"), ""))); got != `200 "ok"` {
		t.Error(got)
	}
	if n := peer.accepted(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}
