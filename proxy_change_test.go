package catena_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// inTurn selects one of its proxies after the other.
type inTurn struct {
	mu      sync.Mutex // guards next
	next    int
	proxies []proxy.Proxy
}

func (s *inTurn) Select(context.Context, *url.URL) ([]proxy.Proxy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return []proxy.Proxy{s.proxies[(s.next-1)%len(s.proxies)]}, nil
}

func (*inTurn) ConnectFailed(*url.URL, proxy.Proxy, error) {}

// gatekeeper is a plain proxy that wants Basic credentials, and answers whoever has
// some with answer; with "" it hangs up.
func gatekeeper(t *testing.T, answer string) *faultyPeer {
	t.Helper()
	return startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
		for {
			req := c.readHead()
			if req == nil {
				return
			}
			if req.Header.Get("Proxy-Authorization") == "" {
				c.send(rawAnswer("407 Who", "who?", `Proxy-Authenticate: Basic realm="p"`))
				continue
			}
			c.send(answer)
			return
		}
	})
}

func logins(p *faultyPeer) []string {
	var all []string
	for _, req := range p.seen() {
		all = append(all, basicLogin(req.Header.Get("Proxy-Authorization")))
	}
	return all
}

// TestCredentialsStayWithTheirProxy: what was made for one plain proxy is not sent to the next, which a
// redirect, a repetition or a failure leads through. That one is told what is its own, be it the same.
func TestCredentialsStayWithTheirProxy(t *testing.T) {
	apart := func(first proxy.Proxy) auth.Authenticator {
		alice, bob := auth.Basic("alice", "a"), auth.Basic("bob", "b")
		return auth.AuthenticatorFunc(func(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
			if via.Equal(first) {
				return alice.Authenticate(via, resp)
			}
			return bob.Authenticate(via, resp)
		})
	}
	alike := func(proxy.Proxy) auth.Authenticator { return auth.Basic("bob", "b") }
	for name, answer := range map[string]string{
		"redirect":   rawAnswer("302 Found", "", "Location: /next", "Connection: close"),
		"repetition": rawAnswer("503 Busy", "", "Retry-After: 0", "Connection: close"),
		"failure":    "",
	} {
		for who, authenticator := range map[string]func(proxy.Proxy) auth.Authenticator{"apart": apart, "alike": alike} {
			for _, user := range []*url.Userinfo{nil, url.UserPassword("carol", "c")} {
				t.Run(name+", "+who+", "+user.String(), func(t *testing.T) {
					a, b := gatekeeper(t, answer), gatekeeper(t, rawAnswer("200 OK", "fine"))
					first, second := proxyOf(t, a), proxyOf(t, b)
					second.User = user
					var selector proxy.Selector = &inTurn{proxies: []proxy.Proxy{first, second}}
					if answer == "" {
						selector = proxy.Fixed(first, second)
					}
					client := h1Client(t, catena.WithProxySelector(selector),
						catena.WithProxyAuthenticator(authenticator(first)))
					resp, err := client.Do(bodyRequest(t, "GET", "http://a.test/", ""))
					if err == nil {
						if _, ok := catena.InfoOf(resp); !ok {
							t.Error("nothing is known of how the response came about")
						}
					}
					if got := outcomeOf(resp, err); !strings.HasPrefix(got, `200 "fine"`) {
						t.Error(got)
					}
					want := []string{"", "bob:b"}
					if user != nil {
						want = []string{"carol:c"}
					}
					if diff := cmp.Diff(want, logins(b)); diff != "" {
						t.Errorf("the second proxy saw (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

func proxyOf(t *testing.T, p *faultyPeer) proxy.Proxy {
	t.Helper()
	via, err := proxy.Parse(p.url(""))
	if err != nil {
		t.Fatal(err)
	}
	return via
}
