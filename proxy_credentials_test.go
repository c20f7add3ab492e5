package catena_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// The secrets of a call through a proxy, as they are on the wire.
const (
	originSecret = "Bearer for-the-origin"
	cookieSecret = "session=for-the-origin"
	userSecret   = "Basic by-the-user"
)

var (
	proxySecret = "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:for-the-proxy"))
	urlSecret   = "Basic " + base64.StdEncoding.EncodeToString([]byte("bob:in-the-url"))
)

// Credentials of the proxy go to the proxy, those of the origin to the origin, and
// through a tunnel the proxy sees nothing of the origin's.
func TestCredentialsStayWhereTheyBelong(t *testing.T) {
	type seen struct {
		Line          string // the request's first
		Host          string
		Proxy         []string `json:",omitempty"` // Proxy-Authorization
		Authorization []string
		Cookie        []string
	}
	saw := func(head string) seen {
		lines := strings.Split(head, "\r\n")
		h := http.Header{}
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		return seen{lines[0], h.Get("Host"), h["Proxy-Authorization"], h["Authorization"], h["Cookie"]}
	}
	own := seen{Authorization: []string{originSecret}, Cookie: []string{cookieSecret}}
	with := func(s seen, line, host string, proxy ...string) seen {
		s.Line, s.Host, s.Proxy = line, host, proxy
		return s
	}
	const at = origin + ":8080"
	const fine = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi!"
	for name, tc := range map[string]struct {
		protocol string
		secure   bool // the proxy
		user     *url.Userinfo
		byUser   bool // the application sets Proxy-Authorization
		answers  []string
		proxy    []seen
		origin   *seen
	}{
		"plain": {h1, false, url.UserPassword("ada", "for-the-proxy"), false, []string{fine},
			[]seen{with(own, "GET http://"+at+"/a?b HTTP/1.1", at, proxySecret)}, nil},
		"plain over TLS": {h1, true, url.UserPassword("ada", "for-the-proxy"), false, []string{fine},
			[]seen{with(own, "GET http://"+at+"/a?b HTTP/1.1", at, proxySecret)}, nil},
		"plain, set by the application": {h1, false, url.UserPassword("ada", "for-the-proxy"), true, []string{fine},
			[]seen{with(own, "GET http://"+at+"/a?b HTTP/1.1", at, userSecret)}, nil},
		"plain, challenged": {h1, false, nil, false, []string{deniedKept, fine},
			[]seen{
				with(own, "GET http://"+at+"/a?b HTTP/1.1", at),
				with(own, "GET http://"+at+"/a?b HTTP/1.1", at, proxySecret),
			}, nil},
		"plain over TLS, challenged and closed": {h1, true, nil, false, []string{deniedClosed, fine},
			[]seen{
				with(own, "GET http://"+at+"/a?b HTTP/1.1", at),
				with(own, "GET http://"+at+"/a?b HTTP/1.1", at, proxySecret),
			}, nil},
		"tunnel": {https1, false, url.UserPassword("ada", "for-the-proxy"), false, []string{tunnelOpen},
			[]seen{with(seen{}, "CONNECT "+at+" HTTP/1.1", at, proxySecret)}, &own},
		"tunnel over TLS": {https1, true, url.UserPassword("ada", "for-the-proxy"), false, []string{tunnelOpen},
			[]seen{with(seen{}, "CONNECT "+at+" HTTP/1.1", at, proxySecret)}, &own},
		"tunnel with HTTP/2": {h2, false, url.UserPassword("ada", "for-the-proxy"), false, []string{tunnelOpen},
			[]seen{with(seen{}, "CONNECT "+at+" HTTP/1.1", at, proxySecret)}, &own},
		"tunnel with h2c": {h2c, false, url.UserPassword("ada", "for-the-proxy"), false, []string{tunnelOpen},
			[]seen{with(seen{}, "CONNECT "+at+" HTTP/1.1", at, proxySecret)}, &own},
		"tunnel, set by the application": {https1, false, nil, true, []string{tunnelOpen},
			[]seen{with(seen{}, "CONNECT "+at+" HTTP/1.1", at)}, &own},
		"tunnel, challenged": {https1, false, nil, false, []string{deniedKept, tunnelOpen},
			[]seen{
				with(seen{}, "CONNECT "+at+" HTTP/1.1", at),
				with(seen{}, "CONNECT "+at+" HTTP/1.1", at, proxySecret),
			}, &own},
		"tunnel with HTTP/2, challenged and closed": {h2, true, nil, false, []string{deniedClosed, tunnelOpen},
			[]seen{
				with(seen{}, "CONNECT "+at+" HTTP/1.1", at),
				with(seen{}, "CONNECT "+at+" HTTP/1.1", at, proxySecret),
			}, &own},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				basic := auth.Basic("ada", "for-the-proxy")
				w := newWorld(t, tc.protocol, catena.WithProxyAuthenticator(auth.AuthenticatorFunc(
					func(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
						if resp.Header.Get("Proxy-Authenticate") == auth.PreemptiveScheme {
							return nil, nil
						}
						return basic.Authenticate(via, resp)
					})))
				var mu sync.Mutex
				var origins []http.Header
				w.serve(func(rw http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					origins = append(origins, r.Header)
					hi(rw, r)
				})
				kind := map[bool]proxy.Type{false: proxy.HTTP, true: proxy.HTTPS}[tc.secure]
				p := w.proxy(proxyAddr, tc.secure, tc.answers...)
				via := proxyAt(kind, proxyHost)
				via.User = tc.user
				client, err := w.client.With(catena.WithProxy(via))
				if err != nil {
					t.Fatal(err)
				}
				w.client = client
				req := w.request("GET", "/a?b#fragment", nil)
				req.Header.Set("Authorization", originSecret)
				req.Header.Set("Cookie", cookieSecret)
				if tc.byUser {
					req.Header.Set("Proxy-Authorization", userSecret)
				}
				w.do(req, "hi!")
				var asks []seen
				for _, head := range p.asks {
					asks = append(asks, saw(head))
				}
				if diff := cmp.Diff(tc.proxy, asks); diff != "" {
					t.Errorf("what the proxy saw (-want +got):\n%s", diff)
				}
				for _, h := range origins {
					got := seen{Proxy: h["Proxy-Authorization"], Authorization: h["Authorization"], Cookie: h["Cookie"]}
					if diff := cmp.Diff(own, got); diff != "" {
						t.Errorf("what the origin saw (-want +got):\n%s", diff)
					}
				}
				if (tc.origin != nil) != (len(origins) == 1) {
					t.Errorf("the origin got %d requests", len(origins))
				}
				w.close()
			})
		})
	}
}

