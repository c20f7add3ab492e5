package main

import (
	"crypto/md5"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
)

const (
	rightLogin = "ada:sesame!7"
	rightBasic = "Basic YWRhOnNlc2FtZSE3"
)

// credentialText says of a header field whether it is right, and of which scheme. The
// digest is that of RFC 2069, for which a challenge without qop asks.
func credentialText(value, method, target string) string {
	c := auth.Challenges(http.Header{"X": {value}}, "X")
	hash := func(parts ...string) string { return fmt.Sprintf("%x", md5.Sum([]byte(strings.Join(parts, ":")))) }
	switch {
	case value == "":
		return "none"
	case value == rightBasic:
		return "Basic"
	case len(c) == 1 && c[0].Is("Digest"):
		user, password, _ := strings.Cut(rightLogin, ":")
		p := c[0].Params
		if p["response"] == hash(hash(user, p["realm"], password), p["nonce"], hash(method, target)) && p["uri"] == target {
			return "Digest"
		}
		return "wrong Digest"
	}
	return "wrong"
}

// challenges are those that a server makes, by the schemes that it takes.
var challenges = map[string]string{
	"Basic":  `Basic realm="here"`,
	"Digest": `Digest realm="here", nonce="once"`,
}

// guarded is a server that takes credentials of some schemes, and tells of each
// request what it came with.
type guarded struct {
	*httptest.Server
	mu   sync.Mutex // guards told
	told []string
}

func guard(t *testing.T, then http.HandlerFunc, takes ...string) *guarded {
	g := &guarded{}
	g.Server = serve(t, func(w http.ResponseWriter, r *http.Request) {
		got := credentialText(r.Header.Get("Authorization"), r.Method, r.RequestURI)
		g.mu.Lock()
		g.told = append(g.told, r.URL.Path+" "+got)
		g.mu.Unlock()
		for _, scheme := range takes {
			if got == scheme {
				then(w, r)
				return
			}
		}
		for _, scheme := range takes {
			w.Header().Add("WWW-Authenticate", challenges[scheme])
		}
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, "refused")
	})
	return g
}

func echoBody(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }

func TestCredentials(t *testing.T) {
	netrc := file(t, "netrc", `machine 127.0.0.1 login ada password sesame!7`)
	tests := []struct {
		name  string
		takes []string
		args  []string // with URL for http://127.0.0.1:PORT and HOST for what follows the scheme
		told  []string
		out   string
	}{
		{"Basic", []string{"Basic"}, []string{"-u", rightLogin, "URL/a"}, []string{"/a Basic"}, ""},
		{"Basic by name", []string{"Basic"}, []string{"--basic", "-u", rightLogin, "URL/a"}, []string{"/a Basic"}, ""},
		{"of the URL", []string{"Basic"}, []string{"http://" + rightLogin + "@HOST/a"}, []string{"/a Basic"}, ""},
		{"the option before the URL", []string{"Basic"}, []string{"-u", rightLogin, "http://eve:x@HOST/a"}, []string{"/a Basic"}, ""},
		{"wrong Basic", []string{"Basic"}, []string{"-u", "eve:sesame!7", "URL/a"}, []string{"/a wrong"}, "refused"},
		{"Digest", []string{"Digest"}, []string{"--digest", "-u", rightLogin, "URL/a?b=c"}, []string{"/a none", "/a Digest"}, ""},
		{"Digest of the URL", []string{"Digest"}, []string{"--digest", "http://" + rightLogin + "@HOST/a"}, []string{"/a none", "/a Digest"}, ""},
		{"wrong Digest", []string{"Digest"}, []string{"--digest", "-u", "ada:sesame!8", "URL/a"}, []string{"/a none", "/a wrong Digest"}, "refused"},
		{"no Digest offered", []string{"Basic"}, []string{"--digest", "-u", rightLogin, "URL/a"}, []string{"/a none"}, "refused"},
		{"any", []string{"Basic", "Digest"}, []string{"--anyauth", "-u", rightLogin, "URL/a"}, []string{"/a none", "/a Digest"}, ""},
		{"any, of one", []string{"Basic"}, []string{"--anyauth", "-u", rightLogin, "URL/a"}, []string{"/a none", "/a Basic"}, ""},
		{"any, wrong", []string{"Basic", "Digest"}, []string{"--anyauth", "-u", "ada:sesame!8", "URL/a"}, []string{"/a none", "/a wrong Digest"}, "refused"},
		{"a second URL", []string{"Digest"}, []string{"--digest", "-u", rightLogin, "URL/a", "URL/b"}, []string{"/a none", "/a Digest", "/b Digest"}, ""},
		{"a body", []string{"Digest"}, []string{"--digest", "-u", rightLogin, "-d", "abc", "URL/a"}, []string{"/a none", "/a Digest"}, "abc"},
		{"a body that is gone", []string{"Digest"}, []string{"--digest", "-u", rightLogin, "-T", "-", "URL/a"}, []string{"/a none"}, "refused"},
		{"netrc", []string{"Basic"}, []string{"--netrc-file", netrc, "URL/a"}, []string{"/a Basic"}, ""},
		{"netrc by Digest", []string{"Digest"}, []string{"--digest", "--netrc-file", netrc, "URL/a", "URL/b"}, []string{"/a none", "/a Digest", "/b Digest"}, ""},
		{"netrc for a user", []string{"Basic"}, []string{"--netrc-file", netrc, "http://ada@HOST/a"}, []string{"/a Basic"}, ""},
		{"netrc for another user", []string{"Basic"}, []string{"--netrc-file", netrc, "http://eve@HOST/a"}, []string{"/a wrong"}, "refused"},
		{"netrc after the URL", []string{"Basic"}, []string{"--netrc-file", netrc, "http://eve:x@HOST/a"}, []string{"/a wrong"}, "refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := guard(t, echoBody, tt.takes...)
			args := []string{"-v", "--trace"}
			for _, a := range tt.args {
				a = strings.ReplaceAll(a, "URL", g.URL)
				args = append(args, strings.ReplaceAll(a, "HOST", strings.TrimPrefix(g.URL, "http://")))
			}
			got := catenaRun(t, "input", args...)
			if got.code != 0 || got.stdout != tt.out {
				t.Errorf("exit code %d, output %q, errors:\n%s", got.code, got.stdout, got.stderr)
			}
			if diff := cmp.Diff(tt.told, g.told); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			noSecret(t, got.stderr)
		})
	}
}

