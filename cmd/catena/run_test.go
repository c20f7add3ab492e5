package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
)

// echo answers with the request as it came, but for the connection's own field.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s\n", r.Method, r.RequestURI)
	r.Header.Del("Connection")
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(w, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
	}
	if len(r.TransferEncoding) > 0 {
		fmt.Fprintf(w, "Transfer: %s\n", strings.Join(r.TransferEncoding, ", "))
	}
	fmt.Fprintf(w, "\n%s", body)
}

func echoHost(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRequests(t *testing.T) {
	s := serve(t, echo)
	const agent = "User-Agent: catena/" + catena.Version + "\n"
	const form = "Content-Type: application/x-www-form-urlencoded\n"
	lines := file(t, "lines", "a\r\nb\x00\xff\n")
	tests := []struct {
		name  string
		path  string
		stdin string
		args  []string
		want  string
	}{
		{"GET", "/a?b=c#d", "", nil, "GET /a?b=c\nAccept: */*\n" + agent + "\n"},
		{"method", "/", "", []string{"-X", "DELETE"}, "DELETE /\nAccept: */*\n" + agent + "\n"},
		{"form", "/", "", []string{"-d", "a=1", "-d", "b=2"},
			"POST /\nAccept: */*\nContent-Length: 7\n" + form + agent + "\na=1&b=2"},
		{"empty form", "/", "", []string{"-d", ""},
			"POST /\nAccept: */*\nContent-Length: 0\n" + form + agent + "\n"},
		{"form of a file", "/", "", []string{"-d", "@" + lines},
			"POST /\nAccept: */*\nContent-Length: 3\n" + form + agent + "\nab\xff"},
		{"form of standard input", "/", "x\ny\n", []string{"-d", "@-"},
			"POST /\nAccept: */*\nContent-Length: 2\n" + form + agent + "\nxy"},
		{"binary", "/", "", []string{"--data-binary", "@" + lines},
			"POST /\nAccept: */*\nContent-Length: 7\n" + form + agent + "\na\r\nb\x00\xff\n"},
		{"binary of standard input, and more", "/", "x\n", []string{"--data-binary", "@-", "-d", "y"},
			"POST /\nAccept: */*\nContent-Length: 4\n" + form + agent + "\nx\n&y"},
		{"raw", "/", "", []string{"--data-raw", "@a"},
			"POST /\nAccept: */*\nContent-Length: 2\n" + form + agent + "\n@a"},
		{"another type", "/", "", []string{"-d", "{}", "-H", "content-type: application/json"},
			"POST /\nAccept: */*\nContent-Length: 2\nContent-Type: application/json\n" + agent + "\n{}"},
		{"query", "/?a=1", "", []string{"-G", "-d", "b=2", "-d", "c"},
			"GET /?a=1&b=2&c\nAccept: */*\n" + agent + "\n"},
		{"upload", "/up/", "", []string{"-T", lines},
			"PUT /up/lines\nAccept: */*\nContent-Length: 7\n" + agent + "\na\r\nb\x00\xff\n"},
		{"upload by another method", "/up", "", []string{"-X", "POST", "-T", lines},
			"POST /up\nAccept: */*\nContent-Length: 7\n" + agent + "\na\r\nb\x00\xff\n"},
		{"upload of standard input", "/up/", "some", []string{"-T", "-"},
			"PUT /up/\nAccept: */*\n" + agent + "Transfer: chunked\n\nsome"},
		{"chunked", "/", "", []string{"-d", "abc", "-H", "Transfer-Encoding: Chunked"},
			"POST /\nAccept: */*\n" + form + agent + "Transfer: chunked\n\nabc"},
		{"headers", "/", "", []string{"-H", "X-A: 1", "-H", "x-a: 2", "-H", "X-Empty;", "-H", "Accept:", "-H", "User-Agent: me"},
			"GET /\nUser-Agent: me\nX-A: 1, 2\nX-Empty: \n\n"},
		{"no user agent", "/", "", []string{"-A", ""}, "GET /\nAccept: */*\n\n"},
		{"no user agent, by header", "/", "", []string{"-H", "User-Agent:"}, "GET /\nAccept: */*\n\n"},
		{"user agent and referer", "/", "", []string{"-A", "me", "-e", "http://from.test/"},
			"GET /\nAccept: */*\nReferer: http://from.test/\nUser-Agent: me\n\n"},
		{"credentials", "/", "", []string{"-u", "user:pa:ss"},
			"GET /\nAccept: */*\nAuthorization: Basic dXNlcjpwYTpzcw==\n" + agent + "\n"},
		{"gzip", "/", "", []string{"--compressed"}, "GET /\nAccept: */*\nAccept-Encoding: gzip\n" + agent + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := catenaRun(t, tt.stdin, append(tt.args, s.URL+tt.path)...)
			if diff := cmp.Diff(result{stdout: tt.want}, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHost(t *testing.T) {
	s := serve(t, echoHost)
	got := catenaRun(t, "", "-H", "Host: other.test", strings.TrimPrefix(s.URL, "http://"))
	if got.code != 0 || got.stdout != "other.test" {
		t.Errorf("%+v", got)
	}
}

func TestCompressed(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, "plain")
	z.Close()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") == "gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed.Bytes())
		}
	})
	if got := catenaRun(t, "", "--compressed", s.URL); got.code != 0 || got.stdout != "plain" {
		t.Errorf("%+v", got)
	}
}

