package route_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// fullNetwork has every exported field set.
func fullNetwork() *route.Network {
	return &route.Network{
		DNS: route.DNSFunc(func(context.Context, string, string) ([]netip.Addr, error) { return nil, nil }),
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, nil
		},
		ProxySelector: proxy.Fixed(proxy.Proxy{}),
		ProxyAuthenticator: auth.AuthenticatorFunc(func(proxy.Proxy, *http.Response) (*http.Request, error) {
			return nil, nil
		}),
		ProxyConnectHeader:    http.Header{"X-Token": {"t"}},
		ProxyTLSConfig:        &tls.Config{ServerName: "proxy.test"},
		TLSConfig:             &tls.Config{ServerName: "name.test", NextProtos: []string{"http/1.1"}},
		HostnameVerifier:      func(string, *tls.ConnectionState) error { return nil },
		Protocols:             []string{route.HTTP2, route.HTTP1},
		PingInterval:          time.Second,
		HTTP2StreamWindow:     1 << 20,
		HTTP2ConnectionWindow: 4 << 20,
		ConnectionListener:    event.NewConnectionRecorder(),
	}
}

// With copies every exported field: one that is added and forgotten fails here.
func TestNetworkWithCopiesEveryField(t *testing.T) {
	n := fullNetwork()
	c := n.With(nil)
	if c == n {
		t.Fatal("the copy has no identity of its own")
	}
	from, to := reflect.ValueOf(n).Elem(), reflect.ValueOf(c).Elem()
	for i := range from.NumField() {
		field := from.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		a, b := from.Field(i), to.Field(i)
		if a.IsZero() {
			t.Errorf("this test sets no %s", field.Name)
			continue
		}
		if b.IsZero() {
			t.Errorf("With forgets %s", field.Name)
			continue
		}
		switch field.Type.Kind() {
		case reflect.Func:
			if a.Pointer() != b.Pointer() {
				t.Errorf("%s is another function", field.Name)
			}
		case reflect.Slice, reflect.Map:
			if a.Pointer() == b.Pointer() {
				t.Errorf("%s shares its memory", field.Name)
			}
			if !reflect.DeepEqual(a.Interface(), b.Interface()) {
				t.Errorf("%s is %v", field.Name, b)
			}
		case reflect.Interface, reflect.Pointer:
		case reflect.Int, reflect.Int64:
			if a.Int() != b.Int() {
				t.Errorf("%s is %v, was %v", field.Name, b, a)
			}
		default:
			t.Errorf("%s is of a kind this test does not know", field.Name)
		}
		if _, ok := a.Interface().(*tls.Config); ok && a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", field.Name)
		}
	}
	if c.TLSConfig.ServerName != "name.test" || c.ProxyTLSConfig.ServerName != "proxy.test" {
		t.Error("the TLS configuration is not copied")
	}
}

func TestNetworkWithChangesTheCopyAlone(t *testing.T) {
	n := fullNetwork()
	c := n.With(func(n *route.Network) {
		n.Protocols[0] = route.HTTP1
		n.TLSConfig.ServerName = "other.test"
		n.ProxyConnectHeader.Set("X-Token", "u")
		n.PingInterval = time.Minute
	})
	if n.Protocols[0] != route.HTTP2 || n.TLSConfig.ServerName != "name.test" || n.PingInterval != time.Second || n.ProxyConnectHeader.Get("X-Token") != "t" {
		t.Error("the original changed")
	}
	if c.Protocols[0] != route.HTTP1 || c.TLSConfig.ServerName != "other.test" || c.PingInterval != time.Minute {
		t.Error("the copy did not change")
	}
}

// What a Network was left to choose is filled in, so that a copy can wrap it.
func TestNetworkDefaults(t *testing.T) {
	n := &route.Network{}
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	if n.DNS != route.DNS(net.DefaultResolver) || n.DialContext == nil || n.ProxySelector == nil ||
		n.ProxyAuthenticator == nil || n.ConnectionListener == nil || len(n.Protocols) != 2 {
		t.Errorf("a default is missing: %+v", n)
	}
	if !n.OwnDialer() {
		t.Error("the default dialer is not known")
	}
	if (&route.Network{DialContext: n.DialContext}).OwnDialer() {
		t.Error("a dialer of the user's is taken for ours")
	}
}

