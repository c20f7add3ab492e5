package http2_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/connection/http2"
	xhttp2 "golang.org/x/net/http2"
)

// slow takes little at a time.
type slow struct{ net.Conn }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return s.Conn.Read(p[:min(len(p), 8<<10)])
}

// A server that is slow, but takes something within each write timeout, gets the
// whole body, also through TLS in TLS: one timeout is not for all that was gathered.
func TestGatherSlowly(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	for _, layers := range []int{1, 2} {
		t.Run(fmt.Sprint(layers, " layers"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := layered(layers, srv.TLS.Certificates)
				p := newPeerOver(t, client, server, http2.Options{Secure: true})
				p.settle()
				s := newStream(t, p.client, terms)
				size := int64(len(large))
				err := errors.Join(s.WriteRequestHeaders(request(t, "POST", "https://x.test/"), size), s.Flush())
				id := p.headers().stream
				p.grant(0, uint32(size))
				p.grant(id, uint32(size))
				if err == nil {
					_, err = s.ReadFrom(strings.NewReader(large))
				}
				if err == nil {
					err = s.FinishRequest(nil)
				}
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// layered is a connection through layers of TLS to a slow server.
func layered(layers int, certs []tls.Certificate) (client, server net.Conn) {
	ours, theirs := net.Pipe()
	client, server = ours, slow{theirs}
	for range layers {
		config := &tls.Config{Certificates: certs, InsecureSkipVerify: true}
		client = tls.Client(http2.Gather(client), config)
		server = tls.Server(server, config)
	}
	return client, server
}

// TLS writes by itself, long after the last write of the connection's: an answer to
// a change of keys. The time for that write is not for this one.
func TestWriteDeadlineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		p := newPeerOver(t, ours, theirs, http2.Options{Secure: true})
		p.settle()
		time.Sleep(time.Minute)
		ping := append([]byte{0, 0, 8, byte(xhttp2.FramePing), 0, 0, 0, 0, 0}, "12345678"...)
		if _, err := ours.Write(ping); err != nil {
			t.Error(err)
		}
	})
}
