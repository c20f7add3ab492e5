package catena_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/proxy"
)

// largestWrite remembers the size of the largest write.
type largestWrite struct {
	net.Conn
	largest *atomic.Int64
}

func (c largestWrite) Write(p []byte) (int, error) {
	for {
		before := c.largest.Load()
		if int64(len(p)) <= before || c.largest.CompareAndSwap(before, int64(len(p))) {
			return c.Conn.Write(p)
		}
	}
}

// Over TLS a large body goes out by HTTP/2 in writes of several records; crypto/tls
// alone makes one write for each record of 16 KiB.
func TestLargeUploadsWriteSeveralRecordsAtOnce(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got, err := io.ReadAll(r.Body); err != nil || r.ProtoMajor != 2 || !bytes.Equal(got, body) {
			t.Errorf("%s: %d bytes, %v", r.Proto, len(got), err)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	var largest atomic.Int64
	client := newClient(t, catena.WithProxy(proxy.Proxy{}),
		catena.WithTLSConfig(&tls.Config{RootCAs: roots, ServerName: "example.com"}),
		catena.WithDialContext(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return largestWrite{c, &largest}, err
		}))
	resp, err := client.Post(t.Context(), server.URL, "text/plain", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := largest.Load(); got < 64<<10 {
		t.Errorf("no write was larger than %d bytes", got)
	}
}
