package auth_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

func TestRepeats(t *testing.T) {
	tests := []struct {
		name    string
		status  int
		refused http.Header
		change  func(next *http.Request)
		want    bool
	}{
		{"the same", 401, http.Header{"Authorization": {"x"}}, func(*http.Request) {}, true},
		{"the same at a proxy", 407, http.Header{"Proxy-Authorization": {"x"}}, func(*http.Request) {}, true},
		{"other credentials", 401, http.Header{"Authorization": {"x"}}, func(r *http.Request) { r.Header.Set("Authorization", "y") }, false},
		{"none", 401, http.Header{}, func(*http.Request) {}, false},
		{"none before", 401, http.Header{}, func(r *http.Request) { r.Header.Set("Authorization", "x") }, false},
		{"those for the other side", 407, http.Header{"Authorization": {"x"}}, func(*http.Request) {}, false},
		{"a second factor", 401, http.Header{"Authorization": {"x"}}, func(r *http.Request) { r.Header.Set("X-Otp", "1") }, false},
		{"another URL", 401, http.Header{"Authorization": {"x"}}, func(r *http.Request) { r.URL.RawQuery = "key=1" }, false},
		{"another method", 401, http.Header{"Authorization": {"x"}}, func(r *http.Request) { r.Method = "GET" }, false},
		{"the same user in the URL", 401, http.Header{"Authorization": {"x"}}, func(r *http.Request) { r.URL.User = url.UserPassword("u", "p") }, true},
		{"another user in the URL", 401, http.Header{"Authorization": {"x"}}, func(r *http.Request) { r.URL.User = url.UserPassword("u", "q") }, false},
		{"no refusal", 403, http.Header{"Authorization": {"x"}}, func(*http.Request) {}, false},
	}
	for _, tt := range tests {
		resp := refusal(t, 401)
		resp.StatusCode, resp.Request.Header = tt.status, tt.refused
		resp.Request.URL.User = url.UserPassword("u", "p")
		next := resp.Request.Clone(t.Context())
		tt.change(next)
		if got := auth.Repeats(resp, next); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
	if auth.Repeats(&http.Response{StatusCode: 401}, newRequest(t, "GET", "http://a.test/", "")) {
		t.Error("a response without request is repeated")
	}
}

func TestRenew(t *testing.T) {
	digest := auth.Digest("me", "pw")
	made := asked(t, digest, "http://a.test/x", `Digest realm="r", nonce="n", qop="auth"`).Header.Get("Authorization")
	function := auth.AuthenticatorFunc(digest.Authenticate)
	for _, tt := range []struct {
		name string
		a    auth.Authenticator
		url  string
		sent string
		want string
	}{
		{"Digest", digest, "http://a.test/y", made, "/y 00000002"},
		{"in a Store in the chooser", auth.Store(auth.Strongest(digest)), "http://a.test/z", made, "/z 00000003"},
		{"elsewhere", digest, "http://b.test/y", made, ""},
		{"a function", function, "http://a.test/y", made, ""},
		{"nobody", nil, "http://a.test/y", made, ""},
		{"unreadable", digest, "http://a.test/y", `Digest realm="`, ""},
		{"Basic", digest, "http://a.test/y", "Basic x", "Basic x"},
		{"none", digest, "http://a.test/y", "", ""},
	} {
		req := newRequest(t, "GET", tt.url, "")
		if tt.sent != "" {
			req.Header.Set("Authorization", tt.sent)
		}
		before := req.Header.Clone()
		next, err := auth.Renew(tt.a, proxy.Proxy{}, req, 401)
		if err != nil {
			t.Fatal(err)
		}
		got := next.Header.Get("Authorization")
		if p := paramsOf(got); strings.HasPrefix(got, "Digest") {
			got = p["uri"] + " " + p["nc"]
		}
		if diff := cmp.Diff(tt.want, got) + cmp.Diff(before, req.Header); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestRenewFails(t *testing.T) {
	digest := auth.Digest("me", "pw")
	made := asked(t, digest, "http://a.test/", `Digest realm="r", nonce="n", qop="auth-int"`).Header.Get("Authorization")
	broken := errors.New("the disk is gone")
	req := newRequest(t, "PUT", "http://a.test/", "body")
	req.GetBody = func() (io.ReadCloser, error) { return nil, broken }
	req.Header.Set("Authorization", made)
	if next, err := auth.Renew(digest, proxy.Proxy{}, req, 401); next != nil || !errors.Is(err, broken) {
		t.Errorf("got %v, %v", next, err)
	}
}
