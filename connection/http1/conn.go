package http1

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catena-http/catena/internal/wire"
)

// Bounds of a response head where the exchange gives none.
const (
	defaultMaxHeaderBytes  = 256 << 10
	defaultMaxHeaderFields = 1000
)

// requestState is how far the request of the exchange has come. It only grows.
type requestState uint8

const (
	requestIdle     requestState = iota // nothing accepted yet
	requestOpen                         // the head is written or buffered, the body may follow
	requestFinished                     // complete and flushed
	requestAborted                      // broken off: the peer never sees its end
)

// Conn is the client side of one HTTP/1.1 connection. It carries one exchange
// at a time, from Begin to End; between them an idle Conn holds no buffer. It
// does not own the net.Conn: closing it is the business of whoever dialed it.
type Conn struct {
	nc net.Conn
	// secure: the connection is TLS, where a failed write may have reached the
	// peer although it says that it wrote nothing.
	secure bool
	// resumable: a write that met its deadline tells exactly how much the peer
	// took and may go on after it (the kernel's sockets).
	resumable bool

	x wire.Exchange

	// The request's side. What the response's side reads of it is set before
	// the first byte can have been answered.
	out         []byte // buffered, not yet written; its array is pooled
	writeErr    error  // the first failed write; nothing is written after it
	remaining   int64  // bytes the request body still lacks
	chunked     bool   // of the request
	head        bool   // the method is HEAD
	tunnel      bool   // the method is CONNECT, so a 2xx ends HTTP on the connection
	wantUpgrade bool   // the request asks for a protocol, so a 101 answers it
	closeAsked  bool   // the request says Connection: close
	probe       [1]byte

	// The response's side.
	in        readBuffer
	body      *body // unfinished, or nil
	complete  bool  // the final response has been read to its end
	spoiled   bool  // no other exchange may follow, whatever comes
	switched  bool  // a 101 was read, or the answer that opens a tunnel
	keepAlive time.Duration

	written atomic.Bool

	// mu makes the two sides and InterruptWrite agree on the deadlines. Only
	// calls that cannot wait (Set...Deadline) are made under it.
	mu          sync.Mutex
	request     requestState
	interrupted bool // InterruptWrite was called
	awaited     bool // the response was waited for in this exchange, perhaps still is
	readFixed   bool // one deadline bounds several reads: they do not move it
	headBegun   bool // some of the head that is read is there
	readLimit   deadline
	writeLimit  deadline
}

// NewConn returns the codec of a connection on which nothing has been sent yet:
// TCP, *tls.Conn or one in memory. secure says that it is TLS, see
// [Conn.Written].
func NewConn(nc net.Conn, secure bool) *Conn {
	c := &Conn{nc: nc, secure: secure}
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		c.resumable = !secure
	}
	return c
}

// Begin starts an exchange on its terms. Header bounds that are not positive
// mean the defaults: 256 KiB and 1000 fields. The deadlines
// on the connection are ours from NewConn on: whoever moves one between exchanges
// puts it back.
func (c *Conn) Begin(x wire.Exchange) {
	if x.MaxHeaderBytes <= 0 {
		x.MaxHeaderBytes = defaultMaxHeaderBytes
	}
	if x.MaxHeaderFields <= 0 {
		x.MaxHeaderFields = defaultMaxHeaderFields
	}
	c.x = x
	c.writeErr = nil
	c.remaining, c.chunked = 0, false
	c.head, c.tunnel, c.wantUpgrade, c.closeAsked = false, false, false, false
	c.complete = false
	c.keepAlive = 0
	c.written.Store(false)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.request = requestIdle
	c.interrupted = false
	c.awaited, c.readFixed, c.headBegun = false, false, false
}

// End ends the exchange, however far it came, and gives the buffers back. A body
// that is still open fails from now on. What Reusable, Written and KeepAlive say
// stays until the next Begin. An idle connection may be left with a
// deadline that passes: the next exchange moves it when it is due.
func (c *Conn) End() {
	if c.body != nil {
		c.body.fail(errBodyAbandoned)
	}
	if !c.Reusable() {
		c.spoiled = true
	}
	c.in.release()
	c.releaseOut()
}

// Written reports whether the peer may have seen anything of this exchange's
// request. In cleartext a write must have returned n > 0; over TLS it is enough
// that one was attempted, because a record may be on its way although the write
// failed.
func (c *Conn) Written() bool { return c.written.Load() }

// Reusable reports whether another exchange may follow: this one is complete on
// both sides, neither side asked for close, nothing was ambiguous and no byte
// follows the response. An exchange of which nothing was sent leaves the
// connection as it was.
func (c *Conn) Reusable() bool {
	if c.spoiled || c.switched || c.in.buffered() > 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.request {
	case requestIdle:
		return !c.Written()
	case requestFinished:
		return c.complete && !c.closeAsked
	default:
		return false
	}
}

// KeepAlive returns how long the server means to keep the connection when it is
// idle: the timeout parameter of the final response's Keep-Alive field, in whole
// seconds. False means that it did not say.
func (c *Conn) KeepAlive() (time.Duration, bool) {
	return c.keepAlive, c.keepAlive > 0
}

// responseDone marks the end of the final response; its body lets go of c.
func (c *Conn) responseDone() {
	c.body = nil
	c.complete = true
}
