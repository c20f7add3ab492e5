package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVerbose: all heads on the wire are shown, secrets are not.
func TestVerbose(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Set-Cookie", "session=secret")
		w.Header().Set("Content-Length", "0")
		if r.URL.Path == "/a" {
			w.Header().Set("Location", "/b?token=secret")
			w.WriteHeader(http.StatusFound)
		}
	})
	host := strings.TrimPrefix(s.URL, "http://")
	got := catenaRun(t, "", "-v", "-H", "X-Api-Key: secret", "-H", "Cookie: a=secret", "-A", "me", "http://user:secret@"+host+"/a?access_token=secret")
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	const want = `* connection 1 to HOST, http/1.1
> GET /a?access_token=MASK HTTP/1.1
> Host: HOST
> Accept: */*
> Authorization: MASK
> Connection: Keep-Alive
> Cookie: MASK
> User-Agent: me
> X-Api-Key: MASK
>
< HTTP/1.1 302 Found
< Content-Length: 0
< Location: /b?token=MASK
< Set-Cookie: MASK
<
* connection 1 to HOST, http/1.1, reused
> GET /b?token=MASK HTTP/1.1
> Host: HOST
> Accept: */*
> Authorization: MASK
> Connection: Keep-Alive
> Cookie: MASK
> User-Agent: me
> X-Api-Key: MASK
>
< HTTP/1.1 200 OK
< Content-Length: 0
< Set-Cookie: MASK
<
`
	shown := strings.NewReplacer(host, "HOST", "██", "MASK", "%E2%96%88%E2%96%88", "MASK").Replace(got.stderr)
	shown = regexp.MustCompile(`connection \d+`).ReplaceAllString(shown, "connection 1")
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestVerboseTarget: the request target is the wire's.
func TestVerboseTarget(t *testing.T) {
	seen := make(chan string, 1)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.RequestURI })
	host := strings.TrimPrefix(s.URL, "http://")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no path":     {[]string{s.URL}, "/"},
		"path alone":  {[]string{s.URL + "/a%2fb?c=d#e"}, "/a%2fb?c=d"},
		"two slashes": {[]string{s.URL + "//a"}, "//a"},
		"by a proxy":  {[]string{"-x", host, "http://user:secret@origin.test?c=d"}, "http://origin.test/?c=d"},
	} {
		t.Run(name, func(t *testing.T) {
			got := catenaRun(t, "", append([]string{"-v"}, tc.args...)...)
			if got.code != 0 {
				t.Fatalf("%+v", got)
			}
			if wire := <-seen; wire != tc.want || !strings.Contains(got.stderr, "> GET "+wire+" HTTP/1.1\n") {
				t.Errorf("the wire had %q, want %q; shown:\n%s", wire, tc.want, got.stderr)
			}
		})
	}
}

// TestControlCharacters: a server can't command the terminal by what is shown of
// its response's head.
func TestControlCharacters(t *testing.T) {
	s := peer(t, "HTTP/1.1 404 \x1b[2JGone\r\nX-A: \x1b[31mred\r\nContent-Length: 0\r\n\r\n")
	got := catenaRun(t, "", "-vf", s)
	if strings.Contains(got.stderr, "\x1b") || !strings.Contains(got.stderr, "404 ") {
		t.Errorf("%q", got.stderr)
	}
}

// TestVerboseHTTP2: names are in lower case, and fields left out, as HTTP/2 has them.
func TestVerboseHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("X-A", "b")
		io.WriteString(w, "body")
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	got := catenaRun(t, "", "-kvi", s.URL)
	const head = "HTTP/2 200 OK\r\ncontent-length: 4\r\ncontent-type: text/plain; charset=utf-8\r\nx-a: b\r\n\r\n"
	if got.code != 0 || got.stdout != head+"body" {
		t.Errorf("exit code %d, output %q; want %q", got.code, got.stdout, head+"body")
	}
	for _, want := range []string{", h2\n", "> GET / HTTP/2\n", "\n> accept: */*\n", "\n< HTTP/2 200", "\n< x-a: b\n"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("%q is not shown in\n%s", want, got.stderr)
		}
	}
	if strings.Contains(got.stderr, "> connection:") {
		t.Errorf("a field that is not sent is shown:\n%s", got.stderr)
	}
}