// redirecting sends /0 to /1, and so on to /3.
func redirecting(t *testing.T) *httptest.Server {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		if r.URL.Path == "/3" {
			io.WriteString(w, "end\n")
			return
		}
		w.Header().Set("Location", "/"+string(r.URL.Path[1]+1))
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusFound)
	})
}

func TestRedirects(t *testing.T) {
	s := redirecting(t)
	hop := func(n int) string {
		return fmt.Sprintf("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /%d\r\n\r\n", n)
	}
	const end = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
	tests := []struct {
		name string
		args []string
		want result
	}{
		{"followed", nil, result{stdout: "end\n"}},
		{"heads of all", []string{"-i"}, result{stdout: hop(1) + hop(2) + hop(3) + end + "end\n"}},
		{"heads alone", []string{"-I"}, result{stdout: hop(1) + hop(2) + hop(3) +
			"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"}},
		{"heads alone, by GET", []string{"-I", "-X", "GET"}, result{stdout: hop(1) + hop(2) + hop(3) + end}},
		{"not followed", []string{"-i", "--no-follow"}, result{stdout: hop(1)}},
		{"just enough", []string{"--max-redirs", "3"}, result{stdout: "end\n"}},
		{"without a limit", []string{"--max-redirs", "-1"}, result{stdout: "end\n"}},
		{"too many", []string{"--max-redirs", "2"}, result{code: exitRedirects, stderr: "catena: (47) "}},
		{"none allowed", []string{"--max-redirs", "0"}, result{code: exitRedirects, stderr: "catena: (47) "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := catenaRun(t, "", append(tt.args, s.URL+"/0")...)
			if tt.want.stderr != "" && strings.HasPrefix(got.stderr, tt.want.stderr) && strings.Count(got.stderr, "\n") == 1 {
				got.stderr = tt.want.stderr
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSharedConnection: several URLs are called on one connection, in order,
// whatever becomes of one of them.
func TestSharedConnection(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		io.WriteString(w, r.RemoteAddr+"\n")
	})
	got := catenaRun(t, "", "-f", s.URL, s.URL+"/missing", s.URL)
	first, rest, _ := strings.Cut(got.stdout, "\n")
	if got.code != exitStatus || rest != first+"\n" {
		t.Errorf("%+v, want exit code %d and the same client address twice", got, exitStatus)
	}
	if got.stderr != "catena: (22) the server answered 404 Not Found\n" {
		t.Errorf("errors %q", got.stderr)
	}
}

// TestFirstFailure: of several failures the first decides the exit code.
func TestFirstFailure(t *testing.T) {
	s := serve(t, http.NotFound)
	refused := "http://" + closedPort(t)
	if got := catenaRun(t, "", "-f", s.URL, refused); got.code != exitStatus || strings.Count(got.stderr, "\n") != 2 {
		t.Errorf("%+v, want exit code %d and two errors", got, exitStatus)
	}
	if got := catenaRun(t, "", "-f", refused, s.URL); got.code != exitConnect {
		t.Errorf("%+v, want exit code %d", got, exitConnect)
	}
}

// TestStandardInputTwice: what was read of standard input is sent to every URL.
func TestStandardInputTwice(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	if got := catenaRun(t, "in", "-d", "@-", s.URL, s.URL); got.code != 0 || got.stdout != "inin" {
		t.Errorf("%+v", got)
	}
}

func TestProxy(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RequestURI) })
	if got := catenaRun(t, "", "-x", p.URL, "http://nosuch.test/a"); got.code != 0 || got.stdout != "http://nosuch.test/a" {
		t.Errorf("%+v", got)
	}
}

// TestWords: "help" and "demo" are no hosts.
func TestWords(t *testing.T) {
	alone := func(args ...string) result {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		return result{code, stdout.String(), stderr.String()}
	}
	help := alone("--help")
	for _, args := range [][]string{{"help"}, {"help", "demo"}} {
		if got := alone(args...); got != help || got.code != 0 {
			t.Errorf("%v: %+v, want the help", args, got)
		}
	}
	for _, args := range [][]string{{"demo", "extra"}, {"demo", "-v"}} {
		got := alone(args...)
		if got.code != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, "demo stands alone") {
			t.Errorf("%v: %+v, want a usage error", args, got)
		}
	}
}
