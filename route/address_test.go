package route_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/route"
)

// Hosts as URLs have them: each has one outcome, the same in the pool's key, for
// DNS and for TLS.
func TestNewAddress(t *testing.T) {
	type outcome struct{ Address, ServerName string }
	for _, tc := range []struct {
		url  string
		want outcome // zero: an error
	}{
		{"http://example.com", outcome{"http://example.com:80", "example.com"}},
		{"https://example.com", outcome{"https://example.com:443", "example.com"}},
		{"https://example.com:", outcome{"https://example.com:443", "example.com"}},
		{"https://EXAMPLE.com:8443/x?y", outcome{"https://example.com:8443", "example.com"}},
		{"https://example.com./", outcome{"https://example.com.:443", "example.com"}},
		{"http://user:pw@example.com/", outcome{"http://example.com:80", "example.com"}},
		{"http://under_score.example", outcome{"http://under_score.example:80", "under_score.example"}},
		// Names in other scripts become A-labels, whatever form they are written in.
		{"http://✌.test:8080/", outcome{"http://xn--7bi.test:8080", "xn--7bi.test"}},
		{"http://bücher.example/", outcome{"http://xn--bcher-kva.example:80", "xn--bcher-kva.example"}},
		{"http://BÜCHER.example/", outcome{"http://xn--bcher-kva.example:80", "xn--bcher-kva.example"}},
		{"http://bücher.example./", outcome{"http://xn--bcher-kva.example.:80", "xn--bcher-kva.example"}},
		{"http://b%C3%BCcher.example/", outcome{"http://xn--bcher-kva.example:80", "xn--bcher-kva.example"}},
		{"http://xn--bcher-kva.example/", outcome{"http://xn--bcher-kva.example:80", "xn--bcher-kva.example"}},
		{"http://faß.de/", outcome{"http://xn--fa-hia.de:80", "xn--fa-hia.de"}},
		{"http://example。com/", outcome{"http://example.com:80", "example.com"}},
		{"http://１２７.0.0.1/", outcome{"http://127.0.0.1:80", "127.0.0.1"}},
		// Addresses.
		{"http://127.0.0.1", outcome{"http://127.0.0.1:80", "127.0.0.1"}},
		{"http://[::1]", outcome{"http://[::1]:80", "::1"}},
		{"http://[::1]:8080", outcome{"http://[::1]:8080", "::1"}},
		{"http://[2001:DB8:0:0::1]/", outcome{"http://[2001:db8::1]:80", "2001:db8::1"}},
		{"http://[::ffff:127.0.0.1]/", outcome{"http://127.0.0.1:80", "127.0.0.1"}},
		// A short form of an address is a name: nothing here reads it as one.
		{"http://127.1/", outcome{"http://127.1:80", "127.1"}},
		// A zone is dialed and stays out of TLS.
		{"http://[fe80::1%25eth0]:81/", outcome{"http://[fe80::1%eth0]:81", "fe80::1"}},
		{"http://[fe80::1%2537]/", outcome{"http://[fe80::1%37]:80", "fe80::1"}},
		{"http://[::1%25.example.com]/", outcome{"http://[::1%.example.com]:80", "::1"}},

		{"ftp://example.com", outcome{}},
		{"//example.com", outcome{}},
		{"http:///path", outcome{}},
		{"http://:80", outcome{}},
		{"http://example.com:0", outcome{}},
		{"http://example.com:65536", outcome{}},
		{"http://.example.com", outcome{}},
		{"http://.", outcome{}},
		{"http://a,b/", outcome{}},
		{"http://a*b/", outcome{}},
		{"http://a'b/", outcome{}},
		{"http://[fe80::1%25a%20b]/", outcome{}},
		{"http://" + strings.Repeat("a", 254) + "/", outcome{}},
		{"http://\u200d.example/", outcome{}},
	} {
		u, err := url.Parse(tc.url)
		if err != nil {
			t.Errorf("%s: %v", tc.url, err)
			continue
		}
		var got outcome
		a, err := route.NewAddress(u, nil)
		if err == nil {
			got = outcome{a.String(), a.ServerName()}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", tc.url, err, diff)
		}
	}
}