func TestNetworkValidate(t *testing.T) {
	verify := func(string, *tls.ConnectionState) error { return nil }
	for name, tc := range map[string]struct {
		n    *route.Network
		says string // "": valid
	}{
		"zero":                        {&route.Network{}, ""},
		"everything":                  {fullNetwork(), ""},
		"http/1.1":                    {&route.Network{Protocols: []string{"http/1.1"}}, ""},
		"http/1.1 before h2":          {&route.Network{Protocols: []string{"http/1.1", "h2"}}, ""},
		"h2c":                         {&route.Network{Protocols: []string{"h2c"}}, ""},
		"no protocol":                 {&route.Network{Protocols: []string{}}, "no protocol"},
		"h2 alone":                    {&route.Network{Protocols: []string{"h2"}}, "http/1.1"},
		"h2c and another":             {&route.Network{Protocols: []string{"h2c", "http/1.1"}}, "h2c"},
		"twice":                       {&route.Network{Protocols: []string{"http/1.1", "http/1.1"}}, "twice"},
		"unknown":                     {&route.Network{Protocols: []string{"http/1.1", "spdy/3"}}, "spdy/3"},
		"negative ping interval":      {&route.Network{PingInterval: -time.Second}, "ping interval"},
		"negative window":             {&route.Network{HTTP2StreamWindow: -1}, "window of -1 bytes"},
		"tiny window":                 {&route.Network{HTTP2StreamWindow: 1<<16 - 1}, "less than 65536"},
		"huge window":                 {&route.Network{HTTP2StreamWindow: 1 << 30}, "more than 1073741823"},
		"negative connection window":  {&route.Network{HTTP2ConnectionWindow: -1}, "connection's window of -1"},
		"tiny connection window":      {&route.Network{HTTP2ConnectionWindow: 1<<17 - 1}, "less than 131072"},
		"windows the wrong way round": {&route.Network{HTTP2StreamWindow: 2 << 20, HTTP2ConnectionWindow: 4<<20 - 1}, "half of the connection's"},
		"least windows":               {&route.Network{HTTP2StreamWindow: 1 << 16, HTTP2ConnectionWindow: 1 << 17}, ""},
		"largest windows":             {&route.Network{HTTP2StreamWindow: 1<<30 - 1, HTTP2ConnectionWindow: 1<<31 - 1}, ""},
		"verifier":                    {&route.Network{HostnameVerifier: verify}, ""},
		"verifier and insecure":       {&route.Network{HostnameVerifier: verify, TLSConfig: &tls.Config{InsecureSkipVerify: true}}, ""},
		"two verifiers": {&route.Network{HostnameVerifier: verify, TLSConfig: &tls.Config{
			VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { return nil },
		}}, "VerifyPeerCertificate"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the answer is kept
				err := tc.n.Validate()
				if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, want %q", err, tc.says)
				}
			}
		})
	}
}

func TestRoute(t *testing.T) {
	h2c := &route.Network{Protocols: []string{route.H2C}}
	for _, tc := range []struct {
		scheme            string
		network           *route.Network
		proxy             proxy.Type
		tunnel, forwarded bool
	}{
		{"http", &route.Network{}, proxy.Direct, false, false},
		{"http", &route.Network{}, proxy.HTTP, false, true},
		{"http", &route.Network{}, proxy.HTTPS, false, true},
		{"http", &route.Network{}, proxy.SOCKS5, false, false},
		{"https", &route.Network{}, proxy.Direct, false, false},
		{"https", &route.Network{}, proxy.HTTP, true, false},
		{"https", &route.Network{}, proxy.HTTPS, true, false},
		{"https", &route.Network{}, proxy.SOCKS4, false, false},
		{"http", h2c, proxy.HTTP, true, false},
		{"http", h2c, proxy.Direct, false, false},
	} {
		r := route.Route{
			Address:    route.Address{Scheme: tc.scheme, Host: "a.test", Port: 80, Network: tc.network},
			Proxy:      proxy.Proxy{Type: tc.proxy, Host: "p.test", Port: 3128},
			SocketHost: "2001:db8::1", SocketPort: 3128,
		}
		if r.RequiresTunnel() != tc.tunnel || r.Forwarded() != tc.forwarded {
			t.Errorf("%s, %v: tunnel %v, forwarded %v", tc.scheme, tc.proxy, r.RequiresTunnel(), r.Forwarded())
		}
		if r.SocketAddr() != "[2001:db8::1]:3128" {
			t.Errorf("dials %s", r.SocketAddr())
		}
	}
	secret := proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 3128, User: url.UserPassword("me", "hunter2")}
	r := route.Route{Address: route.Address{Scheme: "http", Host: "a.test", Port: 80}, Proxy: secret, SocketHost: "192.0.2.1", SocketPort: 3128}
	if s := r.String(); strings.Contains(s, "hunter2") || !strings.Contains(s, "a.test at 192.0.2.1:3128 via ") {
		t.Errorf("shown as %q", s)
	}
}

func TestNetworkDerivedFrom(t *testing.T) {
	base := &route.Network{}
	child := base.With(nil)
	grandchild, sibling := child.With(nil), base.With(nil)
	for _, tc := range []struct {
		n, of *route.Network
		want  bool
	}{
		{base, base, true}, {child, base, true}, {grandchild, base, true}, {grandchild, child, true},
		{base, child, false}, {sibling, child, false}, {base, &route.Network{}, false},
	} {
		if got := tc.n.DerivedFrom(tc.of); got != tc.want {
			t.Errorf("%p of %p: %v", tc.n, tc.of, got)
		}
	}
}

// A copy knows our own dialer again, and one that wraps it for another.
func TestWithKeepsOwnDialer(t *testing.T) {
	wrap := func(n *route.Network) {
		dial := n.DialContext
		n.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) { return dial(ctx, network, addr) }
	}
	for name, tc := range map[string]struct {
		n    *route.Network
		want bool
	}{
		"zero":             {&route.Network{}, true},
		"copy":             {(&route.Network{}).With(nil), true},
		"copy of a copy":   {(&route.Network{}).With(nil).With(func(n *route.Network) { n.PingInterval = time.Second }), true},
		"wrapped":          {(&route.Network{}).With(wrap), false},
		"copy of wrapped":  {(&route.Network{}).With(wrap).With(nil), false},
		"wrapped and back": {(&route.Network{}).With(wrap).With(func(n *route.Network) { n.DialContext = nil }), true},
	} {
		if err := tc.n.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := tc.n.OwnDialer(); got != tc.want {
			t.Errorf("%s: OwnDialer is %v", name, got)
		}
	}
}

// A Network may be copied while the first call uses it.
func TestWithBesideTheFirstUse(t *testing.T) {
	for range 100 {
		n := &route.Network{}
		var wg sync.WaitGroup
		wg.Go(func() { n.Validate() })
		wg.Go(func() { n.With(nil) })
		wg.Wait()
	}
}
