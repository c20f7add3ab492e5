package catena_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/catena-http/catena"
)

// A body that only the end of the connection ends may have been cut by anybody
// where TLS does not say that this is its end (RFC 9112 9.8).
func TestCutBelowTLS(t *testing.T) {
	tests := []struct {
		name, response string
		notify         bool // send a close_notify before the socket is closed
		want           error
	}{
		{"close-delimited, cut", "HTTP/1.1 200 OK\r\n\r\nhello", false, io.ErrUnexpectedEOF},
		{"close-delimited, ended", "HTTP/1.1 200 OK\r\n\r\nhello", true, nil},
		{"length satisfied, cut", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, nil},
		{"chunks complete, cut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false, nil},
	}
	// Only its certificate is wanted.
	source := httptest.NewTLSServer(nil)
	defer source.Close()
	config := &tls.Config{Certificates: source.TLS.Certificates}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			served := make(chan error, 1)
			go func() {
				raw, err := l.Accept()
				if err != nil {
					served <- err
					return
				}
				defer raw.Close()
				conn := tls.Server(raw, config)
				buf := make([]byte, 4096)
				if _, err = conn.Read(buf); err == nil {
					_, err = io.WriteString(conn, test.response)
				}
				if test.notify {
					err = errors.Join(err, conn.CloseWrite())
				}
				served <- err
			}()
			client := newBenchClient(t, catena.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}))
			resp, err := client.Get(t.Context(), "https://"+l.Addr().String()+"/")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != "hello" || !errors.Is(err, test.want) || err != nil && test.want == nil {
				t.Errorf("read %q, %v; want \"hello\", %v", body, err, test.want)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
