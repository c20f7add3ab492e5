package http2

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// forceClose is how long a TLS close_notify may take before the socket below is
// closed.
const forceClose = 250 * time.Millisecond

// lastWords is how long what the server sent is read after a write has failed.
const lastWords = time.Second

// A violationError is the server's breach of HTTP/2, to which the connection
// ends with a code.
type violationError struct {
	wire.ProtocolError
	code xhttp2.ErrCode
}

// Unwrap shows the ProtocolError to errors.As.
func (e *violationError) Unwrap() error { return &e.ProtocolError }

// violation makes the error of a connection that ends with code.
func (c *Conn) violation(code xhttp2.ErrCode, format string, args ...any) error {
	return &violationError{
		ProtocolError: wire.ProtocolError{Reason: fmt.Sprintf("the server broke HTTP/2: %v (%s)", code, fmt.Sprintf(format, args...))},
		code:          code,
	}
}

// violate ends the connection for a violation found outside of the reading
// goroutine, or in the midst of its work.
func (c *Conn) violate(code xhttp2.ErrCode, format string, args ...any) {
	c.breakDown(c.violation(code, format, args...))
}

// retire stops new streams, tells so and, where none is open, closes.
func (c *Conn) retire(why error) { c.retireAfter(why, func() {}) }

// retireAfter is retire that, between stopping new streams and telling so, ends
// those that the reason ends.
func (c *Conn) retireAfter(why error, end func()) {
	c.mu.Lock()
	first := c.why == nil
	if first {
		c.why = why
	}
	told := c.retired
	c.retired = nil
	c.settleLocked()
	idle := c.open == 0
	c.mu.Unlock()
	end()
	for _, f := range told {
		f(why)
	}
	if first && idle {
		c.fail(why)
		c.shut(xhttp2.ErrCodeNo)
	}
}

// fail records why the connection is broken or closed, ends every stream with
// that and retires the connection. The first reason stays; it is returned.
func (c *Conn) fail(err error) error {
	c.out.close() // before it is asked what was written
	c.mu.Lock()
	var streams []*Stream
	if c.failure == nil {
		c.failure = err
		if c.why == nil {
			c.why = err // in the same breath: no stream is opened that nobody ends
		}
		c.endSettingsLocked()
		c.health.stop()
		if t := c.in.lull.timer; t != nil {
			t.Stop()
		}
		for _, s := range c.streams {
			streams = append(streams, s)
		}
	}
	err = c.failure
	c.mu.Unlock()
	c.retire(err)
	for _, s := range streams {
		s.lost(err)
	}
	return err
}

// breakDown is fail for an error of the socket or of what came out of it. It
// puts the error in words and closes the socket. It returns the failure that
// the streams get.
func (c *Conn) breakDown(err error) error {
	code := xhttp2.ErrCodeNo
	if ve := (*violationError)(nil); errors.As(err, &ve) {
		code = ve.code
	} else {
		err = c.describe(err)
	}
	err = c.fail(err)
	c.shut(code)
	return err
}

// muted notes that the socket takes no more. What the server has sent before may
// still be there to be read, answers among it, so the streams go on until the
// reading goroutine has seen the end, which is near.
func (c *Conn) muted(err error) error {
	err = c.describe(err)
	c.mu.Lock()
	if c.writeErr == nil {
		c.writeErr = err
	}
	c.readUntil = time.Now().Add(lastWords)
	c.nc.SetReadDeadline(c.readUntil)
	c.mu.Unlock()
	c.retire(err)
	return err
}

// describe says in a sentence how the connection was lost.
func (c *Conn) describe(err error) error {
	c.mu.Lock()
	bye, writeErr := c.bye, c.writeErr
	c.mu.Unlock()
	if writeErr != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return writeErr
	}
	end := errors.Is(err, io.EOF)
	switch {
	case end && bye != nil:
		return fmt.Errorf("the server closed the connection after %v: %w", bye, io.ErrUnexpectedEOF)
	case end:
		return fmt.Errorf("the server closed the connection: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, errStuck):
		return err
	case bye != nil:
		return fmt.Errorf("the connection failed after %v: %w", bye, err)
	}
	return fmt.Errorf("the connection failed: %w", err)
}

// reason returns why the connection takes no more streams.
func (c *Conn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return c.failure
	}
	return c.why
}

// shut closes the socket, once, after a GOAWAY with code if it can be written.
func (c *Conn) shut(code xhttp2.ErrCode) error {
	c.shutOnce.Do(func() {
		c.out.goodbye(code)
		if inner, ok := c.nc.(interface{ NetConn() net.Conn }); ok {
			force := time.AfterFunc(forceClose, func() { inner.NetConn().Close() })
			defer force.Stop()
		}
		c.shutErr = c.nc.Close()
	})
	return c.shutErr
}
