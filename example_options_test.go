package catena_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// An application interceptor sees a call once, and may change what is sent.
func ExampleWithInterceptor() {
	server := greeter()
	defer server.Close()
	requestID := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		req := c.Request().Clone(c.Request().Context())
		req.Header.Set("X-Request-Id", "42")
		return c.Proceed(req)
	})
	client, _ := catena.New(catena.WithInterceptor(requestID))
	defer client.Close()

	show(client.Get(context.Background(), server.URL+"/header"))
	// Output: 200 42
}

// A network interceptor sees every request on the wire, and its connection.
func ExampleWithNetworkInterceptor() {
	server := greeter()
	defer server.Close()
	wire := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		resp, err := c.Proceed(c.Request())
		if err == nil {
			fmt.Println(c.Connection().Protocol(), c.Request().URL.Path, resp.StatusCode)
		}
		return resp, err
	})
	client, _ := catena.New(catena.WithNetworkInterceptor(wire))
	defer client.Close()

	show(client.Get(context.Background(), server.URL+"/old"))
	// Output:
	// http/1.1 /old 302
	// http/1.1 /new 200
	// 200 GET /new
}

func ExampleWithEventListener() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	recorder := event.NewRecorder()
	req, _ := http.NewRequest("GET", server.URL, nil)
	show(client.NewCall(req, catena.WithEventListener(recorder)).Execute())
	for _, name := range recorder.Names()[3:6] {
		fmt.Println(name)
	}
	// Output:
	// 200 GET /
	// ConnectStart
	// ConnectEnd
	// ConnectionAcquired
}

func ExampleWithEventListenerFactory() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New(catena.WithEventListenerFactory(func(c event.Call) event.Listener {
		return &stopwatch{start: time.Now()}
	}))
	defer client.Close()

	show(client.Get(context.Background(), server.URL))
	// Output:
	// took less than a minute: true
	// 200 GET /
}

// stopwatch takes the time of one call.
type stopwatch struct {
	event.NopListener
	start time.Time
}

func (s *stopwatch) CallEnd(event.Call) {
	fmt.Println("took less than a minute:", time.Since(s.start) < time.Minute)
}

// Options makes one option of several, to be kept and given together.
func ExampleOptions() {
	server := greeter()
	defer server.Close()
	careful := catena.Options(
		catena.WithCallTimeout(time.Minute),
		catena.WithMaxFollowUps(3),
		catena.WithRetryPolicy(chain.RetrySafe),
	)
	client, err := catena.New(careful, catena.WithUserAgent("example/1.0"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	show(client.Get(context.Background(), server.URL))
	// Output: 200 GET /
}

func ExampleWithDNS() {
	server := greeter()
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	client, _ := catena.New(catena.WithDNS(route.DNSFunc(
		func(_ context.Context, network, host string) ([]netip.Addr, error) {
			fmt.Println("look up", host)
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		})))
	defer client.Close()

	show(client.Get(context.Background(), "http://greeter.example:"+port+"/"))
	// Output:
	// look up greeter.example
	// 200 GET /
}

// A server on a Unix socket is reached by a dialer that dials its path.
func ExampleWithDialContext() {
	dir, err := os.MkdirTemp("", "catena")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "http.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) }))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()

	client, _ := catena.New(
		catena.WithProxy(proxy.Proxy{}),
		catena.WithDNS(route.DNSFunc(func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.IPv4Unspecified()}, nil // not used
		})),
		catena.WithDialContext(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	defer client.Close()
	show(client.Get(context.Background(), "http://service.internal/"))
	// Output: 200 service.internal
}

func ExampleWithTLSConfig() {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "safe") }))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client, _ := catena.New(catena.WithTLSConfig(&tls.Config{RootCAs: roots}))
	defer client.Close()

	show(client.Get(context.Background(), server.URL))
	// Output: 200 safe
}

// The verifier replaces the check of the name; the chain is checked before.
func ExampleWithHostnameVerifier() {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client, _ := catena.New(
		catena.WithTLSConfig(&tls.Config{RootCAs: roots}),
		catena.WithHostnameVerifier(func(host string, state *tls.ConnectionState) error {
			fmt.Println(host, len(state.VerifiedChains) > 0)
			return errors.New("no friend of mine")
		}))
	defer client.Close()

	_, err := client.Get(context.Background(), server.URL)
	var refused *tls.CertificateVerificationError
	fmt.Println(errors.As(err, &refused))
	// Output:
	// 127.0.0.1 true
	// true
}

