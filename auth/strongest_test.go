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

func TestStrongest(t *testing.T) {
	const basic, md5, sha256, sha512 = `Basic realm="r"`, `Digest realm="r", nonce="1"`, `Digest realm="r", nonce="2", algorithm=SHA-256`, `Digest realm="r", nonce="3", algorithm=SHA-512-256-sess`
	bearer := auth.Bearer(func(context.Context) (string, error) { return "t", nil })
	own := auth.AuthenticatorFunc(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
		for _, c := range auth.Challenges(resp.Header, "WWW-Authenticate") {
			if c.Is("Negotiate") {
				next := resp.Request.Clone(resp.Request.Context())
				next.Header.Set("Authorization", "Negotiate x")
				return next, nil
			}
		}
		return nil, nil
	})
	all := []auth.Authenticator{auth.Basic("me", "pw"), bearer, auth.Digest("me", "pw"), own}
	tests := []struct {
		name       string
		challenges []string
		of         []auth.Authenticator
		want       string // the answer begins with, "" for none
	}{
		{"Digest before Basic", []string{basic, md5}, all, `Digest username="me", realm="r", uri="/", nonce="1"`},
		{"the strongest Digest", []string{sha256, basic, sha512, md5}, all, `Digest username="me", realm="r", uri="/", algorithm=SHA-512-256-sess`},
		{"Bearer first", []string{sha512, "Bearer", basic}, all, "Bearer t"},
		{"without a Bearer", []string{sha256, "Bearer", basic}, all[2:3], `Digest username="me", realm="r", uri="/", algorithm=SHA-256`},
		{"Basic alone", []string{basic}, all, "Basic "},
		{"Basic, the Digest being unknown", []string{`Digest realm="r", nonce="1", algorithm=SHA-9`, basic}, all, "Basic "},
		{"one of others", []string{basic, sha512, "Negotiate"}, all, "Negotiate x"},
		{"none that is known", []string{"Hawk"}, all, ""},
		{"no authenticator", []string{basic}, nil, ""},
		{"the first of equals", []string{basic}, []auth.Authenticator{auth.Basic("a", "a"), auth.Basic("b", "b")}, basicValue("a:a")},
		{"nested", []string{basic, sha256}, []auth.Authenticator{auth.Basic("a", "a"), auth.Strongest(all...)}, "Digest "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			next, err := auth.Strongest(tt.of...).Authenticate(proxy.Proxy{}, refusal(t, 401, tt.challenges...))
			if err != nil {
				t.Fatal(err)
			}
			if next == nil {
				if tt.want != "" {
					t.Errorf("no answer, want %q", tt.want)
				}
				return
			}
			if got := next.Header.Get("Authorization"); tt.want == "" || !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestStrongestDoesNotFallBack: the password that Digest protected is not sent by Basic.
func TestStrongestDoesNotFallBack(t *testing.T) {
	var log []string
	a := auth.Strongest(auth.Basic("me", "pw"), auth.Digest("me", "pw"))
	call(t, a, proxy.Proxy{}, newRequest(t, "GET", "http://a.test/", ""), func(req *http.Request) *http.Response {
		scheme, _, _ := strings.Cut(req.Header.Get("Authorization"), " ")
		log = append(log, scheme)
		return &http.Response{StatusCode: 401, Header: http.Header{"Www-Authenticate": {`Digest realm="r", nonce="1"`, "Basic"}}, Request: req}
	})
	if diff := cmp.Diff([]string{"", "Digest"}, log); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStrongestErrors(t *testing.T) {
	broken := errors.New("broken")
	failing := auth.AuthenticatorFunc(func(proxy.Proxy, *http.Response) (*http.Request, error) { return nil, broken })
	if next, err := auth.Strongest(auth.Basic("me", "pw"), failing).Authenticate(proxy.Proxy{}, refusal(t, 401, "Basic")); next != nil || !errors.Is(err, broken) {
		t.Errorf("got %v, %v", next, err)
	}
	if next, err := auth.Strongest(auth.Basic("me", "pw")).Authenticate(proxy.Proxy{}, &http.Response{StatusCode: 200}); next != nil || err != nil {
		t.Errorf("no refusal: got %v, %v", next, err)
	}
}

// TestStrongestAhead: a Store around it sends ahead what was accepted, with the next count and nonce.
func TestStrongestAhead(t *testing.T) {
	s := &digestServer{user: "me", password: "pw", realm: "r", algorithm: "SHA-256", qop: "auth", target: "/", next: true}
	a := auth.Store(auth.Strongest(auth.Basic("me", "pw"), auth.Digest("me", "pw")))
	for range 3 {
		call(t, a, proxy.Proxy{}, newRequest(t, "GET", "http://a.test/", ""), s.answer)
	}
	if diff := cmp.Diff([]string{"none", "ok", "ok", "ok"}, s.log); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// TestStrongestAheadOfAProxy: nothing is sent in the clear to a proxy that may want better.
func TestStrongestAheadOfAProxy(t *testing.T) {
	basic, digest := auth.Basic("me", "pw"), auth.Digest("me", "pw")
	for name, tt := range map[string]struct {
		of   []auth.Authenticator
		want string
	}{
		"Basic alone":        {[]auth.Authenticator{basic}, basicValue("me:pw")},
		"Basic alone within": {[]auth.Authenticator{auth.Strongest(basic)}, basicValue("me:pw")},
		"Basic and Digest":   {[]auth.Authenticator{basic, digest}, ""},
		"Digest within":      {[]auth.Authenticator{auth.Strongest(digest), basic}, ""},
		"both within":        {[]auth.Authenticator{auth.Strongest(basic, digest)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			next, err := auth.Strongest(tt.of...).Authenticate(proxy.Proxy{}, refusal(t, 407, auth.PreemptiveScheme))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if next != nil {
				got = next.Header.Get("Proxy-Authorization")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
