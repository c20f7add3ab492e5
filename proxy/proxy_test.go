package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/proxy"
)

func TestText(t *testing.T) {
	tests := []struct {
		p    proxy.Proxy
		text string
		addr string
	}{
		{proxy.Proxy{}, "direct", ""},
		{proxy.Proxy{Type: proxy.HTTP, Host: "p.test"}, "http://p.test:80", "p.test:80"},
		{proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 3128}, "http://p.test:3128", "p.test:3128"},
		{proxy.Proxy{Type: proxy.HTTPS, Host: "p.test"}, "https://p.test:443", "p.test:443"},
		{proxy.Proxy{Type: proxy.SOCKS4, Host: "192.0.2.1"}, "socks4://192.0.2.1:1080", "192.0.2.1:1080"},
		{proxy.Proxy{Type: proxy.SOCKS4A, Host: "p.test"}, "socks4a://p.test:1080", "p.test:1080"},
		{proxy.Proxy{Type: proxy.SOCKS5, Host: "2001:db8::1"}, "socks5://[2001:db8::1]:1080", "[2001:db8::1]:1080"},
		{proxy.Proxy{Type: proxy.HTTP, Host: "fe80::1%eth0"}, "http://[fe80::1%25eth0]:80", "[fe80::1%eth0]:80"},
		{
			proxy.Proxy{Type: proxy.HTTP, Host: "p.test", User: url.UserPassword("me", "hunter2")},
			"http://me:xxxxx@p.test:80", "p.test:80",
		},
		{proxy.Proxy{Type: proxy.HTTP, Host: "p.test", User: url.User("me")}, "http://me@p.test:80", "p.test:80"},
		{proxy.Proxy{Type: 9, Host: "p.test", Port: 1}, "Type(9)://p.test:1", "p.test:1"},
		{proxy.Proxy{Type: -1, Host: "p.test"}, "Type(-1)://p.test:0", "p.test:0"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			if diff := cmp.Diff(tt.text, tt.p.String()); diff != "" {
				t.Errorf("String() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.addr, tt.p.Addr()); diff != "" {
				t.Errorf("Addr() (-want +got):\n%s", diff)
			}
			if got, want := tt.p.IsDirect(), tt.p.Type == proxy.Direct; got != want {
				t.Errorf("IsDirect() = %v, want %v", got, want)
			}
		})
	}
}

func TestNoVerbShowsThePassword(t *testing.T) {
	p := proxy.Proxy{Type: proxy.HTTP, Host: "p.test", User: url.UserPassword("me", "hunter2")}
	held := struct{ Via proxy.Proxy }{p}
	pointed := struct{ Via *proxy.Proxy }{&p}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		for _, v := range []any{p, &p, []proxy.Proxy{p}, held, pointed} {
			text := fmt.Sprintf(verb, v)
			if strings.Contains(text, "hunter2") || strings.Contains(text, "68756e74657232") {
				t.Errorf("%s of %T shows the password: %s", verb, v, text)
			}
		}
	}
	text, err := json.Marshal(held)
	if err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("as JSON: %s, error %v", text, err)
	}
}

func TestEqual(t *testing.T) {
	base := func(change func(*proxy.Proxy)) proxy.Proxy {
		p := proxy.Proxy{Type: proxy.SOCKS5, Host: "p.test", Port: 1080, User: url.UserPassword("me", "pw")}
		change(&p)
		return p
	}
	same := func(*proxy.Proxy) {}
	tests := []struct {
		name  string
		a, b  func(*proxy.Proxy)
		equal bool
	}{
		{"made apart", same, same, true},
		{"default port", same, func(p *proxy.Proxy) { p.Port = 0 }, true},
		{"no users", func(p *proxy.Proxy) { p.User = nil }, func(p *proxy.Proxy) { p.User = nil }, true},
		{"type", same, func(p *proxy.Proxy) { p.Type = proxy.SOCKS4 }, false},
		{"host", same, func(p *proxy.Proxy) { p.Host = "q.test" }, false},
		{"port", same, func(p *proxy.Proxy) { p.Port = 1081 }, false},
		{"no user", same, func(p *proxy.Proxy) { p.User = nil }, false},
		{"user", same, func(p *proxy.Proxy) { p.User = url.UserPassword("you", "pw") }, false},
		{"password", same, func(p *proxy.Proxy) { p.User = url.UserPassword("me", "wp") }, false},
		{"no password", func(p *proxy.Proxy) { p.User = url.UserPassword("me", "") },
			func(p *proxy.Proxy) { p.User = url.User("me") }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := base(tt.a), base(tt.b)
			if a.Equal(b) != tt.equal || b.Equal(a) != tt.equal {
				t.Errorf("%+v and %+v: equal is %v and %v, want %v", a, b, a.Equal(b), b.Equal(a), tt.equal)
			}
		})
	}
	if !(proxy.Proxy{}).Equal(proxy.Proxy{}) {
		t.Error("Direct differs from Direct")
	}
}

