package simnet

import (
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// A Conn is one end of a connection. It is a net.Conn with the half-closing methods of *net.TCPConn and with methods
// that break it, see faults in the package comment. All methods are safe for concurrent use. Concurrent Writes are not
// mixed. A deadline that has passed fails Read also if bytes are there.
type Conn struct {
	net    *Network
	target netip.AddrPort // what was dialed
	server bool
	serial uint64 // the same at both ends
	local  net.Addr
	remote net.Addr
	peer   *Conn
	gate   *gate // the connection's, shared by both ends; guards all below and the two halves
	out    *half
	in     *half

	closed        bool
	readShut      bool
	writeShut     bool
	writing       bool // a Write is under way
	readDeadline  time.Time
	writeDeadline time.Time
}

var _ net.Conn = (*Conn)(nil)

func newConns(n *Network, a attempt, from netip.AddrPort) (client, server *Conn) {
	near, far := net.TCPAddrFromAddrPort(from), net.TCPAddrFromAddrPort(a.to)
	g := &gate{}
	client = &Conn{net: n, target: a.to, local: near, remote: far, gate: g, out: a.up, in: a.down}
	server = &Conn{net: n, target: a.to, local: far, remote: near, gate: g, out: a.down, in: a.up, server: true}
	client.peer, server.peer = server, client
	now := time.Now()
	a.up.send(nil, now) // cuts that are due at once
	a.down.send(nil, now)
	return client, server
}

// Read reads what has arrived. It returns io.EOF after the peer's end of stream or an own CloseRead. Other errors are
// *net.OpError around os.ErrDeadlineExceeded, ECONNRESET or net.ErrClosed.
func (c *Conn) Read(b []byte) (int, error) {
	c.gate.Lock()
	defer c.gate.Unlock()
	for {
		now := time.Now()
		switch {
		case c.closed:
			return 0, c.fail("read", net.ErrClosed)
		case expired(c.readDeadline, now):
			return 0, c.fail("read", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return 0, nil
		case c.in.readable(now):
			n := c.in.take(b, now)
			c.gate.broadcast() // the window opened
			return n, nil
		case c.readShut, c.in.visible(c.in.finAt, now):
			return 0, io.EOF
		case c.in.visible(c.in.rstAt, now):
			return 0, c.fail("read", os.NewSyscallError("read", syscall.ECONNRESET))
		}
		c.gate.wait(earliest(c.readDeadline, c.in.next()))
	}
}

// Write sends b, waiting for room in the window. Errors are *net.OpError around os.ErrDeadlineExceeded, ECONNRESET,
// EPIPE or net.ErrClosed; the count says how much was sent before.
func (c *Conn) Write(b []byte) (int, error) {
	c.gate.Lock()
	defer c.gate.Unlock()
	n, mine := 0, false
	defer func() {
		if mine {
			c.writing = false
			c.gate.broadcast()
		}
	}()
	for {
		now := time.Now()
		if err := c.writeError(now); err != nil {
			return n, c.fail("write", err)
		}
		if !c.writing {
			c.writing, mine = true, true
		}
		if mine {
			if k := min(c.out.room(), len(b)-n); k > 0 {
				c.out.send(b[n:n+k], now)
				n += k
				c.gate.broadcast()
			}
			if n == len(b) {
				return n, nil
			}
			if c.out.room() > 0 { // what was sent is thrown away
				continue
			}
		}
		c.gate.wait(earliest(c.writeDeadline, c.in.pending(c.in.rstAt)))
	}
}

// writeError says why nothing can be written now, if so.
func (c *Conn) writeError(now time.Time) error {
	switch {
	case c.closed:
		return net.ErrClosed
	case expired(c.writeDeadline, now):
		return os.ErrDeadlineExceeded
	case c.writeShut:
		return os.NewSyscallError("write", syscall.EPIPE)
	case c.in.visible(c.in.rstAt, now):
		if c.in.visible(c.in.finAt, now) {
			return os.NewSyscallError("write", syscall.EPIPE)
		}
		return os.NewSyscallError("write", syscall.ECONNRESET)
	}
	return nil
}

// Close ends the connection in both directions. The peer reads what was sent and then io.EOF, or ECONNRESET if bytes
// that arrived here were not read. Reads and writes that wait fail with net.ErrClosed, and so does a second Close.
func (c *Conn) Close() error {
	return c.end(func(now time.Time) {
		if c.in.readable(now) {
			c.out.reset(now)
		} else {
			c.out.finish(now)
		}
	})
}

// Reset closes the connection like Close after SetLinger(0): the peer gets ECONNRESET, after the bytes on their way.
func (c *Conn) Reset() error {
	return c.end(c.out.reset)
}

// end closes this end with what it sends last.
func (c *Conn) end(last func(now time.Time)) error {
	c.gate.Lock()
	if c.closed {
		c.gate.Unlock()
		return c.fail("close", net.ErrClosed)
	}
	c.closed = true
	now := time.Now()
	last(now)
	c.in.leaveReceiver(now)
	c.gate.broadcast()
	c.gate.Unlock()
	c.net.forget(c)
	return nil
}

// shut closes this end without a word to the peer.
func (c *Conn) shut() {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.closed = true
	c.gate.broadcast()
}

// CloseWrite sends the end of the stream; reading goes on. Later Writes fail with EPIPE.
func (c *Conn) CloseWrite() error {
	return c.change("close", func(now time.Time) {
		c.writeShut = true
		c.out.finish(now)
	})
}

// CloseRead makes Read return io.EOF. What the peer sends is taken and thrown away.
func (c *Conn) CloseRead() error {
	return c.change("close", func(time.Time) {
		c.readShut = true
		c.in.shutReceiver()
	})
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.change("set", func(time.Time) { c.readDeadline, c.writeDeadline = t, t })
}

// SetReadDeadline bounds Reads, waiting ones included; the zero time means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.change("set", func(time.Time) { c.readDeadline = t })
}

// SetWriteDeadline bounds Writes, waiting ones included; the zero time means no deadline.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.change("set", func(time.Time) { c.writeDeadline = t })
}

// LocalAddr is a *net.TCPAddr: of the server's end, the address that was dialed.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// change does something to an open end and wakes those who wait.
func (c *Conn) change(op string, do func(now time.Time)) error {
	c.gate.Lock()
	defer c.gate.Unlock()
	if c.closed {
		return c.fail(op, net.ErrClosed)
	}
	do(time.Now())
	c.gate.broadcast()
	return nil
}

func (c *Conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

func expired(deadline, now time.Time) bool {
	return !deadline.IsZero() && !now.Before(deadline)
}
