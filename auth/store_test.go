package auth_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// asked lets a Store answer a challenge for url.
func asked(t *testing.T, a auth.Authenticator, url, challenge string) *http.Request {
	t.Helper()
	resp := refusal(t, 401, challenge)
	resp.Request = newRequest(t, "GET", url, "")
	next, err := a.Authenticate(proxy.Proxy{}, resp)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// ahead is what a Store sends to url.
func ahead(t *testing.T, a auth.Preemptive, url string) string {
	t.Helper()
	req := newRequest(t, "GET", url, "")
	if err := a.Authorize(req); err != nil {
		t.Fatal(err)
	}
	return req.Header.Get("Authorization")
}

// TestStoreOrigins: credentials go to the origins that asked, however they are written, and to no others.
func TestStoreOrigins(t *testing.T) {
	for _, tt := range []struct {
		asked, url string
		sent       bool
	}{
		{"http://a.test/", "http://a.test/", true},
		{"http://a.test/x/y", "http://a.test/z", true},
		{"http://a.test/", "HTTP://A.test:80/", true},
		{"https://b\u00fccher.test/", "https://xn--bcher-kva.test:443/", true},
		{"http://[::1]:8080/", "http://[0:0::1]:8080/", true},
		{"http://a.test/", "https://a.test/", false},
		{"http://a.test/", "http://a.test:8080/", false},
		{"http://a.test/", "http://b.test/", false},
		{"http://a.test/", "http://sub.a.test/", false},
		{"http://a.test/", "http://a.test./", false},
		{"http://a.test:443/", "https://a.test/", false},
	} {
		a := auth.Store(auth.Basic("me", "pw"))
		if got := ahead(t, a, tt.url); got != "" {
			t.Errorf("%s: %q was sent before anybody asked", tt.url, got)
		}
		asked(t, a, tt.asked, `Basic realm="r"`)
		if got := ahead(t, a, tt.url); (got == basicValue("me:pw")) != tt.sent || !tt.sent && got != "" {
			t.Errorf("%s asked, to %s was sent %q, want credentials: %v", tt.asked, tt.url, got, tt.sent)
		}
	}
}

// TestStoreRealms: of several realms in an origin the one is taken that asked for the nearest directory.
func TestStoreRealms(t *testing.T) {
	a := auth.Store(auth.Digest("me", "pw"))
	for _, at := range []string{"/a/x", "/a/deep/x", "/b/x"} {
		asked(t, a, "http://a.test"+at, `Digest realm="`+at[:len(at)-2]+`", nonce="n"`)
	}
	for path, want := range map[string]string{
		"/a/x": "/a", "/a/y": "/a", "/a/y/z": "/a", "/a/deep/y": "/a/deep", "/a/deep/er/y": "/a/deep", "/b/": "/b",
		"/a": "/b", "/c": "/b", "/": "/b", // under none: the last that asked
		"/bc/": "/b",
	} {
		if got := paramsOf(ahead(t, a, "http://a.test"+path))["realm"]; got != want {
			t.Errorf("%s: realm %q, want %q", path, got, want)
		}
	}
}

// TestStoreForgets: what was refused is not sent again, until it is answered anew.
func TestStoreForgets(t *testing.T) {
	fixed := auth.AuthenticatorFunc(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
		next := resp.Request.Clone(resp.Request.Context())
		next.Header.Set("Authorization", "Code 1")
		return next, nil
	})
	source := tokens{}
	for _, tt := range []struct {
		name      string
		a         auth.Authenticator
		challenge string
		sent      int // requests of the first call
	}{
		{"Basic", auth.Basic("me", "pw"), `Basic realm="r"`, 2},
		{"Digest", auth.Digest("me", "pw"), `Digest realm="r", nonce="n", qop="auth"`, 2},
		{"Bearer", auth.Bearer(source.token), `Bearer`, 2},
		{"a function that repeats itself", fixed, "Code", 2},
		{"the chooser", auth.Strongest(auth.Basic("me", "pw")), "Basic", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := auth.Store(tt.a)
			sent := 0
			refuse := func(req *http.Request) *http.Response {
				sent++
				return &http.Response{StatusCode: 401, Header: http.Header{"Www-Authenticate": {tt.challenge}}, Request: req}
			}
			call(t, a, proxy.Proxy{}, newRequest(t, "GET", "http://a.test/", ""), refuse)
			if sent != tt.sent {
				t.Errorf("%d requests, want %d", sent, tt.sent)
			}
			if got := ahead(t, a, "http://a.test/"); got != "" {
				t.Errorf("%q is sent although it was refused", got)
			}
			if n := auth.StoreSpaces(a); n != 0 {
				t.Errorf("%d origins are remembered", n)
			}
			asked(t, a, "http://a.test/", tt.challenge)
			if got := ahead(t, a, "http://a.test/"); got == "" {
				t.Error("nothing is sent although it was asked for again")
			}
		})
	}
}

