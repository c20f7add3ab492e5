package catena_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena/proxy"
)

// faultyPeer is a server that is told, byte by byte, what to send. It numbers its
// connections from 1 and keeps every request whose head it read.
type faultyPeer struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	requests []seenRequest
	conns    []net.Conn
}

// seenRequest is a request as it came over the wire.
type seenRequest struct {
	conn int // the connection's number
	*http.Request
	body string
	err  error // of reading the body
}

// startFaultyPeer serves each connection that l accepts with serve, on a goroutine
// of its own, and closes it afterwards. Everything ends with the test.
func startFaultyPeer(t testing.TB, l net.Listener, serve func(c *peerConn)) *faultyPeer {
	p := &faultyPeer{listener: l}
	p.running.Add(1)
	go func() { // ends with the listener
		defer p.running.Done()
		for n := 1; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns = append(p.conns, conn)
			p.mu.Unlock()
			p.running.Add(1)
			go func() { // ends with serve
				defer p.running.Done()
				defer conn.Close()
				serve(&peerConn{Conn: conn, r: bufio.NewReader(conn), peer: p, n: n})
			}()
		}
	}()
	t.Cleanup(p.stop)
	return p
}

// stop ends all connections and waits for their goroutines.
func (p *faultyPeer) stop() {
	p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// seen is the requests so far.
func (p *faultyPeer) seen() []seenRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]seenRequest(nil), p.requests...)
}

// accepted is the number of connections so far.
func (p *faultyPeer) accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *faultyPeer) url(path string) string { return "http://" + p.listener.Addr().String() + path }

// peerConn is one connection of a faultyPeer.
type peerConn struct {
	net.Conn
	r    *bufio.Reader
	peer *faultyPeer
	n    int
}

// readHead reads the head of the next request; nil if there is none.
func (c *peerConn) readHead() *http.Request {
	req, err := http.ReadRequest(c.r)
	if err != nil {
		return nil
	}
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	c.peer.requests = append(c.peer.requests, seenRequest{conn: c.n, Request: req})
	return req
}

// readRequest reads the next request to its end. It reports whether there was
// one.
func (c *peerConn) readRequest() bool {
	req := c.readHead()
	if req == nil {
		return false
	}
	c.peer.mu.Lock()
	i := len(c.peer.requests) - 1
	c.peer.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	c.peer.requests[i].body, c.peer.requests[i].err = string(body), err
	return err == nil
}

// readSome reads n bytes of a request.
func (c *peerConn) readSome(n int) { io.ReadFull(c.r, make([]byte, n)) }

// send writes s, and anything goes wrong silently: the client may be gone.
func (c *peerConn) send(s string) { io.WriteString(c.Conn, s) }

// drip sends s by single bytes, one each time d passes.
func (c *peerConn) drip(s string, d time.Duration) {
	for i := range len(s) {
		if _, err := io.WriteString(c.Conn, s[i:i+1]); err != nil {
			return
		}
		time.Sleep(d)
	}
}

// reset cuts the connection by RST.
func (c *peerConn) reset() {
	switch conn := c.Conn.(type) {
	case *net.TCPConn:
		conn.SetLinger(0)
		conn.Close()
	case interface{ Reset() error }:
		conn.Reset()
	}
}

func (c *peerConn) closeWrite() { c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// untilClosed says nothing until the client closes the connection.
func (c *peerConn) untilClosed() { io.Copy(io.Discard, c.r) }

// rawAnswer is a complete response with a body of known length.
func rawAnswer(status, body string, fields ...string) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 " + status + "\r\n")
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	b.WriteString("Content-Length: " + decimal(len(body)) + "\r\n\r\n" + body)
	return b.String()
}

// rawOK answers every request with 200 "ok".
func rawOK(c *peerConn) {
	for c.readRequest() {
		c.send(rawAnswer("200 OK", "ok"))
	}
}

// listenLoopback listens on a free port of ip, an address of the loopback net.
func listenLoopback(t testing.TB, ip string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// listenPair listens on the same port of two addresses.
func listenPair(t testing.TB, a, b string) (net.Listener, net.Listener) {
	t.Helper()
	for range 20 {
		first := listenLoopback(t, a)
		_, port, _ := net.SplitHostPort(first.Addr().String())
		second, err := net.Listen("tcp", net.JoinHostPort(b, port))
		if err == nil {
			return first, second
		}
		first.Close()
	}
	t.Fatal(errors.New("no port is free on both addresses"))
	return nil, nil
}

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

// toldSelector lists proxies and keeps which of them failed.
type toldSelector struct {
	proxies []proxy.Proxy
	failed  []proxy.Proxy
}

func (s *toldSelector) Select(context.Context, *url.URL) ([]proxy.Proxy, error) {
	return s.proxies, nil
}

func (s *toldSelector) ConnectFailed(_ *url.URL, p proxy.Proxy, _ error) {
	s.failed = append(s.failed, p)
}
