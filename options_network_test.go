package catena_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// Of two options that set the same thing the later wins.
func TestLaterOptionsWin(t *testing.T) {
	ctx := t.Context()
	u := &url.URL{Scheme: "http", Host: "origin.test"}
	p := proxy.Proxy{Type: proxy.HTTP, Host: "one.test", Port: 80}
	q := proxy.Proxy{Type: proxy.HTTP, Host: "two.test", Port: 80}
	for name, test := range map[string]struct {
		opts []catena.Option
		want proxy.Proxy
	}{
		"proxy last":    {[]catena.Option{catena.WithProxySelector(proxy.Fixed(p)), catena.WithProxy(q)}, q},
		"selector last": {[]catena.Option{catena.WithProxy(q), catena.WithProxySelector(proxy.Fixed(p))}, p},
	} {
		for _, split := range []int{0, 1, 2} {
			client := newClient(t, test.opts[:split]...)
			derived, err := client.With(test.opts[split:]...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := derived.Network().ProxySelector.Select(ctx, u)
			if err != nil || len(got) != 1 || !got[0].Equal(test.want) {
				t.Errorf("%s, %d in New: proxies %v, %v; want %v", name, split, got, err, test.want)
			}
		}
	}
	client := newClient(t, catena.WithReadTimeout(1), catena.WithReadTimeout(2))
	if got := configOf(t, client).ReadTimeout; got != 2 {
		t.Errorf("read timeout %v, want the later one", got)
	}
	if got := configOf(t, client, catena.WithReadTimeout(3), catena.WithReadTimeout(4)).ReadTimeout; got != 4 {
		t.Errorf("read timeout %v of the call, want the later one", got)
	}
}

// With makes a Network of its own exactly where an option decides how servers are
// reached.
func TestNetworkOptionsMakeANetwork(t *testing.T) {
	base := newClient(t)
	pool := connection.NewPool(connection.PoolOptions{})
	t.Cleanup(pool.Close)
	jar, _ := cookiejar.New(nil)
	dns := route.DNSFunc(func(context.Context, string, string) ([]netip.Addr, error) { return nil, io.EOF })
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }
	verifier := func(string, *tls.ConnectionState) error { return io.EOF }
	listener := &event.NopConnectionListener{}
	config := &tls.Config{ServerName: "other.test"}
	for name, test := range map[string]struct {
		opt  catena.Option
		kept func(n *route.Network) bool // nil: the Network is shared
	}{
		"WithProxy":         {catena.WithProxy(proxy.Proxy{}), func(n *route.Network) bool { return n.ProxySelector != base.Network().ProxySelector }},
		"WithProxySelector": {catena.WithProxySelector(proxy.Fixed()), func(n *route.Network) bool { return n.ProxySelector != base.Network().ProxySelector }},
		"WithProxyAuthenticator": {catena.WithProxyAuthenticator(auth.Basic("a", "b")), func(n *route.Network) bool {
			return n.ProxyAuthenticator != base.Network().ProxyAuthenticator
		}},
		"WithDNS": {catena.WithDNS(dns), func(n *route.Network) bool {
			_, err := n.DNS.LookupNetIP(t.Context(), "ip", "a")
			return err == io.EOF
		}},
		"WithDialContext": {catena.WithDialContext(dial), func(n *route.Network) bool {
			_, err := n.DialContext(t.Context(), "tcp", "192.0.2.1:1")
			return err == io.EOF
		}},
		"WithTLSConfig": {catena.WithTLSConfig(config), func(n *route.Network) bool {
			return n.TLSConfig != config && n.TLSConfig.ServerName == "other.test"
		}},
		"WithProxyTLSConfig": {catena.WithProxyTLSConfig(config), func(n *route.Network) bool {
			return n.ProxyTLSConfig != config && n.ProxyTLSConfig.ServerName == "other.test"
		}},
		"WithProxyConnectHeader": {catena.WithProxyConnectHeader(http.Header{"X-Tenant": {"7"}}), func(n *route.Network) bool {
			return n.ProxyConnectHeader.Get("X-Tenant") == "7"
		}},
		"WithHostnameVerifier": {catena.WithHostnameVerifier(verifier), func(n *route.Network) bool { return n.HostnameVerifier("", nil) == io.EOF }},
		"WithProtocols":        {catena.WithProtocols("http/1.1"), func(n *route.Network) bool { return slices.Equal(n.Protocols, []string{"http/1.1"}) }},
		"WithPingInterval":     {catena.WithPingInterval(time.Second), func(n *route.Network) bool { return n.PingInterval == time.Second }},
		"WithHTTP2Windows": {catena.WithHTTP2Windows(1<<20, 8<<20), func(n *route.Network) bool {
			return n.HTTP2StreamWindow == 1<<20 && n.HTTP2ConnectionWindow == 8<<20
		}},
		"WithConnectionListener": {catena.WithConnectionListener(listener), func(n *route.Network) bool { return n.ConnectionListener == event.ConnectionListener(listener) }},

		"WithPool":                 {catena.WithPool(pool), nil},
		"WithDispatcher":           {catena.WithDispatcher(catena.NewDispatcher(catena.DispatcherOptions{})), nil},
		"WithCookieJar":            {catena.WithCookieJar(jar), nil},
		"WithAuthenticator":        {catena.WithAuthenticator(auth.None), nil},
		"WithSecrets":              {catena.WithSecrets("X-Mine"), nil},
		"WithLogger":               {catena.WithLogger(nil), nil},
		"WithEventListenerFactory": {catena.WithEventListenerFactory(nil), nil},
		"WithReadTimeout":          {catena.WithReadTimeout(1), nil},
		"WithInterceptor":          {catena.WithInterceptor(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			derived, err := base.With(test.opt)
			if err != nil {
				t.Fatal(err)
			}
			if shared := derived.Network() == base.Network(); shared != (test.kept == nil) {
				t.Fatalf("the Network is shared: %v", shared)
			}
			if test.kept != nil && !test.kept(derived.Network()) {
				t.Error("the derived Network does not have what the option set")
			}
			further, err := derived.With(catena.WithUserAgent("x"))
			if err != nil {
				t.Fatal(err)
			}
			if further.Network() != derived.Network() {
				t.Error("a third client does not share the second's Network")
			}
			if other, err := derived.With(catena.WithPingInterval(time.Minute)); err != nil {
				t.Error(err)
			} else if test.kept != nil && name != "WithPingInterval" && !test.kept(other.Network()) {
				t.Error("a further Network has lost what the option set")
			}
			if got := derived.Pool() == base.Pool(); got != (name != "WithPool") {
				t.Errorf("the pool is shared: %v", got)
			}
			if got := derived.Dispatcher() == base.Dispatcher(); got != (name != "WithDispatcher") {
				t.Errorf("the dispatcher is shared: %v", got)
			}
		})
	}
}

