package connection

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

// plainConn hides that a connection is a socket of the system.
type plainConn struct{ net.Conn }

// kinds are the ways in which a connection is probed.
var kinds = []string{"tcp", "tls", "custom", "tls over custom"}

// pair is both ends of a connection on loopback that stands and idles: ours as
// the pool has it, theirs below TLS and with it.
type pair struct {
	ours   *RealConnection
	tcp    *net.TCPConn
	theirs net.Conn // the TLS connection, or tcp
}

func newPair(t testing.TB, kind string, config *tls.Config) *pair {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := &route.Network{Protocols: []string{route.HTTP1}}
	trusting(n)
	if strings.HasSuffix(kind, "custom") {
		n.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return plainConn{c}, err
		}
	}
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	secure := strings.HasPrefix(kind, "tls")
	p := &pair{}
	accepted := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			p.tcp, p.theirs = c.(*net.TCPConn), c
			if secure {
				s := tls.Server(c, config)
				p.theirs, err = s, s.Handshake()
			}
		}
		accepted <- err
	}()
	scheme := "http"
	if secure {
		scheme = "https"
	}
	at := l.Addr().(*net.TCPAddr)
	r := &route.Route{
		Address:    route.Address{Scheme: scheme, Host: "127.0.0.1", Port: at.Port, Network: n},
		SocketHost: "127.0.0.1", SocketPort: at.Port,
	}
	d := &dialer{route: r, call: &call{}, listener: event.NopListener{}, pool: NewPool(PoolOptions{})}
	if p.ours, err = d.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.ours.closeSocket()
		p.tcp.Close()
	})
	return p
}

// arrived waits until something is there to be read on our socket, or its end.
func (p *pair) arrived(t testing.TB) {
	t.Helper()
	conn := p.ours.socket.Conn
	if c, ok := conn.(plainConn); ok {
		conn = c.Conn
	}
	raw := newSocket(conn).raw
	for deadline := time.Now().Add(10 * time.Second); raw.quiet(); {
		if time.Now().After(deadline) {
			t.Fatal("nothing arrived")
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func serverTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{testAuthority().issue("a.test")}}
}

// What happened to an idle connection decides whether it may be used again.
func TestHealth(t *testing.T) {
	for _, kind := range kinds {
		secure := strings.HasPrefix(kind, "tls")
		for name, tc := range map[string]struct {
			happen  func(*pair)
			tlsOnly bool
			healthy bool
		}{
			"nothing":          {nil, false, true},
			"stray bytes":      {func(p *pair) { io.WriteString(p.theirs, "HTTP/1.1 408 Request Timeout\r\n") }, false, false},
			"end":              {func(p *pair) { p.tcp.CloseWrite() }, false, false},
			"reset":            {func(p *pair) { p.tcp.SetLinger(0); p.tcp.Close() }, false, false},
			"end of TLS alone": {func(p *pair) { p.theirs.(*tls.Conn).CloseWrite() }, true, false},
			"bytes below TLS":  {func(p *pair) { io.WriteString(p.tcp, "HTTP/1.1 400 Bad Request\r\n\r\n") }, true, false},
			"half a record":    {func(p *pair) { p.tcp.Write([]byte{23, 3, 3}) }, true, true}, // may be a ticket that is still on its way
		} {
			if tc.tlsOnly && !secure {
				continue
			}
			t.Run(kind+", "+name, func(t *testing.T) {
				config := serverTLS()
				config.SessionTicketsDisabled = true
				p := newPair(t, kind, config)
				for range 2 { // looking at it changes nothing
					if !p.ours.healthy() {
						t.Fatal("a new connection is not healthy")
					}
				}
				if tc.happen != nil {
					tc.happen(p)
					p.arrived(t)
				}
				if got := p.ours.healthy(); got != tc.healthy {
					t.Errorf("healthy: %v", got)
				}
			})
		}
	}
}

// The tickets that a TLS 1.3 server sends with or after the handshake are no stray
// bytes, and the connection works after the probe that has read them.
func TestSessionTicketsAreHealthy(t *testing.T) {
	for _, kind := range []string{"tls", "tls over custom"} {
		for _, afterwards := range []bool{false, true} {
			config := serverTLS()
			if afterwards { // it has to wait for the client's certificate
				config.ClientAuth = tls.RequestClientCert
			}
			p := newPair(t, kind, config)
			if afterwards {
				p.arrived(t)
			}
			for range 3 {
				if !p.ours.healthy() {
					t.Fatalf("%s: not healthy with a ticket", kind)
				}
			}
			io.WriteString(p.theirs, "x")
			b := make([]byte, 1)
			if _, err := io.ReadFull(p.ours.through, b); err != nil || b[0] != 'x' {
				t.Errorf("%s: read %q, %v", kind, b, err)
			}
		}
	}
}

// A probe leaves the read deadline as it was, and is not misled by one that has
// passed.
func TestProbeAndDeadlines(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			config := serverTLS()
			config.SessionTicketsDisabled = true
			p := newPair(t, kind, config)
			p.ours.through.SetReadDeadline(time.Now().Add(-time.Second))
			if !p.ours.healthy() {
				t.Error("a deadline that has passed makes the connection unhealthy")
			}
			if _, err := p.ours.through.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("after the probe a Read gives %v", err)
			}
			p.ours.through.SetDeadline(time.Time{})
			if !p.ours.healthy() {
				t.Error("not healthy without a deadline")
			}
			io.WriteString(p.theirs, "x")
			if _, err := io.ReadFull(p.ours.through, make([]byte, 1)); err != nil {
				t.Errorf("after the probe a Read gives %v", err)
			}
		})
	}
}

func TestClosedConnectionIsNotHealthy(t *testing.T) {
	for _, kind := range kinds {
		p := newPair(t, kind, serverTLS())
		p.ours.closeSocket()
		if p.ours.healthy() {
			t.Errorf("%s: healthy", kind)
		}
	}
}

// A server closes every connection after its first response, without a word. The
// request after it does not meet the dead connection.
func TestDeadConnectionIsNotUsed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello from ")
			}
			c.Close()
			closed <- struct{}{}
		}
	}()
	defer l.Close()
	w := newWorld(t, PoolOptions{}, func(n *route.Network) { n.DialContext = nil })
	for i := range 200 {
		w.get("http://" + l.Addr().String() + "/")
		<-closed
		if s := w.pool.Stats(); s.Connected != uint64(i+1) {
			t.Fatalf("call %d: the pool has %v", i, s)
		}
	}
}

func BenchmarkHealthCheck(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			config := serverTLS()
			config.SessionTicketsDisabled = true
			p := newPair(b, kind, config)
			b.ReportAllocs()
			for b.Loop() {
				if !p.ours.healthy() {
					b.Fatal("not healthy")
				}
			}
		})
	}
}
