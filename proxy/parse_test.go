package proxy_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/proxy"
)

func TestParse(t *testing.T) {
	user := url.UserPassword
	tests := []struct {
		in   string
		want proxy.Proxy
	}{
		{"direct", proxy.Proxy{}},
		{"DIRECT", proxy.Proxy{}},
		{"direct://", proxy.Proxy{}},
		{"http://p.test:3128", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 3128}},
		{"http://p.test", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80}},
		{"http://p.test:", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80}},
		{"http://p.test/", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80}},
		{"HTTP://P.Test:8080/", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 8080}},
		{" \thttp://p.test:1\r\n", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 1}},
		{"https://p.test", proxy.Proxy{Type: proxy.HTTPS, Host: "p.test", Port: 443}},
		{"socks4://192.0.2.7", proxy.Proxy{Type: proxy.SOCKS4, Host: "192.0.2.7", Port: 1080}},
		{"socks4a://p.test", proxy.Proxy{Type: proxy.SOCKS4A, Host: "p.test", Port: 1080}},
		{"socks5://p.test", proxy.Proxy{Type: proxy.SOCKS5, Host: "p.test", Port: 1080}},
		{"socks5h://p.test:9050", proxy.Proxy{Type: proxy.SOCKS5, Host: "p.test", Port: 9050}},
		{"p.test", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80}},
		{"p.test:3128", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 3128}},
		{"192.0.2.7:3128", proxy.Proxy{Type: proxy.HTTP, Host: "192.0.2.7", Port: 3128}},
		{"[2001:db8::1]:3128", proxy.Proxy{Type: proxy.HTTP, Host: "2001:db8::1", Port: 3128}},
		{"me:pw@p.test:3128", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 3128, User: user("me", "pw")}},
		{"http://my_proxy-1.test.", proxy.Proxy{Type: proxy.HTTP, Host: "my_proxy-1.test.", Port: 80}},
		{"http://bücher.test", proxy.Proxy{Type: proxy.HTTP, Host: "xn--bcher-kva.test", Port: 80}},
		{"http://[::1]", proxy.Proxy{Type: proxy.HTTP, Host: "::1", Port: 80}},
		{"http://[2001:DB8:0::1]:80", proxy.Proxy{Type: proxy.HTTP, Host: "2001:db8::1", Port: 80}},
		{"socks5://[fe80::1%25eth0]", proxy.Proxy{Type: proxy.SOCKS5, Host: "fe80::1%eth0", Port: 1080}},
		{"socks5://[fe80::1%eth0]:1", proxy.Proxy{Type: proxy.SOCKS5, Host: "fe80::1%eth0", Port: 1}},
		{"http://me@p.test", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80, User: url.User("me")}},
		{"http://me:@p.test", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80, User: user("me", "")}},
		{"http://:pw@p.test", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80, User: user("", "pw")}},
		{"http://@p.test", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80}},
		{"http://a%40b:%2F%3a%25+%20@p.test", proxy.Proxy{
			Type: proxy.HTTP, Host: "p.test", Port: 80, User: user("a@b", "/:%+ "),
		}},
		{"http://me:p@ss:word@p.test", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80, User: user("me", "p@ss:word")}},
		{"socks4://me@p.test", proxy.Proxy{Type: proxy.SOCKS4, Host: "p.test", Port: 1080, User: url.User("me")}},
		{"socks4a://me:pw@p.test", proxy.Proxy{Type: proxy.SOCKS4A, Host: "p.test", Port: 1080, User: user("me", "pw")}},
		{"socks5://m%40:p%3A@[::1]", proxy.Proxy{Type: proxy.SOCKS5, Host: "::1", Port: 1080, User: user("m@", "p:")}},
		{"http://mé:pä@p.test", proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80, User: user("mé", "pä")}},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := proxy.Parse(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			// Equal is compared by its own test; here a default port must be filled in, so Port counts.
			if diff := cmp.Diff(tt.want, got); diff != "" || got.Port != tt.want.Port {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("the result is not valid: %v", err)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	const want = ": want http, https, socks4, socks4a, socks5, socks5h or direct"
	tests := []struct{ in, want string }{
		{"", "proxy address is empty"},
		{" \n", "proxy address is empty"},
		{"ftp://p.test", `proxy scheme "ftp" is not supported` + want},
		{"socks://p.test", `proxy scheme "socks" is not supported` + want},
		{"://p.test", `proxy scheme "" is not supported` + want},
		{"me:hunter2://p.test", "proxy scheme is malformed" + want},
		{"direct://p.test", "direct proxy takes no address"},
		{"http://", "proxy address has no host"},
		{"http://:3128", "proxy address has no host"},
		{"http://me:hunter2@", "proxy address has no host"},
		{"http://p.test/path", "proxy address has a path, query or fragment"},
		{"http://p.test?hunter2", "proxy address has a path, query or fragment"},
		{"http://me:hunter2#p.test", "proxy address has a path, query or fragment"},
		{"http://me:1#hunter2@p.test", "proxy user info has a '/', '?' or '#' that is not percent-encoded"},
		{"http://me:1/hunter2@p.test", "proxy user info has a '/', '?' or '#' that is not percent-encoded"},
		{"http://me:hunter2%zz@p.test", "proxy user info has a malformed percent-encoding"},
		{"http://m%e:hunter2@p.test", "proxy user info has a malformed percent-encoding"},
		{"http://me:hunter2%0d%0a@p.test", "proxy user info has a control character"},
		{"socks4://me%00:hunter2@p.test", "proxy user info has a control character"},
		{"socks5://me@p.test", "proxy password is empty or too long: socks5 wants 1 to 255 bytes"},
		{"socks5://:hunter2@p.test", "proxy user has 0 bytes: socks5 wants 1 to 255"},
		{"socks5h://me:hunter2" + strings.Repeat("x", 249) + "@p.test", "proxy password is empty or too long: socks5 wants 1 to 255 bytes"},
		{"http://me:hunter2", "proxy port is not a number from 1 to 65535"},
		{"http://p.test:0", "proxy port is not a number from 1 to 65535"},
		{"http://p.test:65536", "proxy port is not a number from 1 to 65535"},
		{"http://p.test:-1", "proxy port is not a number from 1 to 65535"},
		{"http://p.test:+80", "proxy port is not a number from 1 to 65535"},
		{"http://2001:db8::1", "proxy host has too many colons: an IPv6 address needs brackets"},
		{"socks5:p.test:1080", "proxy host has too many colons: an IPv6 address needs brackets"},
		{"http://[2001:db8::1", "proxy host lacks the closing ']'"},
		{"http://[2001:db8::1]3128", "proxy host is followed by something other than a port"},
		{"http://[p.test]", "proxy host in brackets is no IPv6 address"},
		{"http://[192.0.2.1]", "proxy host in brackets is no IPv6 address"},
		{"http://[]", "proxy host in brackets is no IPv6 address"},
		{"http://[fe80::1%25]", "proxy host in brackets is no IPv6 address"},
		{"http://[fe80::1%25\n]", "proxy host has a malformed zone"},
		{"http://[fe80::1%25%65th0]", "proxy host has a malformed zone"},
		{"http://p test", `proxy host has the character ' '`},
		{"http://p%20test", `proxy host has the character '%'`},
		{"http://p.test\x00:1", `proxy host has the character '\x00'`},
		{"http://\xff.test", "proxy host is not UTF-8"},
		{"http://\u034f", "proxy host is no valid international domain name"},
		{"http://\uff0f.test", "proxy host is no valid international domain name"},
		{"http://\u00ad\u0300", "proxy host is no valid international domain name"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			p, err := proxy.Parse(tt.in)
			if err == nil {
				t.Fatalf("got %v, want an error", p)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the password: %v", err)
			}
			if p != (proxy.Proxy{}) {
				t.Errorf("got %v beside the error", p)
			}
		})
	}
}

