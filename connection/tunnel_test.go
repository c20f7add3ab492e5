package connection

import (
	"crypto/tls"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

// What a CONNECT looks like, and that nothing else comes before the answer.
func TestConnectRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		url    string
		want   string
	}{
		"minimal": {nil, "https://a.test/", connectTo("a.test:443", keepAlive)},
		"IPv6":    {nil, "https://[2001:db8::1%25eth0]:8443/", connectTo("[2001:db8::1]:8443", keepAlive)},
		"no User-Agent": {
			func(w *world) { w.terms.UserAgent = "" }, "https://a.test/",
			"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n" + keepAlive + "\r\n\r\n",
		},
		"extra fields": {
			func(w *world) {
				w.network = w.network.With(func(n *route.Network) {
					n.ProxyConnectHeader = http.Header{"x-tenant": {"7", "8"}, "User-Agent": {"mine"}}
				})
			}, "https://a.test/",
			"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n" + keepAlive + "\r\nUser-Agent: mine\r\nX-Tenant: 7\r\nX-Tenant: 8\r\n\r\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				w.terms.UserAgent = "test"
				w.tlsHost("a.test", "192.0.2.1", &tls.Config{Certificates: []tls.Certificate{testAuthority().issue("a.test")}}, hello)
				p := w.newProxy(&fakeProxy{})
				if tc.change != nil {
					tc.change(w)
				}
				_, c, err := w.do(t.Context(), tc.url)
				if tc.url == "https://a.test/" && err != nil {
					t.Fatal(err)
				}
				_ = c
				p.saw(tc.want)
			})
		})
	}
}

// The same socket carries the CONNECT that answers a 407 which keeps it.
func TestTunnelChallenge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, trusting)
		w.terms.UserAgent = "test"
		w.secureHost(t)
		p := w.newProxy(&fakeProxy{answer: func(n int, _ string) string { return []string{challenge, opened}[n-1] }})
		w.authenticator(credentials(func(int) string { return "x" }))
		_, c, err := w.do(t.Context(), "https://a.test/")
		if err != nil {
			t.Fatal(err)
		}
		p.saw(connectTo("a.test:443", keepAlive), connectTo("a.test:443", "Proxy-Authorization: x", keepAlive))
		if p.sockets != 1 {
			t.Errorf("%d sockets", p.sockets)
		}
		if diff := cmp.Diff([]string{string(event.ReasonProxyAuthenticate)}, decisions(c)); diff != "" {
			t.Error(diff)
		}
		w.get("https://a.test/") // by the tunnel in the pool
		w.expect(1, 1)
	})
}
