package simnet

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
)

// listener implements net.Listener.
type listener struct {
	net  *Network
	addr netip.AddrPort

	gate    // guards all below; broadcast when they change
	closed  bool
	backlog []arrival // in the order of their dials
}

// arrival is a connection that may be accepted from an instant on.
type arrival struct {
	conn *Conn
	at   time.Time
}

// Listen opens a listener on an IP address and port: "192.0.2.1:80", "[2001:db8::1]:443". Port 0 picks a free one.
// "0.0.0.0:80" takes the dials to every IPv4 address that has no listener of its own, ":80" and "[::]:80" those of
// both families. Accept returns a *Conn. Closing the listener resets the connections that nobody accepted.
//
// Errors are *net.OpError: EADDRINUSE, net.ErrClosed after Network.Close, or a *net.AddrError.
func (n *Network) Listen(addr string) (net.Listener, error) {
	fail := func(err error) (net.Listener, error) {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: err}
	}
	if strings.HasPrefix(addr, ":") {
		addr = "[::]" + addr
	}
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fail(&net.AddrError{Err: "not an IP address with a port", Addr: addr})
	}
	ip, port := at.Addr().Unmap(), at.Port()

	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fail(net.ErrClosed)
	}
	if port == 0 {
		port = n.pickPort(ip)
	}
	at = netip.AddrPortFrom(ip, port)
	if n.listeners[at] != nil {
		return fail(os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	l := &listener{net: n, addr: at}
	n.listeners[at] = l
	return l, nil
}

// listenerFor finds who takes a dial to an address, or nil. The caller holds mu.
func (n *Network) listenerFor(to netip.AddrPort) *listener {
	if l := n.listeners[to]; l != nil {
		return l
	}
	if to.Addr().Is4() {
		if l := n.listeners[netip.AddrPortFrom(netip.IPv4Unspecified(), to.Port())]; l != nil {
			return l
		}
	}
	return n.listeners[netip.AddrPortFrom(netip.IPv6Unspecified(), to.Port())]
}

// Accept waits for the next connection; it returns a *Conn. It fails with net.ErrClosed once the listener is closed.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.next()
	if err != nil {
		return nil, err
	}
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.net.accepts[c.target]++
	return c, nil
}

func (l *listener) next() (*Conn, error) {
	l.Lock()
	defer l.Unlock()
	for {
		if l.closed {
			return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
		}
		first := -1
		for i, a := range l.backlog {
			if first < 0 || a.at.Before(l.backlog[first].at) {
				first = i
			}
		}
		if first < 0 {
			l.wait(time.Time{})
			continue
		}
		if a := l.backlog[first]; time.Now().Before(a.at) {
			l.wait(a.at)
			continue
		}
		c := l.backlog[first].conn
		l.backlog = append(l.backlog[:first], l.backlog[first+1:]...)
		return c, nil
	}
}

// push adds a connection to the backlog and reports whether the listener was still open.
func (l *listener) push(c *Conn, at time.Time) bool {
	l.Lock()
	defer l.Unlock()
	if l.closed {
		return false
	}
	l.backlog = append(l.backlog, arrival{c, at})
	l.broadcast()
	return true
}

// Close ends Accept, makes later dials fail with ECONNREFUSED and resets what is in the backlog.
func (l *listener) Close() error {
	l.net.mu.Lock()
	if l.net.listeners[l.addr] == l {
		delete(l.net.listeners, l.addr)
	}
	l.net.mu.Unlock()
	if !l.shut() {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	}
	return nil
}

// shut reports whether this call closed the listener.
func (l *listener) shut() bool {
	l.Lock()
	if l.closed {
		l.Unlock()
		return false
	}
	l.closed = true
	backlog := l.backlog
	l.backlog = nil
	l.broadcast()
	l.Unlock()
	for _, a := range backlog {
		a.conn.Reset()
	}
	return true
}

// Addr is a *net.TCPAddr.
func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.addr) }
