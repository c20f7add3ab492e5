package http2_test

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/catena-http/catena/connection/http2"
)

// writesOf notes the sizes of writes and, from the one that is to fail on, fails.
type writesOf struct {
	net.Conn
	fail int

	mu    sync.Mutex // guards what follows
	sizes []int
}

var errWrite = errors.New("no more of this")

func (w *writesOf) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.sizes = append(w.sizes, len(p))
	fail := w.fail > 0 && len(w.sizes) >= w.fail
	w.mu.Unlock()
	if fail {
		return 0, errWrite
	}
	return w.Conn.Write(p)
}

// gathering connects by TLS to a server that answers with the sum of what it got.
func gathering(t *testing.T) (*http2.Conn, *writesOf) {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		io.Copy(sum, r.Body)
		fmt.Fprintf(w, "%x", sum.Sum(nil))
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	nc, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	writes := &writesOf{Conn: nc}
	secure := tls.Client(http2.Gather(writes), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	return connect(t, secure, http2.Options{Secure: true}), writes
}

// A body over TLS goes out in writes of several records, and arrives as it was.
func TestGather(t *testing.T) {
	c, writes := gathering(t)
	body := strings.Repeat("0123456789abcde\n", 1<<18) // 4 MiB
	_, got := exchange(t, c, request(t, "POST", "https://x.test/"), strings.NewReader(body), int64(len(body)))
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(body))); got != want {
		t.Errorf("the server got another body: %s, want %s", got, want)
	}
	writes.mu.Lock()
	defer writes.mu.Unlock()
	if largest := slices.Max(writes.sizes); largest < 64<<10 {
		t.Errorf("no write was larger than %d bytes", largest)
	}
}

// An error of the socket's ends the connection, also where several records wait.
func TestGatherFails(t *testing.T) {
	c, writes := gathering(t)
	exchange(t, c, request(t, "POST", "https://x.test/"), strings.NewReader(large), int64(len(large)))
	writes.mu.Lock()
	writes.fail = 1
	writes.mu.Unlock()
	s := openLarge(t, c)
	_, err := s.ReadFrom(strings.NewReader(large))
	if err == nil {
		err = s.FinishRequest(nil)
	}
	if !errors.Is(err, errWrite) {
		t.Errorf("error %v, want %v", err, errWrite)
	}
	if c.Healthy() {
		t.Error("the connection takes more streams")
	}
}

// openLarge opens a stream for a large body, of which nothing is written yet.
func openLarge(t *testing.T, c *http2.Conn) *http2.Stream {
	t.Helper()
	s := newStream(t, c, terms)
	if err := s.WriteRequestHeaders(request(t, "POST", "https://x.test/"), int64(len(large))); err != nil {
		t.Fatal(err)
	}
	return s
}
