package connection

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/linked"
	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// RealConnection is a socket that speaks HTTP: one exchange at a time in
// HTTP/1.1, many in HTTP/2. Calls own it together: an HTTP/1.1 connection belongs
// to the call that took it, an idle one to the pool. An engine part without a
// promise to users, who see it as an event.Connection.
type RealConnection struct {
	// Immutable after connecting.
	id       uint64
	route    *route.Route
	socket   *socket
	through  net.Conn // the socket, or the TLS connection over it
	state    *tls.ConnectionState
	protocol string
	http1    *http1.Conn // exactly one of these two is set
	http2    *http2.Conn
	pool     *Pool
	observer observer

	// closed is set by whoever closes the socket.
	closed atomic.Bool
	// completed counts the exchanges that came to a good end.
	completed atomic.Int64

	// Guarded by pool.mu.
	address        route.Address // the pool's key: of the route, or of the last call through a plain proxy
	home           *addressPool  // the pool's part for address; nil until the pool knows it
	pooled         bool          // the pool knows it
	holders        int           // calls that hold it
	noNewExchanges bool          // one way
	why            event.Reason  // of noNewExchanges
	refused        int           // streams the server refused
	expires        time.Time     // while idle: when it is to be closed
	idleFor        time.Duration // how long the server lets it idle; 0: it did not say
	idle           linked.Node[RealConnection]
}

var lastConnectionID atomic.Uint64

var _ event.Connection = (*RealConnection)(nil)

// ID is unique among the connections of the process.
func (c *RealConnection) ID() uint64 { return c.id }

// LocalAddr is this side of the socket.
func (c *RealConnection) LocalAddr() net.Addr { return c.socket.LocalAddr() }

// RemoteAddr is the peer of the socket, the origin or a proxy.
func (c *RealConnection) RemoteAddr() net.Addr { return c.socket.RemoteAddr() }

// Proxy is the proxy on the way, without its password.
func (c *RealConnection) Proxy() proxy.Proxy { return c.route.Shown }

// Protocol is "http/1.1", "h2" or "h2c".
func (c *RealConnection) Protocol() string { return c.protocol }

// TLS is the state of the handshake with the origin; nil where that is spoken to in
// cleartext, even if an HTTPS proxy is on the way.
func (c *RealConnection) TLS() *tls.ConnectionState { return c.state }

// Route is the way the connection took. Read-only.
func (c *RealConnection) Route() *route.Route { return c.route }

// NetConn is the connection's own stream, for hooks that want to see it; nobody
// else may read, write or close it.
func (c *RealConnection) NetConn() net.Conn { return c.through }

// multiplexed reports whether the connection carries many exchanges at a time.
func (c *RealConnection) multiplexed() bool { return c.http2 != nil }

// reused reports whether the connection has carried an exchange to its end.
func (c *RealConnection) reused() bool { return c.completed.Load() > 0 }

// healthy reports, without waiting, whether an exchange may be tried. The caller
// holds the connection.
func (c *RealConnection) healthy() bool {
	if c.closed.Load() {
		return false
	}
	if c.http2 != nil {
		return c.http2.Healthy()
	}
	return c.socket.quiet(c.through)
}

// newCodec begins an exchange. On HTTP/2 the caller has reserved a stream.
func (c *RealConnection) newCodec(x wire.Exchange) Codec {
	if c.http2 != nil {
		return c.http2.NewStream(x)
	}
	c.http1.Begin(x)
	return c.http1
}

// Interrupt makes the exchange on an HTTP/1.1 connection fail, by closing its
// socket (lifetime.Hook).
func (c *RealConnection) Interrupt() { c.closeSocket() }

// streamHook interrupts a stream of an HTTP/2 connection, and only that.
type streamHook http2.Stream

func (s *streamHook) Interrupt() { (*http2.Stream)(s).Cancel() }

func (c *RealConnection) closeSocket() {
	if c.closed.CompareAndSwap(false, true) {
		c.socket.Conn.Close()
	}
}

// retire lets the connection take no new exchange; it is closed when nobody holds
// it any more.
func (c *RealConnection) retire(why event.Reason) {
	closeIt, grants := c.pool.retire(c, why)
	deliver(grants)
	if closeIt {
		defer c.close(why)
	}
	c.observer.noNewExchanges(c, why)
}

// close ends the connection; its last event. Not with pool.mu held.
func (c *RealConnection) close(why event.Reason) {
	switch {
	case c.http2 != nil:
		c.closed.Store(true)
		c.http2.Close()
	case c.through != net.Conn(c.socket) && c.closed.CompareAndSwap(false, true):
		// The peer is told by close_notify that nothing was cut off.
		c.socket.closing.Store(true)
		c.through.Close()
	default:
		c.closeSocket()
	}
	c.observer.closed(c, why)
}
