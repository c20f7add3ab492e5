package interceptors

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/internal/redact"
)

func TestRedirectMethods(t *testing.T) {
	after := func(method string, codes ...int) string {
		first := redirectMethod(codes[0], method)
		for _, code := range codes[1:] {
			if redirectMethod(code, method) != first {
				t.Errorf("%s after %v: not the same for all", method, codes)
			}
		}
		return first
	}
	var got [][]string
	for _, row := range documented(t, "methods") {
		m := row[0]
		got = append(got, []string{m, after(m, 300, 301, 302), after(m, 303), after(m, 307, 308)})
	}
	if diff := cmp.Diff(documented(t, "methods"), got); diff != "" {
		t.Errorf("docs/connections.md and the code (-page +code):\n%s", diff)
	}
	if len(got) < 10 {
		t.Errorf("%d methods on the page", len(got))
	}
}

// TestTarget resolves Locations against http://user:pw@example.com/dir/a?q=1#frag,
// "" is a Location that is not followed.
func TestTarget(t *testing.T) {
	for _, test := range []struct{ location, want string }{
		{"/b", "http://example.com/b#frag"},
		{"b", "http://example.com/dir/b#frag"},
		{"../b", "http://example.com/b#frag"},
		{"?x=y", "http://example.com/dir/a?x=y#frag"},
		{"#own", "http://example.com/dir/a?q=1#own"},
		{"/b#", "http://example.com/b"},
		{"/b#own", "http://example.com/b#own"},
		{"/b%", "http://example.com/b%25#frag"},
		{"/b%zz%41", "http://example.com/b%25zz%41#frag"},
		{"/b c", "http://example.com/b%20c#frag"},
		{"/ü", "http://example.com/%C3%BC#frag"},
		{"//other.test/b", "http://other.test/b#frag"},
		{"https://other.test", "https://other.test#frag"},
		{"HTTPS://OTHER.test/", "https://OTHER.test/#frag"},
		{"http://mallory:x@other.test/", "http://other.test/#frag"},
		{"http://[::1]:8080/b", "http://[::1]:8080/b#frag"},
		{"http://✌.test/", "http://%E2%9C%8C.test/#frag"},

		{"", ""}, {"mailto:x", ""}, {"file:///etc/passwd", ""}, {"ftp://other.test/", ""}, {"javascript:alert(1)", ""},
		{"http://", ""}, {"http:///b", ""}, {"http://[::1", ""}, {"http://a b/", ""}, {"http://other.test:99999/", ""},
		{"http://other.test:0/", ""}, {"http:b", ""}, {"http://a\x00b/", ""}, {"http://a%00b/", ""},
	} {
		from, err := url.Parse("http://user:pw@example.com/dir/a?q=1#frag")
		if err != nil {
			t.Fatal(err)
		}
		r := redirect{follower{resp: &http.Response{
			Header: http.Header{"Location": {test.location}}, Request: &http.Request{URL: from},
		}}}
		var got string
		if to := r.target(); to != nil {
			got = to.String()
		}
		if got != test.want {
			t.Errorf("Location %q leads to %q, want %q", test.location, got, test.want)
		}
	}
}

func TestAmbiguousTarget(t *testing.T) {
	from := &url.URL{Scheme: "http", Host: "example.com"}
	for _, test := range []struct {
		locations []string
		followed  bool
	}{
		{nil, false}, {[]string{"/a", "/b"}, false}, {[]string{"/a", "/a"}, true}, {[]string{"", "/a"}, false},
	} {
		r := redirect{follower{resp: &http.Response{
			Header: http.Header{"Location": test.locations}, Request: &http.Request{URL: from},
		}}}
		if got := r.target() != nil; got != test.followed {
			t.Errorf("Locations %q: followed %v, want %v", test.locations, got, test.followed)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"http://example.com/a", "http://example.com/b", true},
		{"http://example.com", "http://EXAMPLE.com:80/", true},
		{"https://example.com", "https://example.com:443/", true},
		{"http://bücher.test/", "http://xn--bcher-kva.test/", true},
		{"http://[::1]/", "http://[0:0::1]/", true},
		{"http://127.0.0.1/", "http://[::ffff:127.0.0.1]/", true},
		{"http://example.com", "https://example.com", false},
		{"http://example.com:80", "https://example.com:80", false},
		{"http://example.com", "http://example.com:8080", false},
		{"http://example.com", "http://www.example.com", false},
		{"http://example.com", "http://example.com.", false}, // another name to DNS
		{"http://example.com", "http://example.com.evil.test", false},
		{"http://example.com", "http://[::1%25.example.com]", false},
	} {
		a, errA := url.Parse(test.a)
		b, errB := url.Parse(test.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if got := sameOrigin(a, b); got != test.same || sameOrigin(b, a) != got {
			t.Errorf("%s and %s: %v, want %v", test.a, test.b, got, test.same)
		}
	}
}

// TestDroppedFields: what goes along with a redirect, within the origin and to
// another one, and with a method that changes.
func TestDroppedFields(t *testing.T) {
	sent := http.Header{
		"Accept": {"*/*"}, "Accept-Language": {"en"}, "Authorization": {"Basic eDp5"}, "Cookie": {"a=b"},
		"Proxy-Authorization": {"Basic eDp5"}, "X-Api-Key": {"k"}, "x-api-key": {"k"}, "authorization": {"raw"},
		"X-Mine": {"declared"}, "X-Other": {"kept"}, "Range": {"bytes=0-1"},
		"Content-Type": {"text/plain"}, "Content-Length": {"5"}, "Content-Encoding": {"br"}, "Content-Language": {"de"},
		"Content-Location": {"/x"}, "Transfer-Encoding": {"chunked"}, "Expect": {"100-continue"},
	}
	secret := []string{"Authorization", "authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "x-api-key", "X-Mine"}
	ofBody := []string{"Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Location", "Transfer-Encoding", "Expect"}
	for _, test := range []struct {
		status   int
		location string
		dropped  []string
		host     string
	}{
		{307, "/b", nil, "mine.test"},
		{303, "/b", ofBody, "mine.test"},
		{307, "http://EXAMPLE.com:80/b", nil, "mine.test"},
		{307, "https://example.com/b", secret, ""},
		{307, "http://example.com:8080/b", secret, ""},
		{303, "http://other.test/b", append(append([]string{}, secret...), ofBody...), ""},
	} {
		f := respondedTo(test.status, header("Location", test.location))
		f.secrets = redact.New("x-mine")
		f.resp.Request = &http.Request{
			Method: "POST", URL: &url.URL{Scheme: "http", Host: "example.com", Path: "/a", User: url.UserPassword("u", "p")},
			Host: "mine.test", Header: sent.Clone(), Body: http.NoBody,
		}
		next, _ := redirect{f}.next()
		want := sent.Clone()
		for _, name := range test.dropped {
			delete(want, name)
		}
		if diff := cmp.Diff(want, next.Header); diff != "" {
			t.Errorf("%d to %s (-want +got):\n%s", test.status, test.location, diff)
		}
		if diff := cmp.Diff(sent, f.resp.Request.Header); diff != "" {
			t.Errorf("%d to %s changed the request before (-want +got):\n%s", test.status, test.location, diff)
		}
		if next.Host != test.host {
			t.Errorf("%d to %s: Host %q, want %q", test.status, test.location, next.Host, test.host)
		}
		if kept := next.URL.User != nil; kept != (test.host != "") {
			t.Errorf("%d to %s: user info %v", test.status, test.location, next.URL.User)
		}
		if strings.Contains(f.resp.Request.URL.String(), "/b") {
			t.Error("the URL before was changed")
		}
	}
}
