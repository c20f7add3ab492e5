package interceptors_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/chain"
)

// jar gives always the same and writes down what it takes.
type jar struct {
	give  []*http.Cookie
	taken []string
}

func (j *jar) Cookies(*url.URL) []*http.Cookie { return j.give }

func (j *jar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	j.taken = append(j.taken, fmt.Sprintf("%s %v", u, cookies))
}

func TestBridgeSendsCookies(t *testing.T) {
	give := []*http.Cookie{{Name: "a", Value: "x y", Quoted: true}, {Name: "b", Value: "1,2"}, {Name: "c", Value: "3 4"}}
	tests := []struct {
		name   string
		header http.Header
		jar    *jar
		config []func(*chain.Config)
		want   http.Header
	}{
		{name: "jar", jar: &jar{give: give}, want: http.Header{"Cookie": {`a="x y"; b=1,2; c=3 4`}}},
		{name: "user", header: http.Header{"Cookie": {"u=1", "v=2"}}, jar: &jar{}, want: http.Header{"Cookie": {"u=1", "v=2"}}},
		{name: "both", header: http.Header{"Cookie": {"u=1", "v=2"}}, jar: &jar{give: give[1:2]}, want: http.Header{"Cookie": {"u=1; v=2; b=1,2"}}},
		{name: "empty", header: http.Header{"Cookie": {""}}, jar: &jar{give: give[1:2]}, want: http.Header{"Cookie": {"b=1,2"}}},
		{name: "lower case", header: http.Header{"cookie": {"u=1"}}, jar: &jar{give: give[1:2]}, want: http.Header{"Cookie": {"u=1; b=1,2"}}},
		{name: "RoundTripper", jar: &jar{give: give}, config: []func(*chain.Config){roundTripper}, want: http.Header{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req := newRequest(t, "GET", "http://a.test/", nil)
			req.Header = test.header
			given := test.header.Clone()
			config := settings(append(test.config, cookieJar(test.jar), noGzip)...)
			network := bridged(t, req, config)
			network.Header.Del("Connection")
			if diff := cmp.Diff(test.want, network.Header); diff != "" {
				t.Error("(-want +got):\n" + diff)
			}
			if diff := cmp.Diff(given, req.Header); diff != "" {
				t.Error("the application's header has changed (-want +got):\n" + diff)
			}
		})
	}
}

func TestBridgeTakesCookies(t *testing.T) {
	tests := []struct {
		name   string
		lines  []string
		config []func(*chain.Config)
		want   []string
	}{
		{name: "none"},
		{name: "none that parses", lines: []string{"=", ""}},
		{name: "two", lines: []string{"a=1", "b=2; Path=/"}, want: []string{"http://a.test/dir/x [a=1 b=2; Path=/]"}},
		{name: "RoundTripper", lines: []string{"a=1"}, config: []func(*chain.Config){roundTripper}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			jar := &jar{}
			req := newRequest(t, "GET", "http://A.test/dir/x", nil)
			req.Host = "virtual.test"
			_, err := through(req, settings(append(test.config, cookieJar(jar))...), func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 302, Header: http.Header{"Set-Cookie": test.lines}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, jar.taken); diff != "" {
				t.Error("(-want +got):\n" + diff)
			}
		})
	}
}

// Cookies come back octet by octet, whatever the port.
func TestBridgeCookieOctets(t *testing.T) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	config := settings(cookieJar(jar))
	_, err = through(newRequest(t, "GET", "http://localhost:8001/a%20b/x", nil), config, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Set-Cookie": {
			`a="x y"; Path=/a%20b`, `b=1,2; Domain=localhost`, `c=3 4`, `d="5,6"`,
		}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	network := bridged(t, newRequest(t, "GET", "http://localhost:8002/a%20b/y", nil), config)
	got := strings.Split(network.Header.Get("Cookie"), "; ")
	slices.Sort(got)
	if diff := cmp.Diff([]string{`a="x y"`, `b=1,2`, `c=3 4`, `d="5,6"`}, got); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}
