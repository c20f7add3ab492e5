//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestHTTP2 calls real servers of HTTP/2, over TLS and in clear text.
func TestHTTP2(t *testing.T) {
	f := newFiles(t)
	servers := []struct {
		name  string
		start func(*testing.T, files) http2Server
	}{
		{"nginx", nginxHTTP2},
		{"apache2", apacheHTTP2},
		{"haproxy", haproxyHTTP2},
		{"nghttpd", nghttpdHTTP2},
	}
	checks := []struct {
		name  string
		check func(*testing.T, *http2Caller)
		needs func(http2Server) bool
	}{
		{"one after the other", oneAfterTheOther, nil},
		{"at the same time", atTheSameTime, nil},
		{"download", downloads, nil},
		{"upload", uploads, func(s http2Server) bool { return s.sum != "" }},
		{"echo", echoes, func(s http2Server) bool { return s.echo != "" }},
		{"no content", noContent, nil},
		{"trailers", trailers, func(s http2Server) bool { return s.trailers != "" }},
		{"large fields", largeFields, nil},
		{"early answer", earlyAnswer, nil},
		{"reload", reloads, func(s http2Server) bool { return s.reload != nil }},
	}
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			s := server.start(t, f)
			for _, protocol := range []string{"h2", "h2c"} {
				for _, c := range checks {
					if c.needs != nil && !c.needs(s) {
						continue
					}
					t.Run(protocol+"/"+c.name, func(t *testing.T) {
						c.check(t, newHTTP2Caller(t, s, f, protocol))
					})
				}
			}
		})
	}
}

