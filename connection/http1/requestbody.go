package http1

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/catena-http/catena/internal/wire"
)

var errRequestClosed = errors.New("the request is complete or was broken off")

// Write sends a part of the request body, framed and buffered. What exceeds the
// declared size is refused with a *wire.RequestBodyError, and then nothing of p
// is sent. Other errors are the connection's.
func (c *Conn) Write(p []byte) (int, error) {
	switch {
	case c.request != requestOpen:
		return 0, errRequestClosed
	case len(p) == 0:
		return 0, c.writeErr
	case c.chunked:
		c.putChunk(p)
	case int64(len(p)) > c.remaining:
		return 0, c.tooLong()
	default:
		c.putBytes(p)
		c.remaining -= int64(len(p))
	}
	if c.writeErr != nil {
		return 0, c.writeErr
	}
	return len(p), nil
}

func (c *Conn) tooLong() error {
	return &wire.RequestBodyError{Err: errors.New("it is longer than the request declares")}
}

func (c *Conn) putChunk(p []byte) {
	c.putInt(int64(len(p)), 16)
	c.putString("\r\n")
	c.putBytes(p)
	c.putString("\r\n")
}

// ReadFrom sends the request body from r until io.EOF. A body of known size that
// fits into the buffer waits there for FinishRequest; of any other, each piece is
// written as it comes. An error of r, and a body longer than declared, is a
// *wire.RequestBodyError; other errors are the connection's.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	switch {
	case c.request != requestOpen:
		return 0, errRequestClosed
	case c.chunked:
		return c.readChunksFrom(r)
	}
	if sent, err, ok := c.readDirectly(r); ok {
		return sent, err
	}
	return c.readSizedFrom(r)
}

func (c *Conn) readSizedFrom(r io.Reader) (sent int64, err error) {
	small := c.remaining <= int64(c.free())
	if !small {
		c.growOut()
	}
	for c.writeErr == nil {
		if c.remaining == 0 {
			return sent, c.expectEnd(r)
		}
		if c.free() == 0 {
			c.flush()
		}
		space := c.out[len(c.out):cap(c.out)]
		n, err := readSome(r, space[:min(int64(len(space)), c.remaining)])
		c.out = c.out[:len(c.out)+n]
		c.remaining -= int64(n)
		sent += int64(n)
		if err == io.EOF {
			return sent, nil // FinishRequest tells whether it was enough
		}
		if err != nil {
			return sent, &wire.RequestBodyError{Err: err}
		}
		if !small {
			c.flush()
		}
	}
	return sent, c.writeErr
}

// expectEnd makes sure that r has no more than was declared.
func (c *Conn) expectEnd(r io.Reader) error {
	n, err := readSome(r, c.probe[:])
	switch {
	case n > 0:
		return c.tooLong()
	case err != io.EOF:
		return &wire.RequestBodyError{Err: err}
	}
	return nil
}

// readChunksFrom makes a chunk of each read. It reads into the buffer behind
// the room that the chunk's own line needs.
func (c *Conn) readChunksFrom(r io.Reader) (sent int64, err error) {
	const (
		line  = len("7fff\r\n") // the longest: a chunk is smaller than copySize
		spare = len("\r\n")
	)
	c.growOut()
	for c.writeErr == nil {
		if c.free() < copySize/2 {
			c.flush()
		}
		start := len(c.out)
		n, err := readSome(r, c.out[start+line:cap(c.out)-spare])
		if n > 0 {
			data := c.out[start+line : start+line+n]
			c.putInt(int64(n), 16)
			c.out = append(c.out, '\r', '\n')
			c.out = append(c.out, data...) // moves it left by the digits not needed
			c.out = append(c.out, '\r', '\n')
			sent += int64(n)
		}
		if err == io.EOF {
			return sent, nil
		}
		if err != nil {
			return sent, &wire.RequestBodyError{Err: err}
		}
		c.flush()
	}
	return sent, c.writeErr
}

// readSome reads at least one byte or returns an error.
func readSome(r io.Reader, p []byte) (int, error) {
	const patience = 100
	for range patience {
		n, err := r.Read(p)
		if n < 0 || n > len(p) {
			return 0, fmt.Errorf("its Read returned a count of %d for %d bytes", n, len(p))
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// FinishRequest ends the request and flushes it: of a chunked body the last
// chunk and the trailer section are written (RFC 9112 7.1.2), fields that may
// not stand there are left out. A body shorter than declared is a
// *wire.RequestBodyError and ends the request as AbortRequest does.
func (c *Conn) FinishRequest(trailer http.Header) error {
	if c.request != requestOpen {
		return errRequestClosed
	}
	if c.remaining > 0 {
		c.AbortRequest()
		return &wire.RequestBodyError{Err: fmt.Errorf("it is %d bytes shorter than the request declares", c.remaining)}
	}
	if c.chunked {
		fields := sortedFields(nil, trailer)
		if err := checkFields(fields); err != nil {
			c.AbortRequest()
			return &wire.RequestBodyError{Err: fmt.Errorf("trailer: %w", err)}
		}
		c.putString("0\r\n")
		c.putFields(fields)
		c.putString("\r\n")
	}
	if err := c.Flush(); err != nil {
		return err
	}
	c.releaseOut()
	c.endRequest(requestFinished)
	return nil
}

// AbortRequest ends the request without its end: what is buffered is dropped and
// no last chunk is written, so that the peer cannot take it for complete. The
// response can still be read. After FinishRequest it does nothing.
func (c *Conn) AbortRequest() {
	c.releaseOut()
	c.endRequest(requestAborted)
}
