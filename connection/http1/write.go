package http1

import (
	"errors"
	"io"
	"os"
	"strconv"
	"time"
)

// maxPiece bounds what one write deadline covers where a write that was cut off
// cannot be resumed. It is the size of a TLS record.
const maxPiece = 16 << 10

// takeOut sees to it that there is a write buffer.
func (c *Conn) takeOut() {
	if c.out == nil {
		c.out = smallBuffers.Get().(*[bufferSize]byte)[:0]
	}
}

// growOut changes to the large write buffer, with what is in the small one.
func (c *Conn) growOut() {
	if cap(c.out) >= copySize {
		return
	}
	grown := largeBuffers.Get().(*[copySize]byte)[:0]
	grown = append(grown, c.out...)
	c.releaseOut()
	c.out = grown
}

func (c *Conn) releaseOut() {
	if c.out != nil {
		giveBack(c.out)
		c.out = nil
	}
}

func (c *Conn) free() int { return cap(c.out) - len(c.out) }

// putString buffers s and writes out what does not fit. Errors stay in writeErr.
func (c *Conn) putString(s string) {
	for c.writeErr == nil {
		n := copy(c.out[len(c.out):cap(c.out)], s)
		c.out = c.out[:len(c.out)+n]
		s = s[n:]
		if s == "" {
			return
		}
		c.flush()
	}
}

// putInt buffers a number in base 10 or 16.
func (c *Conn) putInt(n int64, base int) {
	const longest = 20
	if c.free() < longest {
		c.flush()
	}
	if c.writeErr == nil {
		c.out = strconv.AppendInt(c.out, n, base)
	}
}

// putBytes buffers p; what is large goes straight to the connection.
func (c *Conn) putBytes(p []byte) {
	for c.writeErr == nil && len(p) > c.free() {
		if len(c.out) == 0 {
			c.writeOut(p)
			return
		}
		n := c.free()
		c.out = append(c.out, p[:n]...)
		p = p[n:]
		c.flush()
	}
	if c.writeErr == nil {
		c.out = append(c.out, p...)
	}
}

// Flush writes what is buffered.
func (c *Conn) Flush() error {
	c.flush()
	return c.writeErr
}

func (c *Conn) flush() {
	if c.writeErr == nil && len(c.out) > 0 {
		c.writeOut(c.out)
		c.out = c.out[:0]
	}
}

// writeOut writes p to the connection under the write timeout.
func (c *Conn) writeOut(p []byte) {
	switch {
	case c.x.WriteTimeout <= 0:
		c.writeErr = c.writeWithin(p, 0)
	case c.resumable:
		c.writeErr = c.writeWatching(p)
	default:
		for len(p) > 0 && c.writeErr == nil {
			piece := p[:min(len(p), maxPiece)]
			c.writeErr = c.writeWithin(piece, c.x.WriteTimeout)
			p = p[len(piece):]
		}
		if c.secure {
			c.disarmWrite()
		}
	}
	if c.writeErr != nil && c.wasInterrupted() {
		c.writeErr = errInterrupted
	}
}

func (c *Conn) writeWithin(p []byte, timeout time.Duration) error {
	if err := c.armWrite(timeout, slack(timeout)); err != nil {
		return err
	}
	_, err := c.writeOnce(p)
	return err
}

// writeWatching lets a peer take its time over a large write, as long as it takes
// something within each write timeout: it looks at the progress many times a
// timeout. Not knowing when between two looks something went costs up to
// five looks in all, a twelfth of the timeout.
func (c *Conn) writeWatching(p []byte) error {
	timeout := c.x.WriteTimeout
	look := min(timeout/64, time.Second/4)
	var progress time.Time // when something went last; not asked for before it matters
	for {
		if err := c.armWrite(look, look); err != nil {
			return err
		}
		n, err := c.writeOnce(p)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		p = p[n:]
		switch now := time.Now(); {
		case n > 0:
			progress = now
		case progress.IsZero():
			progress = now.Add(-look) // the deadline was no nearer when it was set
		case now.Sub(progress) >= timeout:
			return err
		}
	}
}

// writeOnce keeps account of what Written reports.
func (c *Conn) writeOnce(p []byte) (int, error) {
	if c.secure {
		c.written.Store(true)
	}
	n, err := c.nc.Write(p)
	if n > 0 {
		c.written.Store(true)
	}
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}
