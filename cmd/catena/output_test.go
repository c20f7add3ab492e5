package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// binary answers with the path, after a byte that text does not have where the
// path says so.
func binary(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "bin") {
		w.Write([]byte{0})
	}
	io.WriteString(w, r.URL.Path)
}

func TestFiles(t *testing.T) {
	s := serve(t, binary)
	tests := []struct {
		name   string
		args   []string // URLs are paths
		stdout string
		files  map[string]string
	}{
		{"one", []string{"-o", "a", "/1"}, "", map[string]string{"a": "/1"}},
		{"in order", []string{"/1", "-o", "a", "/2", "-O", "/3"}, "/3", map[string]string{"a": "/1", "2": "/2"}},
		{"standard output by name", []string{"-o", "-", "-o", "b", "/1", "/2"}, "/1", map[string]string{"b": "/2"}},
		{"no query in a name", []string{"-O", "/d/name.txt?a=/b"}, "", map[string]string{"name.txt": "/d/name.txt"}},
		{"escapes stay in a name", []string{"-O", "/d/..%2Fname"}, "", map[string]string{"..%2Fname": "/d/../name"}},
		{"with heads", []string{"-sI", "-o", "a", "/1"}, "", map[string]string{"a": ""}},
		{"no file for a failure", []string{"-sf", "-o", "a", "http://" + closedPort(t)}, "", map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			var args []string
			for _, a := range tt.args {
				if strings.HasPrefix(a, "/") {
					a = s.URL + a
				}
				args = append(args, a)
			}
			got := catenaRun(t, "", args...)
			if got.stdout != tt.stdout || got.stderr != "" {
				t.Errorf("output %q, errors %q; want %q", got.stdout, got.stderr, tt.stdout)
			}
			files := map[string]string{}
			entries, _ := os.ReadDir(".")
			for _, e := range entries {
				content, _ := os.ReadFile(e.Name())
				if strings.HasPrefix(string(content), "HTTP/1.1 200 OK\r\n") {
					content = nil // a head, whose date nobody knows
				}
				files[e.Name()] = string(content)
			}
			if diff := cmp.Diff(tt.files, files); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRemoteNameStaysHere: -O writes into the current folder or not at all.
func TestRemoteNameStaysHere(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "new") })
	outside := file(t, "outside", "old")
	t.Chdir(t.TempDir())
	if err := os.Symlink(outside, "link"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/", "/a/", "/a/..", "/.", "/c:a", "/link"} {
		got := catenaRun(t, "", "-O", s.URL+path)
		if got.code != exitWriteError || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, errors %q; want %d", path, got.code, got.stderr, exitWriteError)
		}
	}
	if content, _ := os.ReadFile(outside); string(content) != "old" {
		t.Errorf("the file outside has %q", content)
	}
	if entries, _ := os.ReadDir("."); len(entries) != 1 {
		t.Errorf("files were written: %v", entries)
	}
}

// TestRedirectKeepsName: the file is named as the URL that was asked for, not as
// the one that the server chose.
func TestRedirectKeepsName(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/asked" {
			http.Redirect(w, r, "/chosen", http.StatusFound)
		}
	})
	t.Chdir(t.TempDir())
	got := catenaRun(t, "", "-O", s.URL+"/asked")
	if _, err := os.Stat("asked"); got.code != 0 || err != nil {
		t.Errorf("%+v: %v", got, err)
	}
}

func TestTerminal(t *testing.T) {
	s := serve(t, binary)
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"text", []string{s.URL + "/text"}, 0, "/text"},
		{"binary", []string{s.URL + "/bin"}, exitWriteError, ""},
		{"binary all the same", []string{"-o", "-", s.URL + "/bin"}, 0, "\x00/bin"},
	}
	for _, tt := range tests {
		var out terminal
		code, stderr := runTo(t.Context(), &out, tt.args...)
		if code != tt.code || out.String() != tt.want {
			t.Errorf("%s: exit code %d, output %q; want %d, %q", tt.name, code, out.String(), tt.code, tt.want)
		}
		if tt.code != 0 && !strings.Contains(stderr, "-o FILE") {
			t.Errorf("%s: errors %q", tt.name, stderr)
		}
	}
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil || isTerminal(null) {
		t.Errorf("%s passes for a terminal: %v", os.DevNull, err)
	}
	if f, err := os.Create(filepath.Join(t.TempDir(), "file")); err != nil || isTerminal(f) {
		t.Errorf("a file passes for a terminal: %v", err)
	}
}

// full is an output that takes nothing.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestFullOutput(t *testing.T) {
	s := serve(t, binary)
	for _, args := range [][]string{{s.URL + "/a"}, {"-i", s.URL + "/a"}, {"-I", s.URL + "/a"}} {
		code, stderr := runTo(t.Context(), full{}, args...)
		if code != exitWriteError || stderr != "catena: (23) no space left\n" {
			t.Errorf("%v: exit code %d, errors %q", args, code, stderr)
		}
	}
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w terminal
		p := newProgress(&w, 4<<20)
		for range 4 {
			time.Sleep(500 * time.Millisecond)
			p.add(1 << 20)
		}
		p.end()
		const want = "\r2.0 MiB of 4.0 MiB, 50 %, 2.0 MiB/s" +
			"\r3.0 MiB of 4.0 MiB, 75 %, 2.0 MiB/s" +
			"\r4.0 MiB of 4.0 MiB, 100 %, 2.0 MiB/s" +
			"\r4.0 MiB of 4.0 MiB, 100 %, 2.0 MiB/s\n"
		if diff := cmp.Diff(want, w.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}

		var unknown terminal
		p = newProgress(&unknown, -1)
		time.Sleep(2 * time.Second)
		p.add(100)
		p.end()
		if want := "\r100 B, 50 B/s\r100 B, 50 B/s\n"; unknown.String() != want {
			t.Errorf("%q, want %q", unknown.String(), want)
		}

		var short terminal
		p = newProgress(&short, 10)
		p.add(10)
		p.end()
		if short.Len() > 0 {
			t.Errorf("a short body shows %q", short.String())
		}
	})
}

func TestUploadProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen terminal
		c := &command{options: defaultOptions(), stderr: &screen}
		req, err := http.NewRequest(http.MethodPut, "http://example.test/", strings.NewReader("four"))
		if err != nil {
			t.Fatal(err)
		}
		c.watchUpload(req)
		time.Sleep(2 * time.Second)
		if sent, err := io.ReadAll(req.Body); string(sent) != "four" || err != nil {
			t.Errorf("%q, %v", sent, err)
		}
		req.Body.Close()
		req.Body.Close()
		if want := "\r4 B of 4 B, 100 %, 2 B/s\r4 B of 4 B, 100 %, 2 B/s\n"; screen.String() != want {
			t.Errorf("%q, want %q", screen.String(), want)
		}
	})
}

func TestShowsProgress(t *testing.T) {
	var screen, pipe = &terminal{}, &strings.Builder{}
	tests := []struct {
		name           string
		options        options
		stdout, stderr io.Writer
		want           bool
	}{
		{"to a file", options{outputs: []output{{name: "a"}}}, screen, screen, true},
		{"to a pipe", options{}, pipe, screen, true},
		{"to the terminal", options{}, screen, screen, false},
		{"to the terminal by name", options{outputs: []output{{name: "-"}}}, screen, screen, false},
		{"silent", options{silent: true}, pipe, screen, false},
		{"nobody looks", options{}, pipe, pipe, false},
	}
	for _, tt := range tests {
		c := &command{options: &tt.options, stdout: tt.stdout, stderr: tt.stderr}
		if got := c.showsProgress(0); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