// Hosts that url.Parse refuses may come in a URL made by hand.
func TestNewAddressOfURLsMadeByHand(t *testing.T) {
	for _, host := range []string{
		"::1", "fe80::1", "::1:80", "a:b:80", "[example.com]", "[example.com]:80", "[127.0.0.1]", "[::1", "::1]", "[]", ":", "[]:80",
		"a b", "a\x00b", "a\r\nb", "a/b", "a@b", "a%62", "%31%32%37.0.0.1", "[::1%\r\n]", "[::1%a]b]", "example.com:+80", "example.com:-1", "example.com:http",
	} {
		if a, err := route.NewAddress(&url.URL{Scheme: "http", Host: host}, nil); err == nil {
			t.Errorf("host %q became %v", host, a)
		}
	}
}

// A host costs little however long it is: a redirect may have any.
func TestLongHostIsCheap(t *testing.T) {
	start := time.Now()
	_, err := route.CanonicalHost(strings.Repeat("丁丂七丄丅", 20_000))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("the error is %.300v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestAddressIsKeyOfItsNetwork(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "example.com"}
	n := &route.Network{}
	address := func(u *url.URL, n *route.Network) route.Address {
		a, err := route.NewAddress(u, n)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := address(u, n)
	seen := map[route.Address]string{a: "itself"}
	for name, same := range map[string]*url.URL{
		"default port": {Scheme: "https", Host: "example.com:443"},
		"case":         {Scheme: "https", Host: "Example.COM"},
		"path":         {Scheme: "https", Host: "example.com", Path: "/x"},
	} {
		if seen[address(same, n)] == "" {
			t.Errorf("%s makes another address", name)
		}
	}
	for name, other := range map[string]route.Address{
		"scheme":       address(&url.URL{Scheme: "http", Host: "example.com:443"}, n),
		"port":         address(&url.URL{Scheme: "https", Host: "example.com:444"}, n),
		"trailing dot": address(&url.URL{Scheme: "https", Host: "example.com."}, n),
		"network":      address(u, n.With(nil)),
	} {
		if seen[other] != "" {
			t.Errorf("%s makes no other address", name)
		}
	}
}

func FuzzNewAddress(f *testing.F) {
	for _, host := range []string{
		"example.com", "EXAMPLE.com:80", "bücher.example.", "[::1]:8080", "[fe80::1%25eth0]", "[::ffff:1.2.3.4%a]", "127.0.0.1",
		"１.1.1.1", "K.example", "a..b", "xn--7bi.test", "\u00ad", "example.com:", "[::1]:", "a%b", "ﷺ", "İ.test",
	} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		a, err := route.NewAddress(&url.URL{Scheme: "http", Host: host}, nil)
		if err != nil {
			return
		}
		for i := 0; i < len(a.Host); i++ {
			if c := a.Host[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`[]/?#@"<>\`, c) >= 0 {
				t.Fatalf("host %q became %q", host, a.Host)
			}
		}
		again, err := route.NewAddress(&url.URL{Scheme: "http", Host: a.HostPort()}, nil)
		if err != nil || again != a {
			t.Fatalf("host %q became %v, and that %v, %v", host, a, again, err)
		}
		if strings.ContainsAny(a.ServerName(), "%") || strings.HasSuffix(a.ServerName(), ".") && !strings.HasSuffix(a.Host, "..") {
			t.Fatalf("host %q: the server name is %q", host, a.ServerName())
		}
	})
}

func FuzzCanonicalHost(f *testing.F) {
	for _, host := range []string{"example.com", "bücher.example", "::1", "fe80::1%eth0", "::ffff:1.2.3.4", "A.b.", "１.1.1.1", "K"} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		once, err := route.CanonicalHost(host)
		if err != nil {
			return
		}
		twice, err := route.CanonicalHost(once)
		if err != nil || once != twice {
			t.Fatalf("%q became %q, and that %q, %v", host, once, twice, err)
		}
	})
}
