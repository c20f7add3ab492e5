package catena_test

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

func hi(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hi!") }

// get makes a call to the origin of a world.
func get(w *world) { w.get("/", "hi!") }

func TestProxyEvents(t *testing.T) {
	tunneled := []string{https1, h2, h2c}
	by := func(proxies ...proxy.Proxy) func(*world) []catena.Option {
		return func(*world) []catena.Option {
			return []catena.Option{
				catena.WithProxySelector(proxy.Fixed(proxies...)),
				catena.WithProxyAuthenticator(auth.AuthenticatorFunc(answerReal)),
			}
		}
	}
	httpProxy := proxyAt(proxy.HTTP, proxyHost)
	withPassword := httpProxy
	withPassword.User = url.UserPassword("ada", "secret")
	runScenarios(t, []scenario{
		{name: "proxy-tunnel", over: tunneled, opts: by(withPassword), run: func(w *world) {
			w.serve(hi)
			w.proxy(proxyAddr, false, tunnelOpen)
			get(w)
			get(w) // by the pooled one
		}},
		{name: "proxy-tunnel-challenge", over: tunneled, opts: by(httpProxy), run: func(w *world) {
			w.serve(hi)
			w.proxy(proxyAddr, false, deniedKept, tunnelOpen)
			get(w)
		}},
		{name: "proxy-tunnel-challenge-close", over: tunneled, opts: by(httpProxy), run: func(w *world) {
			w.serve(hi)
			w.proxy(proxyAddr, false, deniedClosed, tunnelOpen)
			get(w)
		}},
		{name: "proxy-tunnel-challenge-given-up", over: tunneled, opts: by(httpProxy), run: func(w *world) {
			w.serve(hi)
			w.proxy(proxyAddr, false, deniedKept)
			w.fail(w.request("GET", "/", nil))
		}},
		{name: "proxy-https-plain", over: []string{h1}, opts: by(proxyAt(proxy.HTTPS, proxyHost)), run: func(w *world) {
			w.proxy(proxyAddr, true, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi!")
			get(w)
		}},
		{name: "proxy-https-tunnel", over: overTLS, opts: by(proxyAt(proxy.HTTPS, proxyHost)), run: func(w *world) {
			w.serve(hi)
			w.proxy(proxyAddr, true, tunnelOpen)
			get(w)
		}},
		{name: "proxy-socks5-by-name", opts: by(proxyAt(proxy.SOCKS5, proxyHost)), run: func(w *world) {
			w.serve(hi)
			w.socks5(proxyAddr, func(target string) {
				if target != origin+":8080" {
					w.Errorf("the proxy was asked for %s", target)
				}
			})
			get(w)
		}},
		{name: "proxy-failover-refused", over: tunneled, opts: by(httpProxy, proxyAt(proxy.HTTP, secondHost)), run: func(w *world) {
			w.serve(hi)
			w.net.AddHost(proxyHost, "192.0.2.2") // nobody listens
			w.proxy(secondAddr, false, tunnelOpen)
			get(w)
			w.client.CloseIdleConnections()
			get(w) // the dead one is tried last
		}},
		{name: "proxy-failover-bad-gateway", over: tunneled, opts: by(httpProxy, proxyAt(proxy.HTTP, secondHost)), run: func(w *world) {
			w.serve(hi)
			w.proxy(proxyAddr, false, badGateway)
			w.proxy(secondAddr, false, tunnelOpen)
			get(w)
		}},
		{name: "proxy-failover-stalled", over: tunneled, opts: by(httpProxy, proxyAt(proxy.HTTP, secondHost)), run: func(w *world) {
			w.serve(hi)
			w.gate(proxyAddr, swallow)
			w.proxy(secondAddr, false, tunnelOpen)
			get(w)
		}},
	})
}

// answerReal answers real challenges alone.
func answerReal(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
	if resp.Header.Get("Proxy-Authenticate") == auth.PreemptiveScheme {
		return nil, nil
	}
	return auth.Basic("ada", "secret").Authenticate(via, resp)
}