func ExampleWithProxy() {
	toProxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "the proxy was asked for ", r.URL)
	}))
	defer toProxy.Close()
	p, err := proxy.Parse(toProxy.URL)
	if err != nil {
		log.Fatal(err)
	}
	client, _ := catena.New(catena.WithProxy(p))
	defer client.Close()

	show(client.Get(context.Background(), "http://example.com/"))
	// Output: 200 the proxy was asked for http://example.com/
}

// A proxy for some hosts alone.
func ExampleWithProxySelector() {
	client, err := catena.New(catena.WithProxySelector(proxy.SelectorFunc(
		func(_ context.Context, u *url.URL) ([]proxy.Proxy, error) {
			if u.Hostname() != "intranet.example" {
				return nil, nil // direct
			}
			return []proxy.Proxy{{Type: proxy.HTTP, Host: "proxy.example", Port: 3128}}, nil
		})))
	if err != nil {
		log.Fatal(err)
	}
	client.Close()
}

func ExampleWithAuthenticator() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if !ok || user != "ada" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="engine"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, "hello, ", user)
	}))
	defer server.Close()
	client, _ := catena.New(catena.WithAuthenticator(auth.Basic("ada", "secret")))
	defer client.Close()

	show(client.Get(context.Background(), server.URL))
	// Output: 200 hello, ada
}

func ExampleWithCookieJar() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "seen", Value: "yes"})
		fmt.Fprint(w, len(r.Cookies()))
	}))
	defer server.Close()
	jar, _ := cookiejar.New(nil)
	client, _ := catena.New(catena.WithCookieJar(jar))
	defer client.Close()

	show(client.Get(context.Background(), server.URL))
	show(client.Get(context.Background(), server.URL))
	// Output:
	// 200 0
	// 200 1
}

// Values of declared secrets are masked in errors, events and logs.
func ExampleWithSecrets() {
	client, _ := catena.New(catena.WithSecrets("ticket"))
	defer client.Close()
	_, err := client.Get(context.Background(), "http://127.0.0.1:1/?ticket=123&page=2")
	var failed *catena.CallError
	if errors.As(err, &failed) {
		fmt.Println(failed.URL)
	}
	// Output: http://127.0.0.1:1/?ticket=██&page=2
}

// A pool of one's own, with at most two connections to a host: further calls
// wait their turn.
func ExampleWithPool() {
	server := greeter()
	defer server.Close()
	pool := connection.NewPool(connection.PoolOptions{MaxPerAddress: 2})
	defer pool.Close()
	client, _ := catena.New(catena.WithPool(pool))
	defer client.Close()

	show(client.Get(context.Background(), server.URL))
	fmt.Println(pool.IdleCount(), "idle")
	// Output:
	// 200 GET /
	// 1 idle
}

// A Network derived ahead of the calls that use it: an interceptor sends some of
// them another way.
func ExampleClient_Network() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()
	noProxy := client.Network().With(func(n *route.Network) { n.ProxySelector = proxy.Fixed(proxy.Proxy{}) })

	direct, _ := client.With(catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		if c.Request().Header.Get("X-Direct") != "" {
			c = c.With(func(config *chain.Config) { config.Network = noProxy })
		}
		return c.Proceed(c.Request())
	})))
	req, _ := http.NewRequest("GET", server.URL, nil)
	req.Header.Set("X-Direct", "1")
	show(direct.Do(req))
	// Output: 200 GET /
}

// Cleartext HTTP/2 by prior knowledge.
func ExampleWithProtocols() {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	client, _ := catena.New(catena.WithProtocols("h2c"))
	defer client.Close()

	show(client.Get(context.Background(), server.URL))
	// Output: 200 HTTP/2.0
}

// A service that keeps many slow downloads open bounds what each may hold: 1 MiB a
// response, 16 MiB a connection.
func ExampleWithHTTP2Windows() {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	client, _ := catena.New(catena.WithProtocols("h2c"), catena.WithHTTP2Windows(1<<20, 16<<20))
	defer client.Close()
	show(client.Get(context.Background(), server.URL))

	_, err := catena.New(catena.WithHTTP2Windows(16<<20, 1<<20))
	fmt.Println(err)
	// Output:
	// 200 HTTP/2.0
	// WithHTTP2Windows: a stream's window of 16777216 bytes is more than half of the connection's, 1048576
}

func ExampleWithConnectionListener() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New(catena.WithConnectionListener(&ends{}))
	show(client.Get(context.Background(), server.URL))
	client.CloseIdleConnections()
	client.Close()
	// Output:
	// 200 GET /
	// closed: evicted
}

// ends tells why connections end.
type ends struct{ event.NopConnectionListener }

func (*ends) Closed(_ event.Connection, why event.Reason) { fmt.Println("closed:", why) }
