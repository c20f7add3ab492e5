package catena_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

// cannedConn answers each write at once, in memory: no system call, no other
// goroutine. What is left is the client's own work.
type cannedConn struct {
	net.Conn // nil: what is not below is not called
	left     string
}

func (c *cannedConn) Write(p []byte) (int, error) {
	c.left = benchResponse
	return len(p), nil
}

func (c *cannedConn) Read(p []byte) (int, error) {
	if c.left == "" {
		return 0, os.ErrDeadlineExceeded // what the look before a reuse wants to see
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

func (c *cannedConn) Close() error                     { return nil }
func (c *cannedConn) SetDeadline(time.Time) error      { return nil }
func (c *cannedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *cannedConn) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkEngine is a small GET without a network: the whole client, and the
// HTTP/1.1 codec alone.
func BenchmarkEngine(b *testing.B) {
	req, err := http.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("client", func(b *testing.B) {
		client := newBenchClient(b, catena.WithDialContext(func(context.Context, string, string) (net.Conn, error) {
			return &cannedConn{}, nil
		}))
		b.ReportAllocs()
		for b.Loop() {
			resp, err := client.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			readAll(b, resp)
		}
	})
	b.Run("codec", func(b *testing.B) {
		req := req.Clone(b.Context())
		req.Header = http.Header{"Accept-Encoding": {"gzip"}, "Connection": {"Keep-Alive"}, "User-Agent": {"catena"}}
		c := http1.NewConn(&cannedConn{}, false)
		terms := wire.Exchange{ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
		b.ReportAllocs()
		for b.Loop() {
			c.Begin(terms)
			if err := c.WriteRequestHeaders(req, 0); err != nil {
				b.Fatal(err)
			}
			if err := c.FinishRequest(nil); err != nil {
				b.Fatal(err)
			}
			resp, err := c.ReadResponseHeaders(nil)
			if err != nil {
				b.Fatal(err)
			}
			readAll(b, resp)
			c.End()
		}
	})
}

func readAll(b *testing.B, resp *http.Response) {
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != int64(len(benchBody)) {
		b.Fatal(n, err)
	}
	resp.Body.Close()
}