// What is given to options is the giver's: changes of it do not count.
func TestGivenValuesAreCloned(t *testing.T) {
	config := &tls.Config{ServerName: "before.test"}
	header := http.Header{"X-Tenant": {"before"}}
	opts := []catena.Option{
		catena.WithTLSConfig(config), catena.WithProxyTLSConfig(config), catena.WithProxyConnectHeader(header),
	}
	config.ServerName = "after.test"
	header["X-Tenant"][0] = "after"
	for range 2 {
		n := newClient(t, opts...).Network()
		for _, c := range []*tls.Config{n.TLSConfig, n.ProxyTLSConfig} {
			if c.ServerName != "before.test" {
				t.Errorf("ServerName %q", c.ServerName)
			}
			c.ServerName = "spoiled.test"
		}
		if got := n.ProxyConnectHeader["X-Tenant"]; got[0] != "before" {
			t.Errorf("header %q", got)
		}
		n.ProxyConnectHeader["X-Tenant"][0] = "spoiled"
	}
}

// Fields that a CONNECT can't have are an error of New that names the option.
func TestProxyConnectHeaderIsChecked(t *testing.T) {
	for _, h := range []http.Header{
		{"Host": {"x"}}, {"content-length": {"1"}}, {"Transfer-Encoding": {"chunked"}}, {"Proxy-Connection": {"close"}},
		{"Bad Name": {"x"}}, {"X": {"a\r\nb"}},
	} {
		_, err := catena.New(catena.WithProxyConnectHeader(h))
		if err == nil || !strings.HasPrefix(err.Error(), "WithProxyConnectHeader: ") {
			t.Errorf("%v: got %v", h, err)
		}
	}
	newClient(t, catena.WithProxyConnectHeader(nil), catena.WithProxyTLSConfig(nil))
}

// sayWindows serves one connection: it answers requests by 204, and says what windows
// it was offered.
func sayWindows(nc net.Conn, said chan<- string) {
	defer nc.Close()
	io.ReadFull(nc, make([]byte, len(http2.ClientPreface)))
	framer := http2.NewFramer(nc, nc)
	var first uint32
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if v, ok := frame.Value(http2.SettingInitialWindowSize); ok {
				first = v
			}
		case *http2.WindowUpdateFrame:
			said <- fmt.Sprintf("stream %d, connection %d", first, 65535+frame.Increment)
			framer.WriteSettings() // the client has written all it had to, and reads
		case *http2.HeadersFrame:
			noContent := []byte{0x89} // RFC 7541, appendix A
			framer.WriteHeaders(http2.HeadersFrameParam{StreamID: frame.StreamID, BlockFragment: noContent, EndHeaders: true, EndStream: true})
		}
	}
}

// The windows are what the server of a new connection is told first. Clients that
// differ in them share no connection, though they share a pool.
func TestHTTP2WindowsOnTheWire(t *testing.T) {
	said := make(chan string, 100)
	dial := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go sayWindows(theirs, said) // ends with the client
		return ours, nil
	}
	base := newClient(t, catena.WithProtocols("h2c"), catena.WithProxy(proxy.Proxy{}), catena.WithDialContext(dial))
	for name, test := range map[string]struct {
		opts []catena.Option
		want string
	}{
		"default":    {nil, "stream 16777216, connection 33554432"},
		"stream":     {[]catena.Option{catena.WithHTTP2Windows(1<<20, 0)}, "stream 1048576, connection 33554432"},
		"connection": {[]catena.Option{catena.WithHTTP2Windows(0, 4<<20)}, "stream 1048576, connection 2097152"},
		"both":       {[]catena.Option{catena.WithHTTP2Windows(2<<20, 8<<20)}, "stream 2097152, connection 4194304"},
		"undone":     {[]catena.Option{catena.WithHTTP2Windows(2<<20, 8<<20), catena.WithHTTP2Windows(0, 0)}, "stream 16777216, connection 33554432"},
	} {
		client, err := base.With(test.opts...)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := client.Get(t.Context(), "http://192.0.2.1/"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := gocmp.Diff(test.want, <-said); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(said) > 0 {
			t.Errorf("%s: a second connection", name)
		}
	}
}