// TestStoreKeepsOthers: the refusal of other credentials, or at another place, is not theirs.
func TestStoreKeepsOthers(t *testing.T) {
	a := auth.Store(auth.Basic("me", "pw"))
	asked(t, a, "http://a.test/", "Basic")
	for _, tt := range []struct{ url, sent string }{
		{"http://b.test/", basicValue("me:pw")}, {"http://a.test/", basicValue("you:pw")}, {"http://a.test/", ""},
	} {
		resp := refusal(t, 401, "Negotiate")
		resp.Request = newRequest(t, "GET", tt.url, "")
		resp.Request.Header.Set("Authorization", tt.sent)
		if _, err := a.Authenticate(proxy.Proxy{}, resp); err != nil {
			t.Fatal(err)
		}
	}
	if ahead(t, a, "http://a.test/") == "" {
		t.Error("it was forgotten")
	}
}

// TestStoreForgetsWhatItSent: credentials made for each request belong to their realm, whichever of them is
// refused; a token that was renewed meanwhile is not forgotten for the old one.
func TestStoreForgetsWhatItSent(t *testing.T) {
	refuse := func(a auth.Authenticator, sent, challenge string) {
		resp := refusal(t, 401, challenge)
		resp.Request = newRequest(t, "GET", "http://a.test/", "")
		resp.Request.Header.Set("Authorization", sent)
		if _, err := a.Authenticate(proxy.Proxy{}, resp); err != nil {
			t.Fatal(err)
		}
	}
	digest := auth.Store(auth.Digest("me", "pw"))
	asked(t, digest, "http://a.test/x/", `Digest realm="r", nonce="n", qop="auth"`)
	asked(t, digest, "http://a.test/y/", `Digest realm="q", nonce="n", qop="auth"`)
	first := ahead(t, digest, "http://a.test/x/")
	ahead(t, digest, "http://a.test/x/")
	refuse(digest, first, `Digest realm="r", nonce="n", qop="auth"`)
	if got := paramsOf(ahead(t, digest, "http://a.test/x/"))["realm"]; got != "q" {
		t.Errorf("realm %q is sent to, want q, which alone was not refused", got)
	}

	source := tokens{}
	inner := auth.Bearer(source.token)
	bearer := auth.Store(inner)
	asked(t, bearer, "http://a.test/", "Bearer")
	asked(t, bearer, "http://b.test/", "Bearer")
	renewed := refusal(t, 401, `Bearer error="invalid_token"`)
	renewed.Request.Header.Set("Authorization", "Bearer t1")
	if _, err := inner.Authenticate(proxy.Proxy{}, renewed); err != nil {
		t.Fatal(err)
	}
	ahead(t, bearer, "http://a.test/") // t2
	refuse(bearer, "Bearer t1", "Bearer")
	if got := ahead(t, bearer, "http://a.test/"); got != "Bearer t2" {
		t.Errorf("%q is sent, want the new token", got)
	}
	refuse(bearer, "Bearer t2", "Bearer")
	if got := ahead(t, bearer, "http://a.test/"); got != "" {
		t.Errorf("%q is sent after its refusal", got)
	}
}

