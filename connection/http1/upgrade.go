package http1

import (
	"io"
	"net"
	"time"
)

// Upgrade takes the connection out of HTTP after a 101 (RFC 9110 7.8) or a 2xx to
// CONNECT (9.3.6) and returns it raw: what the server has sent after the head
// comes first, deadlines are cleared, and so is every bound of the exchange. The
// result is a net.Conn with the connection's addresses and deadlines, and has
// CloseWrite where the connection has it. Reading and writing may go on at the
// same time. It is called once, before End; the Conn is never reusable.
func (c *Conn) Upgrade() io.ReadWriteCloser {
	c.switched = true
	c.nc.SetDeadline(time.Time{})
	raw := &upgraded{Conn: c.nc}
	if c.in.buffered() > 0 {
		raw.early = append(raw.early, c.in.data()...)
	}
	c.in.release()
	if half, ok := c.nc.(halfCloser); ok {
		return &upgradedHalf{upgraded: raw, halfCloser: half}
	}
	return raw
}

// Early is how many bytes that came after the head which ended HTTP were read with
// it. It is for the time before Upgrade.
func (c *Conn) Early() int { return c.in.buffered() }

type halfCloser interface{ CloseWrite() error }

type upgraded struct {
	net.Conn
	early []byte // read before the upgrade; the reader's
}

func (u *upgraded) Read(p []byte) (int, error) {
	if len(u.early) == 0 {
		return u.Conn.Read(p)
	}
	n := copy(p, u.early)
	u.early = u.early[n:]
	return n, nil
}

type upgradedHalf struct {
	*upgraded
	halfCloser
}
