package route_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

func TestRouteDialAddr(t *testing.T) {
	secret := url.UserPassword("me", "hunter2")
	for name, tc := range map[string]struct {
		r                    route.Route
		socket, dial, string string
	}{
		"direct": {
			route.Route{SocketHost: "192.0.2.1", SocketPort: 443},
			"192.0.2.1:443", "192.0.2.1:443", "a.test at 192.0.2.1:443",
		},
		"http": {
			route.Route{Proxy: proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 3128, User: secret}, SocketHost: "192.0.2.11", SocketPort: 3128},
			"192.0.2.11:3128", "192.0.2.11:3128", "a.test at 192.0.2.11:3128 via http://me:xxxxx@p.test:3128",
		},
		"socks5": {
			route.Route{Proxy: proxy.Proxy{Type: proxy.SOCKS5, Host: "p.test", User: secret}, SocketHost: "a.test", SocketPort: 443, SOCKSHost: "2001:db8::11"},
			"a.test:443", "[2001:db8::11]:1080", "a.test:443 via socks5://me:xxxxx@p.test:1080 at [2001:db8::11]:1080",
		},
		"socks4 at an address": {
			route.Route{Proxy: proxy.Proxy{Type: proxy.SOCKS4, Host: "192.0.2.11", Port: 81}, SocketHost: "192.0.2.1", SocketPort: 443, SOCKSHost: "192.0.2.11"},
			"192.0.2.1:443", "192.0.2.11:81", "a.test at 192.0.2.1:443 via socks4://192.0.2.11:81",
		},
	} {
		r := tc.r
		r.Address = route.Address{Scheme: "https", Host: "a.test", Port: 443}
		if diff := cmp.Diff([]string{tc.socket, tc.dial, tc.string}, []string{r.SocketAddr(), r.DialAddr(), r.String()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// trusts is what of a configuration decides whom it trusts and what it shows.
type trusts struct {
	Roots, Time, KeyLog, Insecure, Certificates, Verifies bool
	ServerName                                            string
	NextProtos                                            []string
}

func seen(c *tls.Config) trusts {
	return trusts{
		Roots: c.RootCAs != nil, Time: c.Time != nil, KeyLog: c.KeyLogWriter != nil, Insecure: c.InsecureSkipVerify,
		Certificates: len(c.Certificates) > 0 || c.GetClientCertificate != nil,
		Verifies:     c.VerifyConnection != nil || c.VerifyPeerCertificate != nil,
		ServerName:   c.ServerName, NextProtos: c.NextProtos,
	}
}

// An HTTPS proxy is verified by its own name and trust. What is for origins
// does not reach it: certificates, verifiers, the leave to trust anybody.
func TestProxyTLSConfigFor(t *testing.T) {
	forOrigins := func() *tls.Config {
		return &tls.Config{
			RootCAs: x509.NewCertPool(), Time: time.Now, KeyLogWriter: &bytes.Buffer{}, InsecureSkipVerify: true,
			Certificates: []tls.Certificate{{}}, ServerName: "origin.test", NextProtos: []string{"h2"},
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, nil },
			VerifyConnection:     func(tls.ConnectionState) error { return nil },
		}
	}
	http1 := []string{"http/1.1"}
	for name, tc := range map[string]struct {
		n    *route.Network
		host string
		want trusts
	}{
		"default":            {&route.Network{}, "p.test", trusts{ServerName: "p.test", NextProtos: http1}},
		"beside an origin's": {&route.Network{TLSConfig: forOrigins()}, "p.test", trusts{Roots: true, Time: true, KeyLog: true, ServerName: "p.test", NextProtos: http1}},
		"beside a verifier":  {&route.Network{HostnameVerifier: func(string, *tls.ConnectionState) error { return nil }}, "p.test", trusts{ServerName: "p.test", NextProtos: http1}},
		"its own": {
			&route.Network{TLSConfig: forOrigins(), ProxyTLSConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}, "p.test",
			trusts{Insecure: true, ServerName: "p.test", NextProtos: http1},
		},
		"its own name":    {&route.Network{ProxyTLSConfig: &tls.Config{ServerName: "other.test"}}, "p.test", trusts{ServerName: "other.test", NextProtos: http1}},
		"a name to clean": {&route.Network{}, "BÜCHER.test.", trusts{ServerName: "xn--bcher-kva.test", NextProtos: http1}},
		"an address":      {&route.Network{}, "192.0.2.1", trusts{ServerName: "192.0.2.1", NextProtos: http1}},
		"one with a zone": {&route.Network{}, "fe80::1%lo", trusts{ServerName: "fe80::1", NextProtos: http1}},
		"h2c for origins": {&route.Network{Protocols: []string{route.H2C}}, "p.test", trusts{ServerName: "p.test", NextProtos: http1}},
		"a copy's own":    {(&route.Network{ProxyTLSConfig: &tls.Config{ServerName: "other.test"}}).With(nil), "p.test", trusts{ServerName: "other.test", NextProtos: http1}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.n.Validate(); err != nil {
				t.Fatal(err)
			}
			c := tc.n.ProxyTLSConfigFor(proxy.Proxy{Type: proxy.HTTPS, Host: tc.host})
			if diff := cmp.Diff(tc.want, seen(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again := tc.n.ProxyTLSConfigFor(proxy.Proxy{Type: proxy.HTTPS, Host: tc.host})
			if c == again || c.ClientSessionCache == nil || c.ClientSessionCache != again.ClientSessionCache {
				t.Error("handshakes share a configuration, or no sessions")
			}
			if c.ClientSessionCache == tc.n.TLSConfigFor(route.Address{Scheme: "https", Host: "p.test", Port: 443}).ClientSessionCache {
				t.Error("proxies share sessions with origins")
			}
		})
	}
}

func TestProxyConnectHeader(t *testing.T) {
	for name, tc := range map[string]struct {
		h    http.Header
		says string // "": valid
	}{
		"none":             {nil, ""},
		"empty":            {http.Header{}, ""},
		"one":              {http.Header{"X-Token": {"a", "b"}}, ""},
		"user agent":       {http.Header{"User-Agent": {"me/1"}}, ""},
		"credentials":      {http.Header{"Proxy-Authorization": {"Bearer x"}}, ""},
		"malformed name":   {http.Header{"X Token": {"a"}}, `malformed name "X Token"`},
		"empty name":       {http.Header{"": {"a"}}, `malformed name ""`},
		"malformed value":  {http.Header{"X-Token": {"hunter2\r\nX: y"}}, "malformed value of X-Token"},
		"host":             {http.Header{"Host": {"a.test"}}, "must not have Host"},
		"in another case":  {http.Header{"transfer-ENCODING": {"chunked"}}, "must not have Transfer-Encoding"},
		"length":           {http.Header{"Content-Length": {"0"}}, "must not have Content-Length"},
		"connection":       {http.Header{"Connection": {"close"}}, "must not have Connection"},
		"proxy connection": {http.Header{"Proxy-Connection": {"close"}}, "must not have Proxy-Connection"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&route.Network{ProxyConnectHeader: tc.h}).Validate()
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Error("a value is shown")
			}
		})
	}
}

