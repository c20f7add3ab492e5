package redact_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/catena-http/catena/internal/redact"
)

func TestURL(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"nothing secret", "https://host.test:8080/a%2Fb/c?x=1&y=%20#part", "https://host.test:8080/a%2Fb/c?x=1&y=%20#part"},
		{"password", "https://user:pa%40ss@host.test/", "https://user:xxxxx@host.test/"},
		{"user alone", "https://user@host.test/", "https://user@host.test/"},
		{"parameter", "http://host.test/?a=1&token=t0p&b=2", "http://host.test/?a=1&token=██&b=2"},
		{"given parameter", "http://host.test/?mine=t0p", "http://host.test/?mine=██"},
		{"repeated", "http://host.test/?token=t0p&token=t1p", "http://host.test/?token=██&token=██"},
		{"header's name", "http://host.test/?X-Api-Key=t0p", "http://host.test/?X-Api-Key=██"},
		{"escaped name", "http://host.test/?%74oken=t0p", "http://host.test/?%74oken=██"},
		{"bad escapes", "http://host.test/?%zz=1&tok%65n=%&x=%", "http://host.test/?%zz=1&tok%65n=██&x=%"},
		{"nested name", "http://host.test/?user[password]=t0p", "http://host.test/?user[password]=██"},
		{"no value", "http://host.test/?token&token=", "http://host.test/?token&token=██"},
		{"semicolons", "http://host.test/?a=1;token=t0p;rest&b=2", "http://host.test/?a=1;token=██&b=2"},
		{"equals signs", "http://host.test/?a=token=t0p=&b=2", "http://host.test/?a=token=██&b=2"},
		{"URL in a parameter", "http://host.test/?to=http%3A%2F%2Fx%2F%3Ftoken%3Dt0p&b=2", "http://host.test/?to=██&b=2"},
		{"URL in a parameter, half escaped", "http://host.test/?to=%2F%3Ftoken=t0p&b=2", "http://host.test/?to=%2F%3Ftoken=██&b=2"},
		{"URL in a parameter, raw", "http://host.test/?to=http://x/?token=t0p&b=2", "http://host.test/?to=http://x/?token=██&b=2"},
		{"fragment", "http://host.test/#access_token=t0p&type=bearer", "http://host.test/#access_token=██&type=bearer"},
		{"route in a fragment", "http://host.test/#/done?access_token=t0p", "http://host.test/#/done?access_token=██"},
		{"path", "http://host.test/a;jsessionid=t0p/b?c=1", "http://host.test/a;jsessionid=██/b?c=1"},
		{"empty query", "http://host.test/?", "http://host.test/?"},
		{"relative", "/a?token=t0p", "/a?token=██"},
		{"without scheme", "user:t0p@host.test/a", "user:xxxxx@host.test/a"},
		{"opaque", "mailto:joe", "mailto:joe"},
		{"unparsable", "http://user:t0p@host.test:port/", "██"},
		{"empty", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := redact.New("mine").RawURL(test.in); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestURLThatWasNotParsed(t *testing.T) {
	for _, test := range []struct {
		name string
		in   *url.URL
		want string
	}{
		{"nil", nil, ""},
		{"zero", &url.URL{}, ""},
		{"opaque with authority", &url.URL{Scheme: "http", Opaque: "//user:t0p@host.test/a?token=t1/p&b=1"}, "http://user:xxxxx@host.test/a?token=██&b=1"},
		{"user info in the host", &url.URL{Scheme: "http", Host: "user:t0p@host.test"}, "http://user:xxxxx%40host.test"},
		{"number sign in the query", &url.URL{Scheme: "http", Host: "host.test", RawQuery: "token=t0#t1p"}, "http://host.test?token=██"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := redact.New().URL(test.in); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func FuzzURL(f *testing.F) {
	f.Add("/a", "a=1", "&b=2", "part", "//host/a", uint(0))
	f.Add("/a;b=c", "%zz=%", ";x#y=1", "/x?y=1", "u@h", uint(2))
	f.Add("a:b", "a=b=", "=/?", "%41=", "", uint(3))
	f.Fuzz(func(t *testing.T, path, before, after, fragment, opaque string, pick uint) {
		const secret = "t0pS3cret"
		names := []string{"token", "Mine", "%74oken", "user[password]", "access-token", "X-Amz-Signature"}
		name := names[pick%uint(len(names))]
		for _, s := range []string{path, before, after, fragment, opaque} {
			if strings.Contains(s, secret) {
				return // it is in the clear
			}
		}
		param := name + "=" + secret
		s := redact.New("mine")
		for _, u := range []*url.URL{
			{Scheme: "http", Host: "h", User: url.UserPassword(path, secret), Path: path, RawQuery: before + "&" + param + after, Fragment: fragment},
			{Scheme: "http", Host: "h", Path: path, RawQuery: before, Fragment: fragment + "&" + param + after},
			{Scheme: "http", Host: "u:" + secret + "@" + path, RawPath: path},
			{Opaque: opaque + "?" + param + after, RawQuery: before},
			{Path: path, RawQuery: before + "&to=" + url.QueryEscape("http://h/?"+param+after)},
		} {
			if got := s.URL(u); strings.Contains(got, secret) {
				t.Errorf("the secret shows: %s\nof %#v", got, u)
			}
		}
		s.RawURL(path)
		s.RawURL(opaque)
	})
}