// User information and the fragment of a URL are no part of the target.
func TestAbsoluteFormHasNoUserInformation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, h1, catena.WithProxy(proxyAt(proxy.HTTP, proxyHost)))
		p := w.proxy(proxyAddr, false, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi!")
		w.do(w.requestTo("GET", "http://bob:in-the-url@origin.test:8080/?q#f", nil), "hi!")
		if len(p.asks) != 1 || !strings.HasPrefix(p.asks[0], "GET http://origin.test:8080/?q HTTP/1.1\r\nHost: origin.test:8080\r\n") ||
			!strings.Contains(p.asks[0], "\r\nAuthorization: "+urlSecret+"\r\n") || strings.Contains(p.asks[0], "Proxy-Auth") {
			t.Errorf("the proxy saw %q", p.asks)
		}
		w.close()
	})
}

// A connection to a plain proxy serves all its origins, but not another user's.
func TestPlainProxyConnectionIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ada, bob := proxyAt(proxy.HTTP, proxyHost), proxyAt(proxy.HTTP, proxyHost)
		ada.User, bob.User = url.UserPassword("ada", "x"), url.UserPassword("bob", "y")
		w := newWorld(t, h1, catena.WithProxySelector(hostSelector{"c.test": bob, "": ada}))
		p := w.proxy(proxyAddr, false, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi!")
		for _, host := range []string{"a.test", "b.test", "c.test", "a.test"} {
			w.do(w.requestTo("GET", "http://"+host+"/", nil), "hi!")
		}
		var users []string
		for _, head := range p.asks {
			_, after, _ := strings.Cut(head, "Proxy-Authorization: Basic ")
			value, _, _ := strings.Cut(after, "\r\n")
			user, _ := base64.StdEncoding.DecodeString(value)
			users = append(users, string(user))
		}
		if diff := cmp.Diff([]string{"ada:x", "ada:x", "bob:y", "ada:x"}, users); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := w.net.Dials(proxyAddr); n != 2 {
			t.Errorf("%d connections, want one for each user", n)
		}
		w.close()
	})
}
