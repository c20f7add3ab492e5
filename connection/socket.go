package connection

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// lastWordsWait bounds what is written while a connection is closed: the peer may
// not be reading.
const lastWordsWait = 50 * time.Millisecond

// probeWait is how long a probe waits on a connection that is not a socket of
// the system, where a read that cannot wait does not exist.
const probeWait = 250 * time.Microsecond

// socket is the transport of a connection. It can be asked, without waiting,
// whether anything has arrived.
type socket struct {
	net.Conn
	raw *rawSocket // nil: not a socket of the system

	// probing makes Read return at once; set only while nobody else reads.
	probing bool
	one     [1]byte // what a probe reads into
	// readDeadline is what was set last; kept where raw is nil, because a probe
	// has to move it.
	readDeadline time.Time
	// closing bounds the writes that are left; crypto/tls would give its
	// close_notify 5 seconds.
	closing atomic.Bool
}

func newSocket(conn net.Conn) *socket {
	return &socket{Conn: conn, raw: newRawSocket(conn)}
}

// stream is what a codec reads and writes: the connection itself where probes
// need not know its deadline, so that the codec sees what it is.
func (s *socket) stream() net.Conn {
	if s.raw != nil {
		return s.Conn
	}
	return s
}

func (s *socket) Read(p []byte) (int, error) {
	if !s.probing {
		return s.Conn.Read(p)
	}
	if s.raw != nil {
		return s.raw.readNow(p)
	}
	before := s.readDeadline
	s.Conn.SetReadDeadline(time.Now().Add(probeWait))
	n, err := s.Conn.Read(p)
	s.Conn.SetReadDeadline(before)
	return n, err
}

func (s *socket) SetReadDeadline(t time.Time) error {
	s.readDeadline = t
	return s.Conn.SetReadDeadline(t)
}

// SetWriteDeadline obeys t, or lastWordsWait where that is sooner and applies.
func (s *socket) SetWriteDeadline(t time.Time) error {
	if soon := time.Now().Add(lastWordsWait); s.closing.Load() && t.After(soon) {
		t = soon
	}
	return s.Conn.SetWriteDeadline(t)
}

func (s *socket) SetDeadline(t time.Time) error {
	s.readDeadline = t
	return s.Conn.SetDeadline(t)
}

// ReadsFrom is where Read has its bytes from, as they are: see http2.Gather. HTTP/2
// probes nothing.
func (s *socket) ReadsFrom() net.Conn { return s.Conn }

// CloseWrite ends the stream to the peer, after a 101, where the connection can
// do that.
func (s *socket) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// quiet reports whether an idle connection is alive and nothing has arrived on
// it. through is the socket or the TLS connection over it, whose records (a
// session ticket, say) are no stray bytes.
func (s *socket) quiet(through net.Conn) bool {
	if s.raw != nil && through == net.Conn(s) {
		return s.raw.quiet()
	}
	s.probing = true
	n, err := through.Read(s.one[:])
	s.probing = false
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}