// FuzzParse checks that what Parse accepts is usable and that its text names the same proxy.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"direct", "http://me:p%40ss@p.test:3128/", "socks5h://[fe80::1%25eth0]:1080", "p.test:3128",
		"https://bücher.test", "http://[::ffff:192.0.2.1]", "http://a@b@c:1", "http://me:1#x@p.test", "[::1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := proxy.Parse(s)
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("Parse(%q) returned an invalid proxy: %v", s, err)
		}
		p.User = nil
		again, err := proxy.Parse(p.String())
		if err != nil || again != p {
			t.Fatalf("Parse(%q) is %v, which is read back as %v, error %v", s, p, again, err)
		}
	})
}

// FuzzParsePassword checks that no error shows the password, however it breaks the address.
func FuzzParsePassword(f *testing.F) {
	f.Add("http://me:", "@p.test")
	f.Add("me:", "#@p.test:x")
	f.Add("socks5://me:%", "")
	f.Add("http://", ":x@[::1")
	f.Fuzz(func(t *testing.T, before, after string) {
		const password = "hunter2"
		if !strings.Contains(before, ":") {
			return // no password without a colon before it
		}
		if _, err := proxy.Parse(before + password + after); err != nil && strings.Contains(err.Error(), password) {
			t.Fatalf("Parse(%q) shows the password: %v", before+password+after, err)
		}
	})
}
