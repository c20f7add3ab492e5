package main

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// TestResolver: a lookup is answered by what was given for the port it is for.
func TestResolver(t *testing.T) {
	var given overrides
	for _, v := range []string{"a.test:80:192.0.2.1", "a.test:443:192.0.2.2", "*:8080:192.0.2.3", "proxy.test:3128:192.0.2.4"} {
		if err := given.add(v); err != nil {
			t.Fatal(err)
		}
	}
	dns := route.DNSFunc(func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("198.51.100.1")}, nil
	})
	viaProxy := proxy.Proxy{Type: proxy.HTTP, Host: "proxy.test", Port: 3128}
	tests := []struct {
		url, host string
		proxies   []proxy.Proxy
		want      string
	}{
		{"http://a.test:80/", "a.test", nil, "192.0.2.1"},
		{"https://a.test:443/", "a.test", nil, "192.0.2.2"},
		{"http://a.test/", "a.test", nil, "192.0.2.1"},
		{"https://a.test/", "a.test", nil, "192.0.2.2"},
		{"http://a.test:81/", "a.test", nil, "198.51.100.1"},
		{"http://a.test:8080/", "a.test", nil, "192.0.2.3"},
		{"http://b.test:8080/", "b.test", nil, "192.0.2.3"},
		{"http://b.test:80/", "b.test", nil, "198.51.100.1"},
		{"http://a.test:80/", "proxy.test", []proxy.Proxy{viaProxy, {}}, "192.0.2.4"},
		{"http://a.test:80/", "a.test", []proxy.Proxy{viaProxy, {}}, "192.0.2.1"},
	}
	for _, tt := range tests {
		r := &resolver{overrides: given, dns: dns, selector: proxy.Fixed(tt.proxies...)}
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		proxies, err := r.Select(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		want := tt.proxies
		if want == nil {
			want = []proxy.Proxy{{}}
		}
		if diff := cmp.Diff(want, proxies); diff != "" {
			t.Errorf("%s: proxies (-want +got):\n%s", tt.url, diff)
		}
		addrs, err := r.LookupNetIP(t.Context(), "ip", tt.host)
		if err != nil || len(addrs) != 1 || addrs[0].String() != tt.want {
			t.Errorf("%s of %s: %v, %v; want %s", tt.host, tt.url, addrs, err, tt.want)
		}
	}
}

// TestResolve: several addresses are tried in turn, and the Host field stays.
func TestResolve(t *testing.T) {
	s := serve(t, echoHost)
	port := s.URL[strings.LastIndexByte(s.URL, ':')+1:]
	want := "some.test:" + port
	got := catenaRun(t, "", "--resolve", want+":127.0.0.2,127.0.0.1", "http://Some.Test:"+port)
	if got.code != 0 || !strings.EqualFold(got.stdout, want) {
		t.Errorf("%+v, want %q", got, want)
	}
}
