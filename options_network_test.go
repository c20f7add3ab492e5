package catena_test

import (
	"context"
	"crypto/tls"
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
		"WithHostnameVerifier":   {catena.WithHostnameVerifier(verifier), func(n *route.Network) bool { return n.HostnameVerifier("", nil) == io.EOF }},
		"WithProtocols":          {catena.WithProtocols("http/1.1"), func(n *route.Network) bool { return slices.Equal(n.Protocols, []string{"http/1.1"}) }},
		"WithPingInterval":       {catena.WithPingInterval(time.Second), func(n *route.Network) bool { return n.PingInterval == time.Second }},
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
