package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// An end is put to a proxy that refuses whatever it gets.
func TestEndlessChallenges(t *testing.T) {
	closing := strings.Replace(challenge, "Content-Length", "Connection: close\r\nContent-Length", 1)
	for name, tc := range map[string]struct {
		challenge string
		answer    func(n int) string
		connects  int
		sockets   int
		why       event.Reason
	}{
		"the same credentials":           {challenge, func(int) string { return "x" }, 2, 1, event.ReasonRepeated},
		"the same credentials, closing":  {closing, func(int) string { return "x" }, 2, 2, event.ReasonRepeated},
		"other credentials":              {challenge, func(n int) string { return fmt.Sprint(n) }, 21, 1, event.ReasonTooManyFollowUps},
		"other credentials, closing":     {closing, func(n int) string { return fmt.Sprint(n) }, 21, 21, event.ReasonTooManyFollowUps},
		"an answer without credentials":  {challenge, func(int) string { return "" }, 21, 1, event.ReasonTooManyFollowUps},
		"credentials that come and go":   {challenge, func(n int) string { return []string{"x", ""}[n%2] }, 21, 1, event.ReasonTooManyFollowUps},
		"two that are sent alternately":  {closing, func(n int) string { return []string{"x", "y"}[n%2] }, 21, 21, event.ReasonTooManyFollowUps},
		"the same credentials once more": {challenge, func(n int) string { return []string{"", "x", "y", "y"}[n] }, 3, 1, event.ReasonRepeated},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				p := w.newProxy(&fakeProxy{answer: func(int, string) string { return tc.challenge }})
				w.authenticator(credentials(tc.answer))
				_, c, err := w.do(t.Context(), "https://a.test/")
				if statusOf(err) != 407 {
					t.Errorf("got %v", err)
				}
				if len(p.heads) != tc.connects || p.sockets != tc.sockets {
					t.Errorf("%d requests on %d sockets, want %d on %d", len(p.heads), p.sockets, tc.connects, tc.sockets)
				}
				if all := decisions(c); len(all) != tc.connects || all[len(all)-1] != string(tc.why) {
					t.Errorf("decisions %v", all)
				}
				if a := c.a.Attempts(); len(a) != 1 || a[0].Why != event.ReasonNoMoreRoutes {
					t.Errorf("attempts %+v", a)
				}
				w.expect(0, 0)
			})
		})
	}
}

// What an authenticator is shown of a CONNECT, ahead of a refusal and after one.
func TestProxyAuthenticatorIsAsked(t *testing.T) {
	type contextKey struct{}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, trusting)
		w.secureHost()
		p := w.newProxy(&fakeProxy{answer: func(n int, _ string) string { return []string{challenge, challenge, opened}[n-1] }})
		type asked struct {
			Status, Challenge, Method, Host, URL, Given string
			Count                                       int
			Via, Value                                  any
		}
		var all []asked
		w.authenticator(func(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
			req := resp.Request
			all = append(all, asked{
				resp.Status, resp.Header.Get("Proxy-Authenticate"), req.Method, req.Host, req.URL.Host + " " + req.URL.String(),
				req.Header.Get("Proxy-Authorization"), auth.ResponseCount(resp), via.Host, req.Context().Value(contextKey{}),
			})
			next := req.Clone(req.Context())
			next.Header.Set("Proxy-Authorization", fmt.Sprint("try ", len(all)))
			next.URL, next.Host, next.Method = &url.URL{Host: "elsewhere.test"}, "elsewhere.test", "GET" // not its business
			return next, nil
		})
		ctx := context.WithValue(t.Context(), contextKey{}, "the call's")
		if _, _, err := w.do(ctx, "https://a.test/"); err != nil {
			t.Fatal(err)
		}
		const to, status, realm = "a.test:443", "407 Proxy Authentication Required", `Basic realm="p"`
		want := []asked{
			{"407 Preemptive Authenticate", auth.PreemptiveScheme, "CONNECT", to, to + " " + to, "", 1, "p.test", "the call's"},
			{status, realm, "CONNECT", to, to + " " + to, "try 1", 1, "p.test", "the call's"},
			{status, realm, "CONNECT", to, to + " " + to, "try 2", 2, "p.test", "the call's"},
		}
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if len(p.heads) != 3 || !strings.HasPrefix(p.heads[2], "CONNECT a.test:443 ") || !strings.Contains(p.heads[2], "Proxy-Authorization: try 3\r\n") {
			t.Errorf("sent %q", p.heads)
		}
	})
}

// An observer sees every real answer to CONNECT.
func TestProxyObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, trusting)
		w.secureHost()
		w.newProxy(&fakeProxy{answer: func(n int, _ string) string {
			return []string{challenge, "HTTP/1.1 200 OK\r\nProxy-Authentication-Info: nextnonce=\"n\"\r\n\r\n"}[n-1]
		}})
		o := &onlooker{authenticatorFunc: credentials(func(int) string { return "x" })}
		w.network = w.network.With(func(n *route.Network) { n.ProxyAuthenticator = o })
		w.get("https://a.test/")
		want := []string{"p.test CONNECT 407 ", "p.test CONNECT 200 nextnonce=\"n\""}
		if diff := cmp.Diff(want, o.seen); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// onlooker is an authenticator that keeps what it is shown.
type onlooker struct {
	authenticatorFunc
	seen []string
}

func (o *onlooker) Observe(via proxy.Proxy, resp *http.Response) {
	o.seen = append(o.seen, fmt.Sprint(via.Host, " ", resp.Request.Method, " ", resp.StatusCode, " ", resp.Header.Get("Proxy-Authentication-Info")))
}

