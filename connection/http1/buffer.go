package http1

import (
	"io"
	"sync"
)

const (
	// bufferSize holds the head and the start of the body of most messages.
	bufferSize = 8 << 10
	// copySize is what a streamed body is moved by, on either side.
	copySize = 32 << 10
)

// The pools hold arrays of a fixed size, so that putting one back costs nothing
// and a buffer grown for a huge head is never kept.
var (
	smallBuffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}
)

// giveBack returns an array taken from one of the pools, by its size.
func giveBack(b []byte) {
	switch cap(b) {
	case bufferSize:
		smallBuffers.Put((*[bufferSize]byte)(b[:bufferSize]))
	case copySize:
		largeBuffers.Put((*[copySize]byte)(b[:copySize]))
	}
}

// readBuffer holds what was read from the connection and not yet consumed:
// b[r:w]. The zero value holds no memory.
type readBuffer struct {
	b    []byte
	r, w int
}

func (rb *readBuffer) buffered() int { return rb.w - rb.r }

// data is valid until the next fill.
func (rb *readBuffer) data() []byte { return rb.b[rb.r:rb.w] }

// take sees to it that there is memory to read into.
func (rb *readBuffer) take() {
	if rb.b == nil {
		rb.b = smallBuffers.Get().(*[bufferSize]byte)[:]
	}
}

func (rb *readBuffer) release() {
	if rb.b != nil {
		giveBack(rb.b)
	}
	*rb = readBuffer{}
}

// makeRoom sees to it that something can be read: it moves the unread bytes to
// the front or, when they fill the array, takes one twice the size. Callers
// bound what they leave unread, and thereby the growth.
func (rb *readBuffer) makeRoom() {
	switch {
	case rb.r == rb.w:
		rb.r, rb.w = 0, 0
	case rb.w < len(rb.b):
	case rb.r > 0:
		rb.w = copy(rb.b, rb.data())
		rb.r = 0
	default:
		grown := make([]byte, 2*len(rb.b))
		copy(grown, rb.b)
		giveBack(rb.b)
		rb.b = grown
	}
}

// fill reads once more from the connection into the buffer. With a nil error
// there is at least one byte more than before.
func (c *Conn) fill() error {
	c.in.take()
	c.in.makeRoom()
	n, err := c.readOnce(c.in.b[c.in.w:])
	c.in.w += n
	return err
}

// readOnce reads from the connection under the read timeout. It returns either
// bytes or an error; a connection repeats an error that came with bytes.
func (c *Conn) readOnce(p []byte) (int, error) {
	const patience = 100 // reads that return neither bytes nor an error
	c.armRead()
	for range patience {
		n, err := c.nc.Read(p)
		if n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}
