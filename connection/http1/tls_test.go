package http1_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http1"
)

// certificate makes a throw-away certificate for 127.0.0.1.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A body that ends with the connection needs TLS's word that it is all of it;
// one that says where it ends does not (RFC 9112 9.8).
func TestTLSTruncation(t *testing.T) {
	cert := certificate(t)
	tests := []struct {
		name, text string
		notify     bool
		truncated  bool
	}{
		{"cut off", "HTTP/1.1 200 OK\r\n\r\nhello", false, true},
		{"closed", "HTTP/1.1 200 OK\r\n\r\nhello", true, false},
		{"sized", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, false},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client, server := tcpPair(t)
			var peer sync.WaitGroup
			defer peer.Wait()
			peer.Go(func() {
				conn := tls.Server(server, &tls.Config{Certificates: []tls.Certificate{cert}})
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				io.WriteString(conn, test.text)
				if test.notify {
					conn.CloseWrite()
				}
				server.Close()
			})
			conn := tls.Client(http1.NoteEnd(client), &tls.Config{InsecureSkipVerify: true})
			c := http1.NewConn(conn, true)
			resp := get(t, c)
			defer c.End()
			body, err := io.ReadAll(resp.Body)
			if string(body) != "hello" || errors.Is(err, io.ErrUnexpectedEOF) != test.truncated {
				t.Errorf("body %q, error %v", body, err)
			}
		})
	}
}
