package interceptors_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onTheWire is what a server sees of a request.
type onTheWire struct {
	Method, Host string
	Header       http.Header
	Length       int64
	TE           []string
}

// Where both follow the same rules, a server must not be able to tell the network
// request from net/http's.
func TestBridgeLikeNetHTTP(t *testing.T) {
	var seen onTheWire
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		r.Header.Del("Content-Length") // told by Length
		r.Header.Del("Connection")     // net/http keeps connections without saying so
		seen = onTheWire{r.Method, r.Host, r.Header, r.ContentLength, r.TransferEncoding}
	}))
	defer server.Close()
	text := func(s string) func() io.ReadCloser {
		return func() io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
	}
	tests := []struct {
		name   string
		method string
		user   *url.Userinfo
		header http.Header
		host   string
		body   func() io.ReadCloser
		length int64
		te     []string
		jar    bool
	}{
		{name: "GET"},
		{name: "HEAD", method: "HEAD"},
		{name: "DELETE", method: "DELETE"},
		{name: "own fields", header: http.Header{"Accept": {"a", "b"}, "X": {""}}},
		{name: "own encodings", header: http.Header{"Accept-Encoding": {"br, gzip"}}},
		{name: "range", header: http.Header{"Range": {"bytes=1-"}}},
		{name: "user agent", header: http.Header{"User-Agent": {"theirs/1"}}},
		{name: "no user agent", header: http.Header{"User-Agent": {""}}},
		{name: "fields that don't count", header: http.Header{"Host": {"x"}, "Content-Length": {"7"}, "Transfer-Encoding": {"gzip"}, "Trailer": {"Y"}}},
		{name: "host", host: "virtual.test"},
		{name: "user information", user: url.UserPassword("user", "p:w")},
		{name: "user without password", user: url.User("user")},
		{name: "user information and credentials", user: url.User("user"), header: http.Header{"Authorization": {"Bearer x"}}},
		{name: "jar", jar: true},
		{name: "jar and own cookies", jar: true, header: http.Header{"Cookie": {"u=1"}}},
		{name: "own cookies", header: http.Header{"Cookie": {"u=1; v=2"}}},
		{name: "known length", method: "POST", body: text("hello"), length: 5},
		{name: "unknown length", method: "POST", body: text("hello")},
		{name: "chunked", method: "PUT", body: text("hello"), length: 5, te: []string{"chunked"}},
		{name: "GET with a body", body: text("hello")},
		{name: "GET with an empty body", body: text("")},
		{name: "POST without a body", method: "POST"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			build := func() *http.Request {
				req := newRequest(t, test.method, server.URL+"/", nil)
				req.URL.User, req.ContentLength, req.TransferEncoding = test.user, test.length, test.te
				if req.Header = test.header.Clone(); req.Header == nil {
					req.Header = http.Header{}
				}
				if test.host != "" {
					req.Host = test.host
				}
				if test.body != nil {
					req.Body = test.body()
				}
				return req
			}
			var jar http.CookieJar
			if test.jar {
				jar, _ = cookiejar.New(nil)
				jar.SetCookies(build().URL, []*http.Cookie{{Name: "a", Value: "1"}, {Name: "b", Value: "2 3", Quoted: true}})
			}

			resp, err := (&http.Client{Jar: jar}).Do(build())
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			want := seen

			config := settings(userAgent("Go-http-client/1.1"), cookieJar(jar))
			network := bridged(t, build(), config)
			network.Header.Del("Connection")
			got := onTheWire{network.Method, network.Host, network.Header, network.ContentLength, network.TransferEncoding}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error("(-net/http +catena):\n" + diff)
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}