// noSecret finds passwords of the tests, plain and in Basic, in what was printed.
func noSecret(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{"sesame", "c2VzYW1l", strings.TrimPrefix(rightBasic, "Basic "), "nlc2FtZ", "zZXNhbW"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is shown in\n%s", secret, text)
		}
	}
}

// Where a redirect leads, the user has not named: credentials of the command line
// stay behind, and those of the .netrc go by name only.
func TestRedirectsLoseCredentials(t *testing.T) {
	const login = "login ada password sesame!7"
	tests := []struct {
		name string
		args []string
		want string // what came to the other host
	}{
		{"Basic", []string{"-u", rightLogin}, "none"},
		{"Digest", []string{"--digest", "-u", rightLogin}, "none"},
		{"netrc, without the other host", []string{"--netrc-file", file(t, "1", "machine localhost "+login)}, "none"},
		{"netrc, default", []string{"--netrc-file", file(t, "2", "default "+login)}, "none"},
		{"netrc, with the other host", []string{"--netrc-file", file(t, "3", "default "+login+" machine 127.0.0.1 "+login)}, "Basic"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			other := guard(t, echoBody, "Basic", "Digest")
			first := guard(t, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL+"/other", http.StatusFound)
			}, "Basic", "Digest")
			named := strings.Replace(first.URL, "127.0.0.1", "localhost", 1)
			catenaRun(t, "", append(tt.args, named+"/first")...)
			if last := first.told[len(first.told)-1]; last != "/first Basic" && last != "/first Digest" {
				t.Errorf("the first host saw %q", first.told)
			}
			if diff := cmp.Diff([]string{"/other " + tt.want}, other.told); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The .netrc, which knows no schemes, is not sent in clear text after https.
func TestNetrcAfterHTTPS(t *testing.T) {
	entries := file(t, "netrc", "machine 127.0.0.1 login ada password sesame!7")
	plain := guard(t, echoBody, "Basic")
	var secured []string
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secured = append(secured, credentialText(r.Header.Get("Authorization"), r.Method, r.RequestURI))
		http.Redirect(w, r, plain.URL+"/plain", http.StatusFound)
	}))
	defer secure.Close()
	catenaRun(t, "", "-k", "--netrc-file", entries, secure.URL)
	if diff := cmp.Diff([]string{"Basic"}, secured); diff != "" {
		t.Errorf("by https (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/plain none"}, plain.told); diff != "" {
		t.Errorf("in clear text (-want +got):\n%s", diff)
	}
}