func TestRedacted(t *testing.T) {
	p := proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80, User: url.UserPassword("me", "hunter2")}
	got := p.Redacted()
	if _, has := got.User.Password(); has || got.User.Username() != "me" {
		t.Errorf("redacted user is %v, want the name alone", got.User)
	}
	got.User = p.User
	if got != p {
		t.Errorf("Redacted changed more than the user: %v", got)
	}
	if password, _ := p.User.Password(); password != "hunter2" {
		t.Errorf("Redacted changed the original's password to %q", password)
	}
	for _, q := range []proxy.Proxy{{}, {Type: proxy.HTTP, Host: "p.test", User: url.User("me")}} {
		if q.Redacted() != q {
			t.Errorf("Redacted of %v is another proxy, though there is nothing to hide", q)
		}
	}
}

func TestValidate(t *testing.T) {
	user := func(kind proxy.Type, name, password string) proxy.Proxy {
		return proxy.Proxy{Type: kind, Host: "p.test", User: url.UserPassword(name, password)}
	}
	tests := []struct {
		p    proxy.Proxy
		want string
	}{
		{proxy.Proxy{}, ""},
		{proxy.Proxy{Type: proxy.HTTP, Host: "p.test"}, ""},
		{proxy.Proxy{Type: proxy.SOCKS5, Host: "p.test", Port: 65535}, ""},
		{proxy.Proxy{Host: "p.test"}, "proxy has an address or a user but its type is direct"},
		{proxy.Proxy{User: url.User("me")}, "proxy has an address or a user but its type is direct"},
		{proxy.Proxy{Type: proxy.HTTP}, "proxy has no host"},
		{proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 65536}, "proxy port 65536 is outside 1 to 65535"},
		{proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: -1}, "proxy port -1 is outside 1 to 65535"},
		{proxy.Proxy{Type: 17, Host: "p.test"}, "proxy type 17 is unknown"},
		{proxy.Proxy{Type: -1, Host: "p.test"}, "proxy type -1 is unknown"},
		{user(proxy.SOCKS5, strings.Repeat("u", 255), strings.Repeat("p", 255)), ""},
		{user(proxy.SOCKS5, strings.Repeat("u", 256), "p"), "proxy user has 256 bytes: socks5 wants 1 to 255"},
		{user(proxy.SOCKS5, "", "hunter2"), "proxy user has 0 bytes: socks5 wants 1 to 255"},
		{user(proxy.SOCKS5, "me", ""), "proxy password is empty or too long: socks5 wants 1 to 255 bytes"},
		{user(proxy.SOCKS5, "me", strings.Repeat("p", 256)), "proxy password is empty or too long: socks5 wants 1 to 255 bytes"},
		{proxy.Proxy{Type: proxy.SOCKS5, Host: "p.test", User: url.User("me")}, "proxy password is empty or too long: socks5 wants 1 to 255 bytes"},
		{user(proxy.SOCKS4, "me", "not sent"), ""},
		{user(proxy.SOCKS4, "", ""), ""},
		{user(proxy.SOCKS4, "a\x00b", ""), "proxy user has a NUL, where socks4 ends it"},
		{user(proxy.SOCKS4A, "\x00", ""), "proxy user has a NUL, where socks4a ends it"},
		{user(proxy.HTTP, "", ""), ""},
	}
	for _, tt := range tests {
		got := ""
		if err := tt.p.Validate(); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Validate of %v (-want +got):\n%s", tt.p, diff)
		}
	}
}
