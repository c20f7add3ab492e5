//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
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

// http2Caller is a client of a server by one protocol. What it recorded is checked
// when the test ends.
type http2Caller struct {
	http2Server
	files
	*testing.T
	protocol, base string
	client         *catena.Client
	events         *event.Recorder
	connections    *event.ConnectionRecorder
}

func newHTTP2Caller(t *testing.T, s http2Server, f files, protocol string) *http2Caller {
	c := &http2Caller{
		http2Server: s,
		files:       f,
		T:           t,
		protocol:    protocol,
		base:        s.bases[protocol],
		events:      event.NewRecorder(),
		connections: event.NewConnectionRecorder(),
	}
	ca, err := os.ReadFile(s.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	protocols := []string{"h2", "http/1.1"}
	if protocol == "h2c" {
		protocols = []string{"h2c"}
	}
	c.client, err = catena.New(
		catena.WithProxy(proxy.Proxy{}),
		catena.WithTLSConfig(&tls.Config{RootCAs: roots}),
		catena.WithProtocols(protocols...),
		catena.WithEventListener(c.events),
		catena.WithConnectionListener(c.connections),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.client.Close()
		if err := catenatest.CheckEvents(c.events.Events()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// answer is a response that was read to its end.
type answer struct {
	*http.Response
	body       []byte
	connection uint64
}

// do calls path, or a whole URL, and checks that the server answers with the status
// by the protocol.
func (c *http2Caller) do(ctx context.Context, method, path string, body io.Reader, status int, fields ...string) (answer, error) {
	if strings.HasPrefix(path, "/") {
		path = c.base + path
	}
	req, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	info, _ := catena.InfoOf(resp)
	if info.Protocol != c.protocol || resp.ProtoMajor != 2 || resp.StatusCode != status {
		return answer{}, fmt.Errorf("%s %s: status %d by %s (%q), want %d by %s", method, path, resp.StatusCode, resp.Proto,
			info.Protocol, status, c.protocol)
	}
	return answer{resp, content, info.Connection.ID()}, nil
}

// must is do for what the test's goroutine does.
func (c *http2Caller) must(method, path string, body io.Reader, status int, fields ...string) answer {
	c.Helper()
	a, err := c.do(c.Context(), method, path, body, status, fields...)
	if err != nil {
		c.Fatal(err)
	}
	return a
}

// connected is how many connections there have been.
func (c *http2Caller) connected() (n int) {
	for _, e := range c.connections.Events() {
		if e.Name == "Connected" {
			n++
		}
	}
	return n
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

// reloads lets the server start anew, twice, while calls run. None fails, unless
// the server cuts it.
func reloads(t *testing.T, c *http2Caller) {
	var used ids
	used.add(c.must("GET", "/small.txt", nil, http.StatusOK).connection)
	ctx, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for i := range 16 {
		calls.Go(func() {
			path, want := "/small.txt", sum([]byte("small\n"))
			if i%4 == 0 {
				path, want = "/middle.bin", c.middle
			}
			for ctx.Err() == nil {
				a, err := c.do(t.Context(), "GET", path, nil, http.StatusOK)
				if c.cuts && cutAfterGoAway(err) {
					continue
				}
				if err != nil {
					t.Errorf("%+v", err)
					return
				}
				if got := sum(a.body); got != want {
					t.Errorf("%s: %d bytes of checksum %s, want %s", path, len(a.body), got, want)
				}
				used.add(a.connection)
			}
		})
	}
	for range 2 {
		before := used.len()
		moved := false
		for tries := 0; !moved && tries < 5; tries++ { // a server that just reloads may miss a signal
			c.reload()
			moved = within(4*time.Second, func() bool { return used.len() > before || t.Failed() })
		}
		if !moved {
			t.Error("the server reloads, and the calls stay on its old connection")
		}
	}
	stop()
	calls.Wait()
	announced := 0
	for _, e := range c.connections.Events() {
		if e.Name == "NoNewExchanges" && e.Why == event.ReasonGoAway {
			announced++
		}
	}
	if announced < 2 {
		t.Errorf("%d connections ended by GOAWAY, want one for each of 2 reloads", announced)
	}
}

// cutAfterGoAway reports whether the server announced the connection's end and did
// not wait for the calls on it.
func cutAfterGoAway(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) && strings.Contains(err.Error(), "GOAWAY")
}

// ids is a set.
type ids struct {
	mu  sync.Mutex // guards all
	all map[uint64]bool
}

func (s *ids) add(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[uint64]bool{}
	}
	s.all[id] = true
}

func (s *ids) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// within asks again and again whether something has happened.
func within(d time.Duration, happened func() bool) bool {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	giveUp := time.NewTimer(d)
	defer giveUp.Stop()
	for {
		if happened() {
			return true
		}
		select {
		case <-giveUp.C:
			return false
		case <-again.C:
		}
	}
}
