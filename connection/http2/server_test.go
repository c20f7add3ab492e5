package http2_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/internal/wire"
	"github.com/google/go-cmp/cmp"
)

// terms are those of a client with the default settings.
var terms = wire.Exchange{
	ReadTimeout:     10 * time.Second,
	WriteTimeout:    10 * time.Second,
	MaxHeaderBytes:  256 << 10,
	MaxHeaderFields: 1000,
}

// serve starts net/http's server and connects to it.
func serve(t *testing.T, secure bool, h http.HandlerFunc) *http2.Conn {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	if secure {
		srv.Config.Protocols.SetHTTP2(true)
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Config.Protocols.SetUnencryptedHTTP2(true)
		srv.Start()
	}
	t.Cleanup(srv.Close)
	nc, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if secure {
		nc = tls.Client(http2.Gather(nc), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	}
	return connect(t, nc, http2.Options{Secure: secure})
}

func connect(t *testing.T, nc net.Conn, opts http2.Options) *http2.Conn {
	t.Helper()
	c, err := http2.NewConn(nc, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// open reserves and opens a stream.
func open(t *testing.T, c *http2.Conn, x wire.Exchange, req *http.Request, size int64) *http2.Stream {
	t.Helper()
	s := newStream(t, c, x)
	if err := errors.Join(s.WriteRequestHeaders(req, size), s.Flush()); err != nil {
		t.Fatalf("WriteRequestHeaders: %v", err)
	}
	return s
}

func newStream(t *testing.T, c *http2.Conn, x wire.Exchange) *http2.Stream {
	t.Helper()
	if !c.Reserve() {
		t.Fatal("Reserve: no slot")
	}
	s := c.NewStream(x)
	t.Cleanup(s.End)
	return s
}

func request(t *testing.T, method, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// exchange sends req with body (nil: none; size as for WriteRequestHeaders)
// and reads the whole response.
func exchange(t *testing.T, c *http2.Conn, req *http.Request, body io.Reader, size int64) (*http.Response, string) {
	t.Helper()
	s := open(t, c, terms, req, size)
	if body != nil {
		if _, err := s.ReadFrom(body); err != nil {
			t.Fatalf("ReadFrom: %v", err)
		}
	}
	if err := s.FinishRequest(req.Trailer); err != nil {
		t.Fatalf("FinishRequest: %v", err)
	}
	resp := head(t, s)
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("response body: %v", err)
	}
	resp.Body.Close()
	s.End()
	return resp, string(content)
}

// head reads the next head.
func head(t *testing.T, s *http2.Stream) *http.Response {
	t.Helper()
	var started int
	resp, err := s.ReadResponseHeaders(func() { started++ })
	if err != nil {
		t.Fatalf("ReadResponseHeaders: %v", err)
	}
	if started != 1 {
		t.Errorf("started was called %d times, want once", started)
	}
	return resp
}

func eachScheme(t *testing.T, f func(t *testing.T, secure bool)) {
	for _, secure := range []bool{true, false} {
		t.Run(map[bool]string{true: "h2", false: "h2c"}[secure], func(t *testing.T) { f(t, secure) })
	}
}

func TestRequestBodies(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	tests := map[string]struct {
		method, body string
		size         int64
		length       string // the Content-Length that the server sees
	}{
		"get":                   {method: "GET"},
		"delete":                {method: "DELETE"},
		"post of nothing":       {method: "POST", length: "0"},
		"small":                 {method: "POST", body: "hello", size: 5, length: "5"},
		"large":                 {method: "PUT", body: big, size: 1 << 20, length: "1048576"},
		"unknown length":        {method: "POST", body: "hello", size: -1},
		"large, unknown length": {method: "POST", body: big, size: -1},
		"empty, unknown length": {method: "POST", size: -1},
	}
	eachScheme(t, func(t *testing.T, secure bool) {
		c := serve(t, secure, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Seen", fmt.Sprintf("%s %s %q", r.Method, r.Proto, r.Header.Get("Content-Length")))
			io.Copy(w, r.Body)
		})
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				var body io.Reader
				if tt.size != 0 {
					body = strings.NewReader(tt.body)
				}
				resp, got := exchange(t, c, request(t, tt.method, "http://x.test/"), body, tt.size)
				if got != tt.body {
					t.Errorf("echo of %d bytes, want %d", len(got), len(tt.body))
				}
				want := fmt.Sprintf("%s HTTP/2.0 %q", tt.method, tt.length)
				if seen := resp.Header.Get("Seen"); seen != want {
					t.Errorf("server saw %s, want %s", seen, want)
				}
			})
		}
	})
}

