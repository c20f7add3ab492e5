package connection

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

func certified(names ...string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{testAuthority().issue(names...)}}
}

// An HTTPS proxy is verified by its own name and settings; the origin inside the
// tunnel by its.
func TestHTTPSProxy(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*route.Network) // on top of trusting
		proxy  string               // the name in the proxy's certificate
		origin string
		url    string
		step   event.Step // where it fails; "": it does not
	}{
		"forwards":                     {nil, "p.test", "", "http://a.test/", ""},
		"tunnels":                      {nil, "p.test", "a.test", "https://a.test/", ""},
		"has another name":             {nil, "q.test", "a.test", "https://a.test/", event.StepProxy},
		"has the origin's name":        {nil, "a.test", "a.test", "http://a.test/", event.StepProxy},
		"leads to an origin not named": {nil, "p.test", "p.test", "https://a.test/", event.StepTLS},
		"trust of its own": {func(n *route.Network) {
			n.ProxyTLSConfig, n.TLSConfig = &tls.Config{RootCAs: testAuthority().pool}, nil
		}, "p.test", "", "http://a.test/", ""},
		"trust of its own is not the origin's": {func(n *route.Network) {
			n.ProxyTLSConfig, n.TLSConfig = &tls.Config{RootCAs: testAuthority().pool}, nil
		}, "p.test", "a.test", "https://a.test/", event.StepTLS},
		"no trust of its own": {func(n *route.Network) { n.ProxyTLSConfig = &tls.Config{} }, "p.test", "a.test", "https://a.test/", event.StepProxy},
		"the verifier is for origins": {func(n *route.Network) {
			n.HostnameVerifier = func(host string, _ *tls.ConnectionState) error {
				if host != "a.test" {
					return errors.New("asked about " + host)
				}
				return nil
			}
		}, "p.test", "b.test", "https://a.test/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				if tc.origin != "" {
					w.tlsHost("a.test", "192.0.2.1", certified(tc.origin), hello)
				}
				p := w.newProxy(&fakeProxy{config: certified(tc.proxy), answer: func(_ int, head string) string {
					if strings.HasPrefix(head, "GET http://a.test/ HTTP/1.1\r\n") {
						return "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\nhello from a.test"
					}
					return opened
				}})
				if tc.change != nil {
					w.network = w.network.With(tc.change)
				}
				told := w.tellsSelector(proxy.Proxy{Type: proxy.HTTPS, Host: "p.test", Port: 80})
				body, c, err := w.do(t.Context(), tc.url)
				if tc.step != "" {
					var untrusted *tls.CertificateVerificationError
					if !errors.As(err, &untrusted) || c.a.Attempts()[0].Step != tc.step {
						t.Errorf("got %v, %+v", err, c.a.Attempts())
					}
					// A certificate is no reason to remember the route; whether the proxy
					// is of use is for the selector to judge.
					if want := map[bool]int{true: 1, false: 0}[tc.step == event.StepProxy]; len(*told) != want || w.database.Len() != 0 {
						t.Errorf("the selector was told %v, %d routes are remembered", *told, w.database.Len())
					}
					w.expect(0, 0)
					return
				}
				if err != nil || body != "hello from a.test" {
					t.Fatalf("got %q, %v", body, err)
				}
				if state := c.exchange.conn.TLS(); (state != nil) != strings.HasPrefix(tc.url, "https") {
					t.Errorf("the state of TLS with the origin: %v", state)
				}
				w.get(tc.url)
				if p.sockets != 1 {
					t.Errorf("%d sockets", p.sockets)
				}
				w.expect(1, 1)
			})
		})
	}
}

// tellsSelector lets calls go through proxies, and keeps what their selector is told.
func (w *world) tellsSelector(proxies ...proxy.Proxy) *[]string {
	s := &tellingSelector{proxies: proxies}
	w.network = w.network.With(func(n *route.Network) { n.ProxySelector = s })
	return &s.told
}

type tellingSelector struct {
	proxies []proxy.Proxy
	told    []string
}

func (s *tellingSelector) Select(context.Context, *url.URL) ([]proxy.Proxy, error) {
	return s.proxies, nil
}

func (s *tellingSelector) ConnectFailed(u *url.URL, p proxy.Proxy, _ error) {
	s.told = append(s.told, u.String()+" through "+p.Host)
}