// oneAfterTheOther also compares the events of the first call and the second.
func oneAfterTheOther(t *testing.T, c *http2Caller) {
	exchange := []string{
		"RequestHeadersStart", "RequestHeadersEnd", "ResponseHeadersStart", "ResponseHeadersEnd",
		"ResponseBodyStart", "ResponseBodyEnd", "ConnectionReleased", "CallEnd",
	}
	first := []string{"CallStart", "ProxySelectStart", "ProxySelectEnd", "ConnectStart"}
	if c.protocol == "h2" {
		first = append(first, "SecureConnectStart", "SecureConnectEnd")
	}
	first = append(append(first, "ConnectEnd", "ConnectionAcquired"), exchange...)
	second := append([]string{"CallStart", "ConnectionAcquired"}, exchange...)
	for i := range 20 {
		c.events.Reset()
		if a := c.must("GET", "/small.txt", nil, http.StatusOK); string(a.body) != "small\n" {
			t.Fatalf("body %q", a.body)
		}
		want := second
		if i == 0 {
			want = first
		}
		if diff := cmp.Diff(want, c.events.Names()); diff != "" {
			t.Fatalf("events of call %d (-want +got):\n%s", i+1, diff)
		}
	}
	if n := c.connected(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func atTheSameTime(t *testing.T, c *http2Caller) {
	c.must("GET", "/small.txt", nil, http.StatusOK)
	var calls sync.WaitGroup
	for range 64 {
		calls.Go(func() {
			a, err := c.do(t.Context(), "GET", "/middle.bin", nil, http.StatusOK)
			if err != nil {
				t.Error(err)
			} else if got := sum(a.body); got != c.middle {
				t.Errorf("%d bytes of checksum %s, want %s", len(a.body), got, c.middle)
			}
		})
	}
	calls.Wait()
	if n := c.connected(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func sum(content []byte) string {
	s := &sink{Hash: sha256.New()}
	s.Write(content)
	return s.sum()
}

func downloads(t *testing.T, c *http2Caller) {
	a := c.must("GET", "/large.bin", nil, http.StatusOK)
	if got := sum(a.body); got != c.large {
		t.Errorf("%d bytes of checksum %s, want %s", len(a.body), got, c.large)
	}
}

// uploads sends a body of known length, and one of unknown length, with a trailer
// where the server takes one.
func uploads(t *testing.T, c *http2Caller) {
	for _, known := range []bool{true, false} {
		f, err := os.Open(filepath.Join(c.folder, "large.bin"))
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", c.base+c.sum, f)
		if err != nil {
			t.Fatal(err)
		}
		if known {
			req.ContentLength = bigSize
		} else if c.takesTrailers {
			req.Trailer = http.Header{"X-Late": {"after the body"}}
		}
		resp, err := c.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || string(got) != c.large {
			t.Errorf("known length %t: status %d, checksum %s, error %v; want %s", known, resp.StatusCode, got, err, c.large)
		}
		if late := resp.Header.Get("X-Trailer"); !known && c.takesTrailers && late != "after the body" {
			t.Errorf("the server got %q as a trailer, want %q", late, "after the body")
		}
	}
}

// echoes sends and reads at the same time.
func echoes(t *testing.T, c *http2Caller) {
	f, err := os.Open(filepath.Join(c.folder, "large.bin"))
	if err != nil {
		t.Fatal(err)
	}
	a := c.must("POST", c.echo, f, http.StatusOK)
	if got := sum(a.body); got != c.large {
		t.Errorf("%d bytes of checksum %s, want %s", len(a.body), got, c.large)
	}
}

func noContent(t *testing.T, c *http2Caller) {
	a := c.must("HEAD", "/large.bin", nil, http.StatusOK)
	if len(a.body) != 0 || a.ContentLength != bigSize {
		t.Errorf("HEAD: %d bytes, content-length %d; want none and %d", len(a.body), a.ContentLength, bigSize)
	}
	c.must("GET", "/missing", nil, http.StatusNotFound)
	if c.empty == "" {
		return
	}
	if a = c.must("GET", c.empty, nil, http.StatusNoContent); len(a.body) != 0 {
		t.Errorf("204: %d bytes, want none", len(a.body))
	}
}

func trailers(t *testing.T, c *http2Caller) {
	a := c.must("GET", c.trailers, nil, http.StatusOK)
	if diff := cmp.Diff(http.Header{"X-Late": {"after the body"}}, a.Trailer); diff != "" || string(a.body) != "small\n" {
		t.Errorf("body %q, trailers (-want +got):\n%s", a.body, diff)
	}
}

// largeFields sends, and where the server can gets back, more than a frame holds.
func largeFields(t *testing.T, c *http2Caller) {
	var fields []string
	random := rand.NewChaCha8([32]byte{1})
	for _, name := range []string{"X-Large-0", "X-Large-1", "X-Large-2"} {
		value := make([]byte, 6<<10)
		random.Read(value)
		fields = append(fields, name, base64.StdEncoding.EncodeToString(value))
	}
	path := c.fields
	if path == "" {
		path = "/small.txt"
	}
	a := c.must("GET", path, nil, http.StatusOK, fields...)
	if c.fields == "" {
		return
	}
	for i := 0; i < len(fields); i += 2 {
		if a.Header.Get(fields[i]) != fields[i+1] {
			t.Errorf("%s came back with %d bytes, want the %d that were sent", fields[i], len(a.Header.Get(fields[i])),
				len(fields[i+1]))
		}
	}
}

// earlyAnswer sends a body that does not end by itself.
func earlyAnswer(t *testing.T, c *http2Caller) {
	status := http.StatusForbidden
	if c.echo != "" {
		status = http.StatusNotFound
	}
	body := newEndless()
	c.must("POST", c.refuse(c.protocol), body, status)
	select {
	case <-body.closed:
	case <-time.After(5 * time.Second):
		t.Error("the body is not closed")
	}
	if a := c.must("GET", "/small.txt", nil, http.StatusOK); string(a.body) != "small\n" {
		t.Fatalf("body %q", a.body)
	}
}

// endless has a MiB and then nothing, without an end, until it is closed.
type endless struct {
	io.Reader
	once   sync.Once
	closed chan struct{}
}

func newEndless() *endless {
	return &endless{Reader: bytes.NewReader(make([]byte, 1<<20)), closed: make(chan struct{})}
}

func (e *endless) Read(p []byte) (int, error) {
	if n, _ := e.Reader.Read(p); n > 0 {
		return n, nil
	}
	<-e.closed
	return 0, errors.New("closed")
}

func (e *endless) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}