func TestTrailers(t *testing.T) {
	tests := map[string]struct {
		body string
		size int64
	}{
		"with content":   {"hello", 5},
		"unknown length": {"hello", -1},
		"no content":     {"", 0},
	}
	c := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.Copy(w, r.Body)
		w.Header().Set("X-Sum", r.Trailer.Get("X-In"))
		w.Header().Set(http.TrailerPrefix+"X-Surprise", "yes")
	})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := request(t, "POST", "http://x.test/")
			req.Trailer = http.Header{"X-In": {"42"}}
			resp, got := exchange(t, c, req, strings.NewReader(tt.body), tt.size)
			if got != tt.body {
				t.Errorf("body %q, want %q", got, tt.body)
			}
			want := http.Header{"X-Sum": {"42"}, "X-Surprise": {"yes"}}
			if diff := cmp.Diff(want, resp.Trailer); diff != "" {
				t.Errorf("trailers (-want +got):\n%s", diff)
			}
		})
	}
}

// Both directions at once: each line is answered before the next is sent.
func TestDuplexPingPong(t *testing.T) {
	eachScheme(t, func(t *testing.T, secure bool) {
		c := serve(t, secure, func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			rc.Flush()
			buf := make([]byte, 16)
			for {
				n, err := r.Body.Read(buf)
				w.Write(bytes.ToUpper(buf[:n]))
				rc.Flush()
				if err != nil {
					return
				}
			}
		})
		s := open(t, c, terms, request(t, "POST", "http://x.test/"), -1)
		if !s.Duplex() {
			t.Error("Duplex is false")
		}
		resp := head(t, s)
		for _, line := range []string{"one", "two", "three"} {
			if _, err := io.WriteString(s, line); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(line))
			if _, err := io.ReadFull(resp.Body, got); err != nil {
				t.Fatal(err)
			}
			if want := strings.ToUpper(line); string(got) != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if err := s.FinishRequest(nil); err != nil {
			t.Fatal(err)
		}
		if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("at the end: %d, %v; want io.EOF", n, err)
		}
		if !s.Reusable() || !c.Healthy() {
			t.Error("the connection is not reusable")
		}
	})
}

func TestHeadHasNoBody(t *testing.T) {
	c := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
	})
	s := open(t, c, terms, request(t, "HEAD", "https://x.test/"), 0)
	s.FinishRequest(nil)
	resp := head(t, s)
	if resp.ContentLength != 1000 || resp.Body != http.NoBody {
		t.Errorf("ContentLength %d, Body %T; want 1000 and http.NoBody", resp.ContentLength, resp.Body)
	}
	if _, err := s.ReadResponseHeaders(nil); err == nil {
		t.Error("a second final head: no error")
	}
}

// Many calls at once, over a limit that arrives with SETTINGS: nobody is
// refused.
func TestManyStreamsOneConnection(t *testing.T) {
	c := serve(t, true, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	const calls = 64
	errs := make(chan error, calls)
	for range calls {
		if !c.Reserve() {
			t.Fatal("Reserve: no slot")
		}
		s := c.NewStream(terms)
		go func() {
			defer s.End()
			errs <- func() error {
				if err := s.WriteRequestHeaders(request(t, "POST", "https://x.test/"), 5); err != nil {
					return err
				}
				if _, err := io.WriteString(s, "hello"); err != nil {
					return err
				}
				if err := s.FinishRequest(nil); err != nil {
					return err
				}
				resp, err := s.ReadResponseHeaders(nil)
				if err != nil {
					return err
				}
				if got, err := io.ReadAll(resp.Body); string(got) != "hello" || err != nil {
					return fmt.Errorf("body %q, %w", got, err)
				}
				return nil
			}()
		}()
	}
	for range calls {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestClosedConnection(t *testing.T) {
	c := serve(t, true, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	var why []error
	c.OnRetire(func(err error) { why = append(why, err) })
	s := open(t, c, terms, request(t, "GET", "https://x.test/"), 0)
	c.Close()
	c.Close()
	if _, err := s.ReadResponseHeaders(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("open stream: %v, want net.ErrClosed", err)
	}
	if len(why) != 1 || !errors.Is(why[0], net.ErrClosed) {
		t.Errorf("OnRetire was told %v, want net.ErrClosed once", why)
	}
	if c.Reserve() || c.Healthy() {
		t.Error("a closed connection takes streams")
	}
	late := 0
	c.OnRetire(func(error) { late++ })
	if late != 1 {
		t.Errorf("OnRetire on a retired connection: called %d times", late)
	}
}