// Who made the header may go on to use it.
func TestProxyConnectHeaderIsCopied(t *testing.T) {
	mine := http.Header{"X-Token": {"a"}}
	n := &route.Network{ProxyConnectHeader: mine}
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	mine["X-Token"][0] = "b"
	mine.Set("Host", "a.test")
	if diff := cmp.Diff(http.Header{"X-Token": {"a"}}, n.ProxyConnectHeader); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The environment is read again for each Network that is left to it, when that is
// first used, and a copy keeps what was read.
func TestEnvironmentIsReadPerNetwork(t *testing.T) {
	for _, name := range []string{"http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "REQUEST_METHOD"} {
		t.Setenv(name, "")
	}
	t.Setenv("HTTP_PROXY", "http://one.test")
	chosen := func(n *route.Network) string {
		t.Helper()
		if err := n.Validate(); err != nil {
			t.Fatal(err)
		}
		list, err := n.ProxySelector.Select(t.Context(), &url.URL{Scheme: "http", Host: "a.test"})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0].Host
	}
	first := &route.Network{}
	if got := chosen(first); got != "one.test" {
		t.Errorf("the first has %s", got)
	}
	t.Setenv("HTTP_PROXY", "http://two.test")
	if got := chosen(first) + " " + chosen(first.With(nil)) + " " + chosen(&route.Network{}); got != "one.test one.test two.test" {
		t.Errorf("then: %s", got)
	}
}

func TestProxyError(t *testing.T) {
	err := fmt.Errorf("connect: %w", &route.ProxyError{
		StatusCode: 502, Head: &http.Response{StatusCode: 502, Header: http.Header{"Via": {"p"}}}, Body: []byte("no"),
		Proxy: proxy.Proxy{Type: proxy.HTTP, Host: "p.test", User: url.User("me")}, Target: "a.test:443",
	})
	if got, want := err.Error(), "connect: proxy http://me@p.test:80 refused a tunnel to a.test:443: 502 Bad Gateway"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (&route.ProxyError{StatusCode: 999, Target: "a.test:1"}).Error(), "proxy direct refused a tunnel to a.test:1: 999"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wants := &route.ProxyError{StatusCode: 407, Target: "a.test:1", Head: &http.Response{Header: http.Header{
		"Proxy-Authenticate": {`Negotiate, NTLM`, `Digest realm="x", nonce="y"`, `Digest realm="x", nonce="z"`, strings.Repeat("x", 100)},
	}}}
	if got, want := wants.Error(), "proxy direct refused a tunnel to a.test:1: 407 Proxy Authentication Required (it takes Negotiate, NTLM, Digest)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, tc := range []struct {
		target error
		want   bool
	}{
		{&route.ProxyError{StatusCode: 502}, true},
		{&route.ProxyError{StatusCode: 407}, false},
		{&route.ProxyError{}, false},
		{&route.ProxyError{StatusCode: 502, Target: "b.test:443"}, false},
		{route.ErrExhausted, false},
	} {
		if got := errors.Is(err, tc.target); got != tc.want {
			t.Errorf("is %v: %t", tc.target, got)
		}
	}
}
