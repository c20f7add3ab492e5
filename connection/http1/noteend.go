package http1

import (
	"io"
	"net"
	"sync/atomic"
)

// NoteEnd wraps the connection below a TLS client, tls.Client(NoteEnd(raw), cfg),
// so that the codec can tell whether the server ended the TLS connection or the
// connection below was cut. crypto/tls reports both as io.EOF when the cut falls
// between two records, but a body that ends with the connection is complete only
// after the former, the close_notify alert (RFC 9112 9.8). Without the wrapper
// such a cut goes unnoticed.
//
// The result has a method NetConn that returns nc.
func NoteEnd(nc net.Conn) net.Conn { return &endNoter{Conn: nc} }

// endNoter remembers that reading came to the end of the connection. After a
// close_notify crypto/tls reads no further, so it never learns of it then.
type endNoter struct {
	net.Conn
	ended atomic.Bool
}

func (e *endNoter) Read(p []byte) (int, error) {
	n, err := e.Conn.Read(p)
	if err == io.EOF {
		e.ended.Store(true)
	}
	return n, err
}

func (e *endNoter) NetConn() net.Conn { return e.Conn }

// cutBelowTLS reports whether an io.EOF of the connection came from below TLS.
func (c *Conn) cutBelowTLS() bool {
	secure, ok := c.nc.(interface{ NetConn() net.Conn })
	if !ok {
		return false
	}
	below, ok := secure.NetConn().(*endNoter)
	return ok && below.ended.Load()
}
