package proxy_test

import (
	"net"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpproxy"

	"github.com/catena-http/catena/proxy"
)

// setenv sets the variables in vars and clears every other one that counts.
func setenv(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, name := range []string{
		"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy",
		"NO_PROXY", "no_proxy", "REQUEST_METHOD",
	} {
		t.Setenv(name, "")
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}

// choice returns what s selects as text: the proxies, or the error.
func choice(t *testing.T, s proxy.Selector, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Select(t.Context(), u)
	if err != nil {
		return "error: " + err.Error()
	}
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

func TestEnvironmentVariables(t *testing.T) {
	const plain, secure = "http://a.test/", "https://a.test/"
	type env = map[string]string
	tests := []struct {
		name        string
		env         env
		http, https string
	}{
		{name: "none", env: env{}, http: "direct", https: "direct"},
		{name: "HTTP_PROXY", env: env{"HTTP_PROXY": "http://p:1"}, http: "http://p:1", https: "direct"},
		{name: "http_proxy", env: env{"http_proxy": "http://p:1"}, http: "http://p:1", https: "direct"},
		{name: "HTTPS_PROXY", env: env{"HTTPS_PROXY": "p:1"}, http: "direct", https: "http://p:1"},
		{name: "https_proxy", env: env{"https_proxy": "https://p"}, http: "direct", https: "https://p:443"},
		{name: "ALL_PROXY", env: env{"ALL_PROXY": "socks5h://p"}, http: "socks5://p:1080", https: "socks5://p:1080"},
		{name: "all_proxy", env: env{"all_proxy": "socks4a://p"}, http: "socks4a://p:1080", https: "socks4a://p:1080"},
		{
			name: "ALL_PROXY comes last", env: env{"ALL_PROXY": "p:1", "HTTPS_PROXY": "p:2"},
			http: "http://p:1", https: "http://p:2",
		},
		{
			name: "direct is a setting", env: env{"ALL_PROXY": "p:1", "HTTPS_PROXY": "direct"},
			http: "http://p:1", https: "direct",
		},
		{
			name: "NO_PROXY binds ALL_PROXY", env: env{"ALL_PROXY": "p:1", "NO_PROXY": "a.test:443"},
			http: "http://p:1", https: "direct",
		},
		{name: "password is masked", env: env{"http_proxy": "http://me:pw@p:1"}, http: "http://me:xxxxx@p:1", https: "direct"},
		{name: "white space around", env: env{"http_proxy": " p:1\n"}, http: "http://p:1", https: "direct"},
		{name: "CGI", env: env{"HTTP_PROXY": "evil:1", "REQUEST_METHOD": "GET"}, http: "direct", https: "direct"},
		{
			name: "CGI leaves the others",
			env:  env{"HTTP_PROXY": "evil:1", "ALL_PROXY": "p:2", "HTTPS_PROXY": "p:3", "REQUEST_METHOD": "GET"},
			http: "http://p:2", https: "http://p:3",
		},
		{
			name: "malformed HTTP_PROXY", env: env{"HTTP_PROXY": "http://me:pw@p:x"},
			http:  "error: environment variable HTTP_PROXY can't be used: proxy port is not a number from 1 to 65535",
			https: "direct",
		},
		{
			name: "malformed https_proxy", env: env{"https_proxy": "gopher://p", "ALL_PROXY": "p:1"},
			http: "http://p:1",
			https: "error: environment variable https_proxy can't be used: proxy scheme \"gopher\" is not supported: " +
				"want http, https, socks4, socks4a, socks5, socks5h or direct",
		},
		{
			name: "malformed ALL_PROXY", env: env{"ALL_PROXY": "/", "HTTP_PROXY": "p:1"},
			http:  "http://p:1",
			https: "error: environment variable ALL_PROXY can't be used: proxy address has no host",
		},
		{
			name: "blank is malformed", env: env{"HTTP_PROXY": " "},
			http: "error: environment variable HTTP_PROXY can't be used: proxy address is empty", https: "direct",
		},
		{name: "malformed but bypassed", env: env{"HTTP_PROXY": ":x", "NO_PROXY": "a.test"}, http: "direct", https: "direct"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			setenv(t, tt.env)
			s := proxy.FromEnvironment()
			if diff := cmp.Diff(tt.http, choice(t, s, plain)); diff != "" {
				t.Errorf("http (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.https, choice(t, s, secure)); diff != "" {
				t.Errorf("https (-want +got):\n%s", diff)
			}
			if got := choice(t, s, "ws://a.test/"); got != "direct" {
				t.Errorf("a scheme without a variable goes to %s", got)
			}
		})
	}
}

func TestEnvironmentIsReadOnce(t *testing.T) {
	setenv(t, map[string]string{"HTTP_PROXY": "p:1"})
	s := proxy.FromEnvironment()
	setenv(t, map[string]string{"HTTP_PROXY": "p:2", "NO_PROXY": "*"})
	if got := choice(t, s, "http://a.test/"); got != "http://p:1" {
		t.Errorf("the old selector chose %s, want what was set when it was made", got)
	}
	if got := choice(t, proxy.FromEnvironment(), "http://a.test/"); got != "direct" {
		t.Errorf("a new selector chose %s", got)
	}
}

// Variables may come from elsewhere than the environment.
func TestFromVariables(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://other.test")
	t.Setenv("NO_PROXY", "*")
	values := map[string]string{"ALL_PROXY": "socks5://p.test", "NO_PROXY": "direct.test"}
	selector := proxy.FromVariables(func(name string) string { return values[name] })
	values["ALL_PROXY"] = "changed" // it is read once
	for host, want := range map[string]string{"a.test": "socks5://p.test:1080", "direct.test": "direct"} {
		got, err := selector.Select(t.Context(), &url.URL{Scheme: "http", Host: host})
		if err != nil || len(got) != 1 || got[0].String() != want {
			t.Errorf("%s: %v, %v, want %s", host, got, err, want)
		}
	}
}

func TestEnvironmentKeepsOneUser(t *testing.T) {
	setenv(t, map[string]string{"HTTP_PROXY": "http://me:pw@p:1"})
	s := proxy.FromEnvironment()
	u := &url.URL{Scheme: "http", Host: "a.test"}
	first, err := s.Select(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	kept := first[0]
	first[0] = proxy.Proxy{} // the list is the caller's
	s.ConnectFailed(u, kept, net.ErrClosed)
	second, err := s.Select(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	if second[0] != kept {
		t.Errorf("two selections give %v and %v, which differ by ==", kept, second[0])
	}
}

func TestNoProxy(t *testing.T) {
	const direct, proxied = true, false
	tests := []struct {
		noProxy, url string
		want         bool
	}{
		// Names: whole labels, from the end.
		{"", "http://example.com/", proxied},
		{"example.com", "http://example.com/", direct},
		{"example.com", "https://example.com/", direct},
		{"example.com", "http://www.example.com/", direct},
		{"example.com", "http://a.b.example.com/", direct},
		{"example.com", "http://notexample.com/", proxied},
		{"example.com", "http://example.com.evil.test/", proxied},
		{"example.com", "http://example.org/", proxied},
		{"example.com", "http://com/", proxied},
		{"com", "http://example.com/", direct},
		{"intranet", "http://intranet/", direct},
		{"my-host_1", "http://my-host_1/", direct},
		// Subdomains only.
		{".example.com", "http://example.com/", proxied},
		{".example.com", "http://www.example.com/", direct},
		{".example.com", "http://notexample.com/", proxied},
		{"*.example.com", "http://example.com/", proxied},
		{"*.example.com", "http://www.example.com/", direct},
		{"*.example.com", "http://a.b.example.com/", direct},
		{"*.example.com", "http://notexample.com/", proxied},
		// Everything, and asterisks that are no wildcards.
		{"*", "http://example.com/", direct},
		{"*", "http://192.0.2.1/", direct},
		{"*", "http://[2001:db8::1]/", direct},
		{"a.test,*", "https://example.com/", direct},
		{"*.", "http://example.com/", proxied},
		{"*example.com", "http://notexample.com/", proxied},
		{"www.*.com", "http://www.example.com/", proxied},
		{"*:80", "http://example.com/", proxied},
		{"*:", "http://example.com/", proxied},
		{"[*]", "http://example.com/", proxied},
		// Case, trailing dots, international names.
		{"EXAMPLE.com", "http://www.Example.COM/", direct},
		{"example.com", "http://example.com./", direct},
		{"example.com.", "http://example.com/", direct},
		{"example.com.:80", "http://example.com/", direct},
		{".example.com.", "http://www.example.com./", direct},
		{"bücher.test", "http://xn--bcher-kva.test/", direct},
		{"xn--bcher-kva.test", "http://www.BÜCHER.test/", direct},
		{"ücher.test", "http://bücher.test/", proxied},
		// Lists.
		{"a.test,example.com", "http://example.com/", direct},
		{" a.test , example.com ", "http://example.com/", direct},
		{"a.test example.com", "http://example.com/", direct},
		{"a.test\texample.com\n", "http://a.test/", direct},
		{",,example.com,", "http://example.com/", direct},
		{",,", "http://example.com/", proxied},
		{"a.test;example.com", "http://example.com/", proxied},
		// Ports.
		{"example.com:80", "http://example.com/", direct},
		{"example.com:80", "https://example.com/", proxied},
		{"example.com:443", "https://example.com/", direct},
		{"example.com:8080", "http://example.com:8080/", direct},
		{"example.com:8080", "http://www.example.com:8080/", direct},
		{"example.com:8080", "http://example.com/", proxied},
		{"example.com", "http://example.com:8080/", direct},
		{".example.com:80", "http://www.example.com:80/", direct},
		{"example.com:", "http://example.com:8080/", direct},
		{":80", "http://example.com/", proxied},
		{"192.0.2.1:80", "http://192.0.2.1/", direct},
		{"192.0.2.1:80", "http://192.0.2.1:81/", proxied},
		{"[2001:db8::1]:443", "https://[2001:db8::1]/", direct},
		{"[2001:db8::1]:443", "http://[2001:db8::1]/", proxied},
		// Addresses: compared as numbers, never looked up, no names.
		{"192.0.2.1", "http://192.0.2.1/", direct},
		{"192.0.2.1", "http://192.0.2.10/", proxied},
		{"2.1", "http://192.0.2.1/", proxied},
		{".2.1", "http://192.0.2.1/", proxied},
		{"192.0.2.1", "http://www.192.0.2.1.test/", proxied},
		{"192.0.2.*", "http://192.0.2.1/", proxied},
		{"2001:db8::1", "http://[2001:db8::1]/", direct},
		{"[2001:db8::1]", "http://[2001:db8::1]/", direct},
		{"2001:DB8:0:0:0:0:0:1", "http://[2001:db8::1]/", direct},
		{"2001:db8::1", "http://[2001:0db8:0:0::0001]:8080/", direct},
		{"2001:db8::1", "http://[2001:db8::10]/", proxied},
		{"::ffff:192.0.2.1", "http://192.0.2.1/", direct},
		{"192.0.2.1", "http://[::ffff:192.0.2.1]/", direct},
		{"192.0.2.1", "http://[::ffff:c000:201]/", direct},
		{"fe80::1", "http://[fe80::1%25eth0]/", direct},
		{"fe80::1%eth0", "http://[fe80::1%25eth0]/", direct},
		{"[fe80::1%eth0]:80", "http://[fe80::1]/", direct},
		// Ranges, at any bit.
		{"10.0.0.0/8", "http://10.255.0.1/", direct},
		{"10.0.0.0/8", "http://11.0.0.1/", proxied},
		{"10.1.2.3/8", "http://10.9.9.9/", direct},
		{"192.0.2.128/25", "http://192.0.2.129/", direct},
		{"192.0.2.128/25", "http://192.0.2.127/", proxied},
		{"192.0.2.4/30", "http://192.0.2.7/", direct},
		{"192.0.2.4/30", "http://192.0.2.8/", proxied},
		{"192.0.2.1/32", "http://192.0.2.1/", direct},
		{"0.0.0.0/0", "http://192.0.2.1/", direct},
		{"0.0.0.0/0", "http://[2001:db8::1]/", proxied},
		{"10.0.0.0/8", "http://[::ffff:10.0.0.1]/", direct},
		{"2001:db8::/32", "http://[2001:db8:ffff::1]/", direct},
		{"2001:db8::/33", "http://[2001:db8:8000::1]/", proxied},
		{"2001:db8:8000::/33", "http://[2001:db8:8000::1]/", direct},
		{"[2001:db8::]/32", "http://[2001:db8::1]/", direct},
		{"fe80::/10", "http://[febf::1%25eth0]/", direct},
		{"::/0", "http://[2001:db8::1]/", direct},
		{"192.0.2.0/33", "http://192.0.2.1/", proxied},
		{"192.0.2.0/x", "http://192.0.2.1/", proxied},
		{"10.0.0.0/8", "http://ten.test/", proxied},
		// A zone is no domain.
		{".example.com", "http://[2001:db8::1%25.example.com]/", proxied},
		{"*.example.com", "http://[2001:db8::1%25.example.com]:8080/", proxied},
		{"example.com", "http://[2001:db8::1%25example.com]/", proxied},
		{"*.example.com", "http://[::1%25.example.com]/", direct}, // as loopback
		// Loopback, without an entry.
		{"", "http://localhost/", direct},
		{"", "https://LOCALHOST:8443/", direct},
		{"", "http://localhost./", direct},
		{"", "http://127.0.0.1/", direct},
		{"", "http://127.9.8.7:8080/", direct},
		{"", "http://[::1]/", direct},
		{"", "http://[0:0:0:0:0:0:0:1]/", direct},
		{"", "http://[::ffff:127.0.0.1]/", direct},
		{"", "http://[::1%25lo]/", direct},
		{"", "http://www.localhost/", proxied},
		{"", "http://localhost.test/", proxied},
		{"", "http://0.0.0.0/", proxied},
		{"", "http://2130706433/", proxied},
		{"", "http://127.0.0.1.test/", proxied},
	}
	for _, tt := range tests {
		t.Run(tt.noProxy+" "+tt.url, func(t *testing.T) {
			setenv(t, map[string]string{"ALL_PROXY": "p.test:3128", "NO_PROXY": tt.noProxy})
			got := choice(t, proxy.FromEnvironment(), tt.url) == "direct"
			if got != tt.want {
				t.Errorf("direct is %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNoProxyInLowerCaseComesFirst(t *testing.T) {
	setenv(t, map[string]string{"ALL_PROXY": "p:1", "NO_PROXY": "a.test", "no_proxy": "b.test"})
	s := proxy.FromEnvironment()
	if a, b := choice(t, s, "http://a.test"), choice(t, s, "http://b.test"); a != "http://p:1" || b != "direct" {
		t.Errorf("a.test goes to %s and b.test to %s, want the latter alone direct", a, b)
	}
}

// FuzzNoProxy checks that whatever x/net's rules send direct goes direct here too: the spellings known
// here beyond those add to them.
func FuzzNoProxy(f *testing.F) {
	f.Add("a.test,.b.test:80,*.c.test", "www.b.test")
	f.Add("10.0.0.0/8,[2001:db8::1]:80,::1", "2001:db8::1")
	f.Add("*.,.,[,],:,*", "x")
	f.Add("fe80::1%eth0 bücher.test.", "bücher.test")
	f.Fuzz(func(t *testing.T, noProxy, host string) {
		if !utf8.ValidString(noProxy+host) || strings.ContainsRune(noProxy, 0) {
			return // no variable
		}
		if strings.ContainsAny(host, "%[] \t\r\n") || strings.HasSuffix(host, ".") {
			return // no host, or one that is read differently on purpose
		}
		u := &url.URL{Scheme: "http", Host: net.JoinHostPort(host, "80")}
		theirs := httpproxy.Config{HTTPProxy: "http://p", NoProxy: noProxy}
		chosen, err := theirs.ProxyFunc()(u)
		if err != nil {
			t.Fatal(err)
		}
		setenv(t, map[string]string{"HTTP_PROXY": "http://p", "NO_PROXY": noProxy})
		ours, err := proxy.FromEnvironment().Select(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		if chosen == nil && !ours[0].IsDirect() {
			t.Errorf("NO_PROXY=%q: x/net reaches %q directly, this package through %v", noProxy, host, ours)
		}
	})
}