// TestStoreAhead: what of each authenticator is sent ahead.
func TestStoreAhead(t *testing.T) {
	values := func(values ...string) auth.Authenticator {
		n := 0
		return auth.AuthenticatorFunc(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
			next := resp.Request.Clone(resp.Request.Context())
			next.Header.Set("Authorization", values[n])
			n++
			return next, nil
		})
	}
	source := tokens{}
	for _, tt := range []struct {
		name      string
		a         auth.Authenticator
		challenge string
		want      string // begins with
	}{
		{"Basic", auth.Basic("me", "pw"), "Basic", basicValue("me:pw")},
		{"Digest", auth.Digest("me", "pw"), `Digest realm="r", nonce="n", qop="auth"`, `Digest username="me", realm="r", uri="/", nonce="n", nc=00000002`},
		{"Bearer", auth.Bearer(source.token), "Bearer", "Bearer t1"},
		{"a function", values("Code 1"), "Code", "Code 1"},
		{"a function's Digest", values("Digest x=y"), "Digest", ""},
		{"none", values(""), "Code", ""},
		{"huge", values("Code " + strings.Repeat("x", 10<<10)), "Code", ""},
		{"a function in the chooser", auth.Strongest(values("Code 1"), auth.Digest("me", "pw")), "Code", "Code 1"},
		{"a Store", auth.Store(auth.Basic("me", "pw")), "Basic", basicValue("me:pw")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := auth.Store(tt.a)
			asked(t, a, "http://a.test/", tt.challenge)
			if got := ahead(t, a, "http://a.test/"); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestStoreSendsTheNewToken: an origin gets the token that another one made the source renew.
func TestStoreSendsTheNewToken(t *testing.T) {
	source := tokens{}
	a := auth.Store(auth.Bearer(source.token))
	asked(t, a, "https://a.test/", "Bearer")
	asked(t, a, "https://b.test/", "Bearer")
	resp := refusal(t, 401, `Bearer error="invalid_token"`)
	resp.Request = newRequest(t, "GET", "https://a.test/", "")
	resp.Request.Header.Set("Authorization", "Bearer t1")
	if _, err := a.Authenticate(proxy.Proxy{}, resp); err != nil {
		t.Fatal(err)
	}
	if got := ahead(t, a, "https://b.test/"); got != "Bearer t2" {
		t.Errorf("got %q", got)
	}
}

func TestStoreErrors(t *testing.T) {
	sealed := errors.New("the vault is sealed")
	fail := false
	a := auth.Store(auth.Bearer(func(context.Context) (string, error) {
		if fail {
			return "", sealed
		}
		return "t", nil
	}))
	asked(t, a, "https://a.test/", "Bearer")
	asked(t, a, "https://b.test/", "Bearer")
	resp := refusal(t, 401, "Bearer")
	resp.Request = newRequest(t, "GET", "https://b.test/", "")
	resp.Request.Header.Set("Authorization", "Bearer t")
	if _, err := a.Authenticate(proxy.Proxy{}, resp); err != nil { // the token is dropped
		t.Fatal(err)
	}
	fail = true
	req := newRequest(t, "GET", "https://a.test/", "")
	if err := a.Authorize(req); !errors.Is(err, sealed) || len(req.Header) > 0 {
		t.Errorf("got %v and %v", err, req.Header)
	}
}

// narrow is a Preemptive of the application's.
type narrow struct {
	auth.Authenticator
	authorized []string
}

func (n *narrow) Authorize(req *http.Request) error {
	n.authorized = append(n.authorized, req.URL.Host)
	req.Header.Set("Authorization", "Own 1")
	return nil
}

func TestStoreOfAPreemptive(t *testing.T) {
	own := &narrow{Authenticator: auth.Basic("me", "pw")}
	a := auth.Store(own)
	asked(t, a, "http://a.test/", "Basic")
	if got := ahead(t, a, "http://a.test/") + ahead(t, a, "http://b.test/"); got != "Own 1" {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff([]string{"a.test"}, own.authorized); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
}

// TestStoreLeavesAlone: requests with Authorization, without URL or header.
func TestStoreLeavesAlone(t *testing.T) {
	a := auth.Store(auth.Basic("me", "pw"))
	asked(t, a, "http://a.test/", "Basic")
	req := newRequest(t, "GET", "http://a.test/", "")
	req.Header.Set("Authorization", "mine")
	if err := a.Authorize(req); err != nil || req.Header.Get("Authorization") != "mine" {
		t.Errorf("got %v, %v", req.Header, err)
	}
	if err := a.Authorize(&http.Request{}); err != nil {
		t.Error(err)
	}
	bare := &http.Request{URL: req.URL}
	if err := a.Authorize(bare); err != nil || bare.Header.Get("Authorization") != basicValue("me:pw") {
		t.Errorf("got %v, %v", bare.Header, err)
	}
	moved := auth.Store(auth.AuthenticatorFunc(func(proxy.Proxy, *http.Response) (*http.Request, error) {
		next := newRequest(t, "GET", "http://b.test/", "")
		next.Header.Set("Authorization", "for b")
		return next, nil
	}))
	asked(t, moved, "http://a.test/", "Code")
	if got := ahead(t, moved, "http://a.test/"); got != "" {
		t.Errorf("%q, made for b.test, is sent to a.test", got)
	}
}

// TestStoreOfAProxy: a CONNECT carries credentials for a proxy that asked before.
func TestStoreOfAProxy(t *testing.T) {
	via := proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 3128}
	connect := func(challenge string) *http.Response {
		resp := refusal(t, 407, challenge)
		resp.Request = newRequest(t, "CONNECT", "http://a.test:443", "")
		return resp
	}
	a := auth.Store(auth.Digest("me", "pw"))
	answer := func(via proxy.Proxy, challenge string) string {
		next, err := a.Authenticate(via, connect(challenge))
		if err != nil {
			t.Fatal(err)
		}
		if next == nil {
			return ""
		}
		p := paramsOf(next.Header.Get("Proxy-Authorization"))
		return p["uri"] + " " + p["nc"]
	}
	other := via
	other.Port++
	got := []string{
		answer(via, auth.PreemptiveScheme),
		answer(via, `Digest realm="r", nonce="n", qop="auth"`),
		answer(via, auth.PreemptiveScheme),
		answer(other, auth.PreemptiveScheme),
	}
	if diff := cmp.Diff([]string{"", "a.test:443 00000001", "a.test:443 00000002", ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	basic := auth.Store(auth.Basic("me", "pw"))
	if next, err := basic.Authenticate(via, connect(auth.PreemptiveScheme)); err != nil || next.Header.Get("Proxy-Authorization") != basicValue("me:pw") {
		t.Errorf("Basic answers a proxy that has not asked; in a Store it gives %v, %v", next, err)
	}
}
