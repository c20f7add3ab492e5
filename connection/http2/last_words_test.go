package http2_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http2"
)

// corked is a socket that can hold back what is written.
type corked struct {
	*net.TCPConn

	mu   sync.Mutex // guards what follows
	on   bool
	held bytes.Buffer
}

func (c *corked) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.on {
		return c.held.Write(p)
	}
	return c.TCPConn.Write(p)
}

func (c *corked) cork() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = true
}

// pour writes what was held back, but for the last less bytes, by one write.
func (c *corked) pour(less int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = false
	c.SetWriteDeadline(time.Time{}) // crypto/tls leaves one behind close_notify
	c.TCPConn.Write(c.held.Bytes()[:c.held.Len()-less])
}

// newTLSPeer is newPeer over TLS over a socket.
func newTLSPeer(t *testing.T) (*peer, *corked) {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	below := &corked{TCPConn: theirs.(*net.TCPConn)}
	client := tls.Client(http2.Gather(nc), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	server := tls.Server(below, &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}})
	p := newPeerOver(t, client, server, http2.Options{Secure: true})
	p.settle()
	return p, below
}

// What came in one piece with the end of a TLS connection, or with less than a
// record behind it, is read before the end is.
func TestLastWordsOverTLS(t *testing.T) {
	tests := map[string]struct {
		then func(p *peer)
		less int // bytes of the last record that do not come
		end  func(below *corked)
	}{
		"close_notify": {then: func(p *peer) { p.nc.(*tls.Conn).CloseWrite() }},
		"FIN":          {end: func(below *corked) { below.CloseWrite() }},
		"a part of a record and FIN": {
			then: func(p *peer) { p.raw([]byte(large[:1000])) }, less: 500,
			end: func(below *corked) { below.CloseWrite() },
		},
		"a record's header and FIN": {
			then: func(p *peer) { p.raw([]byte(large[:1000])) }, less: 1000 + 17,
			end: func(below *corked) { below.CloseWrite() },
		},
		"no record": {end: func(below *corked) {
			below.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, below := newTLSPeer(t)
			s, id := p.get()
			below.cork()
			p.respond(id, false, ":status", "200")
			p.data(id, false, "last words")
			if tt.then != nil {
				tt.then(p)
			}
			below.pour(tt.less)
			if tt.end != nil {
				tt.end(below)
			}
			within(t, func() {
				got, err := io.ReadAll(head(t, s).Body)
				if string(got) != "last words" || err == nil {
					t.Errorf("%q, %v", got, err)
				}
			})
			awaitRetirement(t, p.client, "")
		})
	}
}

// A part of a record that does not go on keeps nobody from what came before it.
func TestPartOfARecord(t *testing.T) {
	p, below := newTLSPeer(t)
	s, id := p.get()
	below.cork()
	p.respond(id, false, ":status", "200")
	p.data(id, false, "first ")
	p.data(id, true, "second")
	below.pour(3)
	body := head(t, s).Body
	within(t, func() {
		if got := make([]byte, 6); read(t, body, got) != "first " {
			t.Errorf("%q", got)
		}
	})
	below.TCPConn.Write(below.held.Bytes()[below.held.Len()-3:])
	within(t, func() {
		if got, err := io.ReadAll(body); string(got) != "second" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func read(t *testing.T, from io.Reader, into []byte) string {
	n, err := io.ReadFull(from, into)
	if err != nil {
		t.Error(err)
	}
	return string(into[:n])
}
