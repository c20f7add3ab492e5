package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// The proxies of the demo.
const (
	gateHost     = "gate.test"  // http, for those who know the password
	socksHost    = "socks.test" // SOCKS5
	demoUser     = "ada"
	demoPassword = "correct horse"
)

// sockets lets talk run for each connection to a port of loopback, on a goroutine
// that ends with the connection, until Close.
type sockets struct {
	listener net.Listener
	talks    sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	open   map[net.Conn]struct{}
	closed bool
}

func listen(talk func(c net.Conn)) (*sockets, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a proxy for the demo: %w", err)
	}
	s := &sockets{listener: l, open: map[net.Conn]struct{}{}}
	s.talks.Go(func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil || !s.add(c) {
				return
			}
			s.talks.Go(func() {
				defer s.remove(c)
				talk(c)
			})
		}
	})
	return s, nil
}

func (s *sockets) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
		return false
	}
	s.open[c] = struct{}{}
	return true
}

func (s *sockets) remove(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// Close ends all connections and waits for their goroutines.
func (s *sockets) Close() error {
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	s.talks.Wait()
	return nil
}

func (s *sockets) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// serveGate is the HTTP proxy: it opens tunnels and does nothing else.
func serveGate(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		req.Header["Authorization"] = req.Header["Proxy-Authorization"]
		user, password, _ := req.BasicAuth()
		switch {
		case req.Method != http.MethodConnect:
			io.WriteString(c, "HTTP/1.1 405 Method Not Allowed\r\nAllow: CONNECT\r\nContent-Length: 0\r\n\r\n")
		case user != demoUser || password != demoPassword:
			io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"the demo\"\r\nContent-Length: 0\r\n\r\n")
		default:
			lead(c, r, req.Host, "HTTP/1.1 200 Connection established\r\n\r\n")
			return
		}
	}
}

// serveSOCKS5 is the SOCKS proxy (RFC 1928), for names and without authentication.
func serveSOCKS5(c net.Conn) {
	r := bufio.NewReader(c)
	b := make([]byte, 256)
	read := func(n byte) bool {
		_, err := io.ReadFull(r, b[:n])
		return err == nil
	}
	if !read(2) || !read(b[1]) { // the methods that the client offers
		return
	}
	c.Write([]byte{5, 0})
	if !read(5) || b[3] != 3 { // connect to a name
		return
	}
	n := b[4]
	if !read(n) {
		return
	}
	host := string(b[:n])
	if !read(2) {
		return
	}
	port := int(b[0])<<8 | int(b[1])
	lead(c, r, net.JoinHostPort(host, strconv.Itoa(port)), "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
}

// lead connects to target's port on loopback, where all hosts of the demo are, says
// that the way is open and copies both ways.
func lead(c net.Conn, r io.Reader, target, ready string) {
	_, port, err := net.SplitHostPort(target)
	if err != nil {
		return
	}
	to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return
	}
	defer to.Close()
	io.WriteString(c, ready)
	var back sync.WaitGroup
	back.Go(func() { // ends with to, or with c
		io.Copy(c, to)
		c.Close()
	})
	io.Copy(to, r)
	to.Close()
	back.Wait()
}

// onChallenge is a Basic authenticator that does not speak before it is asked.
func onChallenge(user, password string) auth.Authenticator {
	basic := auth.Basic(user, password)
	return auth.AuthenticatorFunc(func(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
		if preemptive(resp) {
			return nil, nil
		}
		return basic.Authenticate(via, resp)
	})
}

// preemptive reports whether resp is the question, before a CONNECT, for credentials
// that no proxy has asked for.
func preemptive(resp *http.Response) bool {
	return slices.ContainsFunc(auth.Challenges(resp.Header, "Proxy-Authenticate"), func(c auth.Challenge) bool {
		return c.Is(auth.PreemptiveScheme)
	})
}
