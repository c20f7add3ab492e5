package auth_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// TestDigestVectors: the examples of the RFCs. That of RFC 7616 3.9.2 was printed with SHA-512 cut to 256
// bits (erratum 4897); here are the values of SHA-512/256.
func TestDigestVectors(t *testing.T) {
	const mufasa = `realm="http-auth@example.org", qop="auth, auth-int", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`
	const mufasaCnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
	const mufasaStart = `Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", algorithm=`
	const mufasaNonce = `, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001, cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", qop=auth, response="`
	const mufasaEnd = `", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`
	const doe = `Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=`
	const doeCnonce = "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v"
	const doeRest = `, realm="api@example.org", uri="/doe.json", algorithm=SHA-512-256, nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", nc=00000001, cnonce="NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v", qop=auth, response="3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS"`
	tests := []struct{ name, user, password, cnonce, url, challenge, want string }{
		{"RFC 7616 3.9.1 MD5", "Mufasa", "Circle of Life", mufasaCnonce, "http://www.example.org/dir/index.html", "Digest " + mufasa + ", algorithm=MD5",
			mufasaStart + "MD5" + mufasaNonce + "8ca523f5e9506fed4657c9700eebdbec" + mufasaEnd},
		{"RFC 7616 3.9.1 SHA-256", "Mufasa", "Circle of Life", mufasaCnonce, "http://www.example.org/dir/index.html", "Digest " + mufasa + ", algorithm=SHA-256",
			mufasaStart + "SHA-256" + mufasaNonce + "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1" + mufasaEnd},
		{"RFC 7616 3.9.2", "J\u00e4s\u00f8n Doe", "Secret, or not?", doeCnonce, "http://api.example.org/doe.json", doe + "true",
			`Digest username="793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"` + doeRest + ", userhash=true"},
		{"RFC 7616 3.9.2 without userhash", "J\u00e4s\u00f8n Doe", "Secret, or not?", doeCnonce, "http://api.example.org/doe.json", doe + "false",
			`Digest username*=UTF-8''J%C3%A4s%C3%B8n%20Doe` + doeRest},
		{"RFC 2617 3.5", "Mufasa", "Circle Of Life", "0a4f113b", "http://www.nowhere.org/dir/index.html",
			`Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"`,
			`Digest username="Mufasa", realm="testrealm@host.com", uri="/dir/index.html", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", nc=00000001, cnonce="0a4f113b", qop=auth, response="6629fae49393a05397450978507c4ef1", opaque="5ccc069c403ebaf9f0171e9517f40e41"`},
		{"RFC 2069 2.4, as corrected", "Mufasa", "CircleOfLife", "", "http://www.nowhere.org/dir/index.html",
			`Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"`,
			`Digest username="Mufasa", realm="testrealm@host.com", uri="/dir/index.html", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", response="1949323746fe6a43ef61f9606e7febea", opaque="5ccc069c403ebaf9f0171e9517f40e41"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := refusal(t, 401, tt.challenge)
			resp.Request = newRequest(t, "GET", tt.url, "")
			next, err := auth.WithCnonce(auth.Digest(tt.user, tt.password), tt.cnonce).Authenticate(proxy.Proxy{}, resp)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, next.Header.Get("Authorization")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDigestVerified: each algorithm by each quality of protection, against a server that computes for itself.
func TestDigestVerified(t *testing.T) {
	for _, algorithm := range []string{"", "MD5", "MD5-sess", "SHA-256", "SHA-256-sess", "SHA-512-256", "SHA-512-256-sess"} {
		for _, qop := range []string{"", "auth", "auth-int", "auth, auth-int", "auth-int auth", "x,auth-int , y"} {
			for _, next := range []bool{false, true} {
				t.Run(fmt.Sprint(algorithm, "/", qop, "/", next), func(t *testing.T) {
					s := &digestServer{user: `m"e\`, password: "pw:\x01", realm: `the "realm", \`, algorithm: algorithm, qop: qop, next: next, target: "/p?a=1&b=%20"}
					a := auth.Store(auth.Digest(s.user, s.password))
					for range 3 {
						resp := call(t, a, proxy.Proxy{}, newRequest(t, "POST", "http://a.test/p?a=1&b=%20#f", "body"), s.answer)
						if resp.StatusCode != 200 {
							t.Errorf("status %d", resp.StatusCode)
						}
					}
					if diff := cmp.Diff([]string{"none", "ok", "ok", "ok"}, s.log); diff != "" {
						t.Errorf("verdicts (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// TestDigestTargets: what uri is, for origins and for proxies.
func TestDigestTargets(t *testing.T) {
	via := proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 3128}
	tests := []struct {
		name, method string
		url          *url.URL
		status       int
		want         string
	}{
		{"path", "GET", &url.URL{Scheme: "http", Host: "a.test", Path: "/x y"}, 401, "/x%20y"},
		{"no path", "GET", &url.URL{Scheme: "http", Host: "a.test"}, 401, "/"},
		{"query without path", "GET", &url.URL{Scheme: "http", Host: "a.test", RawQuery: "q=1"}, 401, "/?q=1"},
		{"empty query", "GET", &url.URL{Scheme: "http", Host: "a.test", Path: "/x", ForceQuery: true}, 401, "/x?"},
		{"server as a whole", "OPTIONS", &url.URL{Scheme: "http", Host: "a.test", Path: "*"}, 401, "*"},
		{"an asterisk of no meaning", "GET", &url.URL{Scheme: "http", Host: "a.test", Path: "*"}, 401, "/*"},
		{"at a proxy, an asterisk of no meaning", "GET", &url.URL{Scheme: "http", Host: "a.test", Path: "*"}, 407, "http://a.test/*"},
		{"opaque", "GET", &url.URL{Scheme: "http", Host: "a.test", Opaque: "/%2f"}, 401, "/%2f"},
		{"at a proxy", "GET", &url.URL{Scheme: "http", Host: "A.test:8080", Path: "/x", RawQuery: "q"}, 407, "http://a.test:8080/x?q"},
		{"at a proxy, no path", "GET", &url.URL{Scheme: "http", Host: "a.test", Fragment: "f", User: url.User("u")}, 407, "http://a.test/"},
		{"at a proxy, IPv6", "GET", &url.URL{Scheme: "http", Host: "[FE80::1%eth0]:80", Path: "/"}, 407, "http://[fe80::1]:80/"},
		{"at a proxy, server as a whole", "OPTIONS", &url.URL{Scheme: "http", Host: "a.test", Path: "*"}, 407, "http://a.test"},
		{"tunnel", "CONNECT", &url.URL{Opaque: "a.test:443", Host: "a.test:443"}, 407, "a.test:443"},
		{"tunnel, by the host", "CONNECT", &url.URL{Host: "[2001:db8::1]:443"}, 407, "[2001:db8::1]:443"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &digestServer{user: "me", password: "pw", realm: "r", algorithm: "SHA-256", qop: "auth", status: tt.status, target: tt.want}
			req := (&http.Request{Method: tt.method, URL: tt.url, Header: http.Header{}}).WithContext(t.Context())
			if call(t, auth.Digest("me", "pw"), via, req, s.answer); s.log[len(s.log)-1] != "ok" {
				t.Errorf("verdicts %q", s.log)
			}
		})
	}
}

// TestDigestGivesUp: how many requests are made of servers that refuse.
func TestDigestGivesUp(t *testing.T) {
	challenge := func(params string) func(n int) string {
		return func(n int) string { return fmt.Sprintf(`Digest realm="r", qop="auth", nonce="n%d"%s`, n, params) }
	}
	tests := []struct {
		name      string
		challenge func(n int) string
		sent      int
	}{
		{"wrong password", challenge(""), 2},
		{"wrong password, said so", challenge(", stale=false"), 2},
		{"the same nonce again", func(int) string { return `Digest realm="r", qop="auth", nonce="n"` }, 2},
		{"always stale", challenge(", stale=TrUe"), 3},
		{"another realm each time", func(n int) string { return fmt.Sprintf(`Digest realm="r%d", qop="auth", nonce="n"`, n) }, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sent := 0
			resp := call(t, auth.Digest("me", "pw"), proxy.Proxy{}, newRequest(t, "GET", "http://a.test/", ""), func(req *http.Request) *http.Response {
				sent++
				return &http.Response{StatusCode: 401, Header: http.Header{"Www-Authenticate": {tt.challenge(sent)}}, Request: req}
			})
			if resp.StatusCode != 401 || sent != tt.sent {
				t.Errorf("status %d after %d requests, want %d", resp.StatusCode, sent, tt.sent)
			}
		})
	}
}

// TestDigestChallenges: which challenge is answered, and how; "" for none.
func TestDigestChallenges(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	tests := []struct {
		name       string
		challenges []string
		want       map[string]string // parameters of the answer; nil: none
	}{
		{"strongest, last", []string{`Digest realm="a", nonce="1", qop="auth", algorithm=MD5`, `Basic realm="b"`, `Digest realm="a", nonce="2", qop="auth", algorithm=SHA-512-256`}, map[string]string{"nonce": "2", "algorithm": "SHA-512-256"}},
		{"strongest, in one field", []string{`Digest realm="a", nonce="1", algorithm=sha-256-SESS, qop=auth, Digest realm="a", nonce="2", algorithm=MD5`}, map[string]string{"nonce": "1", "algorithm": "sha-256-SESS"}},
		{"first of equals", []string{`Digest realm="a", nonce="1"`, `Digest realm="b", nonce="2", algorithm=MD5`}, map[string]string{"nonce": "1"}},
		{"quotes", []string{`Digest realm="a \"b\", c", nonce="x\\y", opaque="\"", qop="auth"`}, map[string]string{"realm": `a "b", c`, "nonce": `x\y`, "opaque": `"`}},
		{"empty opaque", []string{`Digest realm="a", nonce="1", opaque=""`}, map[string]string{"opaque": ""}},
		{"unquoted", []string{`digest realm=a, nonce=1, qop=auth`}, map[string]string{"realm": "a", "nonce": "1", "qop": "auth"}},
		{"missing realm", []string{`Digest nonce="1", qop="auth"`}, map[string]string{"realm": ""}},
		{"empty qop", []string{`Digest realm="a", nonce="1", qop=""`}, map[string]string{"nonce": "1"}},
		{"qop among others", []string{`Digest realm="a", nonce="1", qop="auth-conf,,AUTH"`}, map[string]string{"qop": "auth"}},
		{"unknown qop", []string{`Digest realm="a", nonce="1", qop="auth-conf"`}, nil},
		{"unknown algorithm", []string{`Digest realm="a", nonce="1", algorithm=SHA-1`}, nil},
		{"unknown algorithm beside a known one", []string{`Digest realm="a", nonce="1", algorithm=SHA3-512`, `Digest realm="a", nonce="2"`}, map[string]string{"nonce": "2"}},
		{"empty algorithm", []string{`Digest realm="a", nonce="1", algorithm=""`}, map[string]string{"nonce": "1"}},
		{"missing nonce", []string{`Digest realm="a"`}, nil},
		{"token68", []string{`Digest abc==`}, nil},
		{"huge nonce", []string{`Digest realm="a", nonce="` + long + `"`}, nil},
		{"huge opaque", []string{`Digest realm="a", nonce="1", opaque="` + long + `"`}, nil},
		{"control character", []string{"Digest realm=\"a\x01\", nonce=\"1\""}, nil},
		{"open quote", []string{`Digest realm="a, nonce="1"`}, nil},
		{"repeated parameter", []string{`Digest realm="a", nonce="1", nonce="2"`}, nil},
		{"another scheme", []string{`Basic realm="a", nonce="1"`}, nil},
		{"none", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			next, err := auth.Digest("me", "pw").Authenticate(proxy.Proxy{}, refusal(t, 401, tt.challenges...))
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == nil || next == nil {
				if next != nil || tt.want != nil {
					t.Errorf("answered with %v", next)
				}
				return
			}
			got := map[string]string{}
			for name, value := range paramsOf(next.Header.Get("Authorization")) {
				if _, asked := tt.want[name]; asked {
					got[name] = value
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDigestBodies(t *testing.T) {
	broken := errors.New("the disk is gone")
	failing := func() (io.ReadCloser, error) { return nil, broken }
	for _, tt := range []struct {
		name    string
		qop     string
		body    io.ReadCloser
		getBody func() (io.ReadCloser, error)
		want    string // in the error
	}{
		{"one-shot", "auth-int", io.NopCloser(strings.NewReader("x")), nil, "no GetBody"},
		{"one-shot, auth offered too", "auth-int,auth", io.NopCloser(strings.NewReader("x")), nil, ""},
		{"no body", "auth-int", nil, nil, ""},
		{"empty body", "auth-int", http.NoBody, nil, ""},
		{"broken", "auth-int", io.NopCloser(strings.NewReader("x")), failing, broken.Error()},
	} {
		resp := refusal(t, 401, `Digest realm="a", nonce="1", qop="`+tt.qop+`"`)
		resp.Request.Body, resp.Request.GetBody = tt.body, tt.getBody
		next, err := auth.Digest("me", "pw").Authenticate(proxy.Proxy{}, resp)
		if (next != nil) != (tt.want == "") || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v, want an error with %q", tt.name, next, err, tt.want)
		}
	}
}

func TestDigestErrors(t *testing.T) {
	resp := refusal(t, 401, `Digest realm="a", nonce="1"`)
	if next, err := auth.Digest("me\n", "pw").Authenticate(proxy.Proxy{}, resp); next != nil || err == nil || strings.Contains(err.Error(), "pw") {
		t.Errorf("control character: got %v, %v", next, err)
	}
	if next, err := auth.Digest("me", "pw").Authenticate(proxy.Proxy{}, &http.Response{StatusCode: 401, Header: resp.Header}); next != nil || err == nil {
		t.Errorf("no request: got %v, %v", next, err)
	}
}

func FuzzDigest(f *testing.F) {
	f.Add(`Digest realm="a", nonce="1", qop="auth", algorithm=MD5`, `nextnonce="2"`)
	f.Add(`Digest realm="a\"b", nonce="\\", qop="auth-int , x", algorithm=SHA-256-sess, opaque="", userhash=true`, `qop=auth, nextnonce="\""`)
	f.Add(`Digest realm=, nonce="1", charset=UTF-8, stale=true`, `nextnonce=`)
	f.Add(`Digest abc==`, `x y z`)
	f.Fuzz(func(t *testing.T, challenge, info string) {
		a := auth.Digest("m\u00e9", "pw")
		resp := refusal(t, 401, challenge)
		next, err := a.Authenticate(proxy.Proxy{}, resp)
		if err != nil || next == nil {
			return
		}
		value := next.Header.Get("Authorization")
		if strings.ContainsAny(value, "\r\n\x00") || len(value) > 64<<10 {
			t.Fatalf("%q can not be sent", value)
		}
		back := auth.Challenges(http.Header{"X": {value}}, "X")
		if len(back) != 1 || !back[0].Is("Digest") {
			t.Fatalf("%q is not one set of credentials but %v", value, back)
		}
		if p := back[0].Params; p["nonce"] == "" || p["response"] == "" || p["uri"] != "/" {
			t.Fatalf("%q reads as %v", value, p)
		}
		a.(auth.Observer).Observe(proxy.Proxy{}, &http.Response{StatusCode: 200, Header: http.Header{"Authentication-Info": {info}}, Request: next})
	})
}