// auth.Basic answers ahead of the refusal; a proxy that has a user is not asked for.
func TestPreemptiveAuthentication(t *testing.T) {
	for name, user := range map[string]*url.Userinfo{"authenticator": nil, "user": url.UserPassword("ada", "secret")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				w.terms.UserAgent = "test"
				w.secureHost()
				p := w.newProxy(&fakeProxy{})
				via := proxyNamed("p.test")
				via.User = user
				w.through(via)
				basic, asked := auth.Basic("ada", "secret"), 0
				w.authenticator(func(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
					asked++
					return basic.Authenticate(via, resp)
				})
				w.get("https://a.test/")
				p.saw(connectTo("a.test:443", "Proxy-Authorization: Basic YWRhOnNlY3JldA==", keepAlive))
				if want := map[bool]int{true: 1, false: 0}[user == nil]; asked != want {
					t.Errorf("asked %d times, want %d", asked, want)
				}
			})
		})
	}
}

// An authenticator's error, even if it looks like a timeout of ours, ends the call:
// another proxy would meet it again. Its panic leaves nothing behind.
func TestProxyAuthenticatorFails(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("no token") }, "deadline": func() error { return context.DeadlineExceeded },
		"panic": func() error { panic("boom") },
	} {
		for _, ahead := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", ahead of a refusal: ", ahead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, PoolOptions{}, trusting)
					p := w.newProxy(&fakeProxy{answer: func(int, string) string { return challenge }})
					w.through(proxyNamed("p.test"), proxyNamed("second.test"))
					w.authenticator(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
						if ahead == (resp.Header.Get("Proxy-Authenticate") == auth.PreemptiveScheme) {
							return nil, fail()
						}
						return nil, nil
					})
					c := w.newCall(t.Context(), "https://a.test/")
					err := func() (err error) {
						defer func() {
							if recover() != nil {
								err = errors.New("panicked")
							}
						}()
						return c.connect()
					}()
					c.end(nil, err)
					if name != "panic" && (!strings.HasPrefix(err.Error(), "authenticate with proxy http://p.test:80: ") || len(c.a.Attempts()) != 1 || c.a.Attempts()[0].Why != event.ReasonNotRecoverable) {
						t.Errorf("got %v, %+v", err, c.a.Attempts())
					}
					if names := c.events.Names(); names[len(names)-1] != "ConnectFailed" {
						t.Errorf("events %v", names)
					}
					if want := map[bool]int{true: 0, false: 1}[ahead]; len(p.heads) != want {
						t.Errorf("sent %q", p.heads)
					}
					if w.database.Len() != 0 {
						t.Error("the route is remembered as failed")
					}
					w.expect(0, 0)
				})
			})
		}
	}
}

// An answer that can't be sent is the authenticator's failure, and not the proxy's.
func TestProxyAuthenticatorAnswersBadly(t *testing.T) {
	for _, header := range []http.Header{
		{"Proxy-Authorization": {"x", "y\r\nX-Evil: 1"}}, {"X Y": {"x"}}, {"": {"x"}},
	} {
		for _, ahead := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				p := w.newProxy(&fakeProxy{answer: func(int, string) string { return challenge }})
				w.through(proxyNamed("p.test"), proxyNamed("second.test"))
				w.authenticator(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
					if !ahead && resp.Header.Get("Proxy-Authenticate") == auth.PreemptiveScheme {
						return nil, nil
					}
					return &http.Request{Header: header}, nil
				})
				_, c, err := w.do(t.Context(), "https://a.test/")
				if !strings.HasPrefix(err.Error(), "authenticate with proxy http://p.test:80: ") || strings.Contains(err.Error(), "X-Evil") {
					t.Errorf("got %v", err)
				}
				if a := c.a.Attempts(); len(a) != 1 || a[0].Why != event.ReasonNotRecoverable || w.database.Len() != 0 {
					t.Errorf("%d routes are remembered as failed after %+v", w.database.Len(), a)
				}
				if want := map[bool]int{true: 0, false: 1}[ahead]; len(p.heads) != want {
					t.Errorf("sent %q", p.heads)
				}
			})
		}
	}
}

// All that is said to a proxy, on all sockets, has the connect timeout together; the
// application's time to answer does not count.
func TestTalkWithProxyIsBoundedAsAWhole(t *testing.T) {
	for _, ending := range []string{"", "Connection: close\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, PoolOptions{}, trusting)
			p := w.newProxy(&fakeProxy{answer: func(int, string) string {
				time.Sleep(3 * time.Second)
				return strings.Replace(challenge, "Content-Length", ending+"Content-Length", 1)
			}})
			another := credentials(func(n int) string { return fmt.Sprint(n) })
			w.authenticator(func(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
				time.Sleep(time.Minute)
				return another(via, resp)
			})
			start := time.Now()
			_, _, err := w.do(t.Context(), "https://a.test/")
			var timeout *event.TimeoutError
			if !errors.As(err, &timeout) || timeout.Step != event.StepProxy || timeout.After != 10*time.Second {
				t.Errorf("got %v", err)
			}
			// One challenge that nobody sent, three that came, and what is left then.
			if took := time.Since(start); took < 4*time.Minute+10*time.Second || took > 4*time.Minute+11*time.Second {
				t.Errorf("it took %v", took)
			}
			if len(p.heads) != 4 {
				t.Errorf("%d requests", len(p.heads))
			}
			time.Sleep(10 * time.Second) // until the proxy wakes up
		})
	}
}
