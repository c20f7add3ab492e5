package http1_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

// errOpen is what a script gives where a real connection would wait: a test that
// sees it has read further than the message.
var errOpen = errors.New("read past the script of an open connection")

// script is a connection whose peer says a fixed text and listens to all.
type script struct {
	in   []byte
	step int   // most bytes a Read gives; 0: no limit
	end  error // after in

	mu            sync.Mutex
	out           bytes.Buffer
	writes        int
	reads         int
	writeErr      error // every write fails
	partial       int   // what a failing write takes
	readDeadline  time.Time
	writeDeadline time.Time
	deadlines     int // calls that set one
}

func (s *script) Read(p []byte) (int, error) {
	s.reads++
	if len(s.in) == 0 {
		return 0, s.end
	}
	n := len(s.in)
	if s.step > 0 {
		n = min(n, s.step)
	}
	n = copy(p, s.in[:n])
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.writeErr != nil {
		return s.partial, s.writeErr
	}
	return s.out.Write(p)
}

func (s *script) Close() error         { return nil }
func (s *script) LocalAddr() net.Addr  { return nil }
func (s *script) RemoteAddr() net.Addr { return nil }

func (s *script) SetDeadline(t time.Time) error {
	s.SetReadDeadline(t)
	return s.SetWriteDeadline(t)
}

func (s *script) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readDeadline = t
	s.deadlines++
	return nil
}

func (s *script) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeDeadline = t
	s.deadlines++
	return nil
}

// answering returns a connection that says text and then stays open.
func answering(text string) *script { return &script{in: []byte(text), end: errOpen} }

// ending returns a connection that says text and then closes.
func ending(text string) *script { return &script{in: []byte(text), end: io.EOF} }

func newRequest(t testing.TB, method, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// send begins an exchange and sends a request without a body.
func send(t testing.TB, c *http1.Conn, method string) {
	t.Helper()
	sendRequest(t, c, newRequest(t, method, "http://example.com/"))
}

func sendRequest(t testing.TB, c *http1.Conn, req *http.Request) {
	t.Helper()
	c.Begin(wire.Exchange{})
	if err := c.WriteRequestHeaders(req, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.FinishRequest(nil); err != nil {
		t.Fatal(err)
	}
}

// get sends a GET and reads the final head.
func get(t testing.TB, c *http1.Conn) *http.Response {
	t.Helper()
	send(t, c, "GET")
	return final(t, c)
}

func final(t testing.TB, c *http1.Conn) *http.Response {
	t.Helper()
	for {
		resp, err := c.ReadResponseHeaders(nil)
		if err != nil {
			t.Fatalf("ReadResponseHeaders: %v", err)
		}
		if resp.StatusCode >= 200 || resp.StatusCode == 101 {
			return resp
		}
	}
}

// exchange does a GET over nc and returns what came of it.
func exchange(nc net.Conn, method string) outcome {
	c := http1.NewConn(nc, false)
	c.Begin(wire.Exchange{})
	defer c.End()
	req, _ := http.NewRequest(method, "http://example.com/", nil)
	if err := c.WriteRequestHeaders(req, 0); err != nil {
		return outcome{err: err}
	}
	if err := c.FinishRequest(nil); err != nil {
		return outcome{err: err}
	}
	var resp *http.Response
	for resp == nil || resp.StatusCode < 200 {
		var err error
		if resp, err = c.ReadResponseHeaders(nil); err != nil {
			return outcome{err: err, reusable: c.Reusable()}
		}
	}
	body, err := io.ReadAll(resp.Body)
	return outcome{resp: resp, body: string(body), err: err, reusable: c.Reusable()}
}

type outcome struct {
	resp     *http.Response
	body     string
	err      error
	reusable bool
}

func wantProtocolError(t *testing.T, err error, part string) {
	t.Helper()
	var protocol *wire.ProtocolError
	if !errors.As(err, &protocol) {
		t.Fatalf("error is %v, want a protocol error", err)
	}
	if !strings.Contains(protocol.Reason, part) {
		t.Errorf("reason is %q, want it to contain %q", protocol.Reason, part)
	}
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func newReader(s string) *bufio.Reader { return bufio.NewReader(strings.NewReader(s)) }