// An HTTPS proxy that speaks no TLS, or nothing at all.
func TestHTTPSProxyWithoutTLS(t *testing.T) {
	for name, tc := range map[string]struct {
		says string
		want string
	}{
		"HTTP":   {"HTTP/1.1 400 Bad Request\r\n\r\n", "TLS with proxy https://p.test:80: the server speaks HTTP without TLS on this port"},
		"silent": {"", "proxy timeout after 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				w.raw("p.test", "192.0.2.9", func(_ int, c net.Conn) {
					io.WriteString(c, tc.says)
					io.Copy(io.Discard, c)
				})
				w.through(proxy.Proxy{Type: proxy.HTTPS, Host: "p.test", Port: 80})
				_, c, err := w.do(t.Context(), "https://a.test/")
				if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
					t.Errorf("got %v", err)
				}
				names := c.events.Names()
				want := []string{"ConnectStart", "SecureConnectStart", "SecureConnectEnd", "ConnectFailed"}
				if diff := cmp.Diff(want, names[len(names)-4:]); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if a := c.a.Attempts(); a[0].Step != event.StepProxy || w.database.Len() != 1 {
					t.Errorf("attempts %+v", a)
				}
			})
		})
	}
}

// A pooled connection is looked at through both layers of TLS before it is used
// again.
func TestHealthThroughTwoLayersOfTLS(t *testing.T) {
	type layers struct {
		tcp          net.Conn
		outer, inner *tls.Conn // the proxy's and the origin's
	}
	for name, tc := range map[string]struct {
		happen  func(l layers)
		healthy bool
	}{
		"nothing":              {func(layers) {}, true},
		"the socket is closed": {func(l layers) { l.tcp.Close() }, false},
		"the socket is reset":  {func(l layers) { l.tcp.(*net.TCPConn).SetLinger(0); l.tcp.Close() }, false},
		"the proxy closes":     {func(l layers) { l.outer.Close() }, false},
		"the proxy ends TLS":   {func(l layers) { l.outer.CloseWrite() }, false},
		"the origin ends TLS":  {func(l layers) { l.inner.CloseWrite() }, false},
		"stray bytes":          {func(l layers) { io.WriteString(l.inner, "HTTP/1.1 408 Request Timeout\r\n\r\n") }, false},
		"bytes beside TLS":     {func(l layers) { io.WriteString(l.outer, "nonsense") }, false},
	} {
		for _, custom := range []bool{false, true} {
			kind := map[bool]string{false: "tcp", true: "custom"}[custom]
			t.Run(name+" over "+kind, func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				peers := make(chan layers, 1)
				done := make(chan struct{})
				go func() { // the proxy, which is the origin too
					defer close(done)
					c, err := l.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					config := certified("p.test", "a.test")
					config.NextProtos = []string{"http/1.1"}
					outer := tls.Server(c, config)
					if _, err := readRawHead(bufio.NewReader(outer)); err != nil {
						return
					}
					io.WriteString(outer, opened)
					inner := tls.Server(outer, config)
					if _, err := readRawHead(bufio.NewReader(inner)); err != nil {
						return
					}
					io.WriteString(inner, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello from ")
					peers <- layers{c, outer, inner}
					inner.Read(make([]byte, 1)) // until the client closes
				}()
				w := newWorld(t, PoolOptions{}, func(n *route.Network) {
					trusting(n)
					n.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
						c, err := (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
						if custom && err == nil {
							c = plainConn{c}
						}
						return c, err
					}
				})
				w.net.AddHost("p.test", "192.0.2.9")
				w.through(proxy.Proxy{Type: proxy.HTTPS, Host: "p.test"})
				_, call, err := w.do(t.Context(), "https://a.test/")
				if err != nil {
					t.Fatal(err)
				}
				c := call.exchange.conn
				for range 3 { // session tickets of both layers are no stray bytes
					if !c.healthy() {
						t.Fatal("not healthy at first")
					}
				}
				tc.happen(<-peers)
				deadline := time.Now().Add(5 * time.Second)
				for c.healthy() && !tc.healthy {
					if time.Now().After(deadline) {
						t.Fatal("it stays healthy")
					}
				}
				if tc.healthy && !c.healthy() {
					t.Error("not healthy")
				}
				w.pool.EvictAll()
				l.Close()
				<-done
			})
		}
	}
}
