package oracle

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// retire stops new streams, tells so and, where none is open, closes.
func (c *Conn) retire(why error) {
	c.mu.Lock()
	if c.why != nil {
		c.mu.Unlock()
		return
	}
	c.why = why
	told := c.retired
	c.retired = nil
	idle := c.open == 0
	c.mu.Unlock()
	for _, f := range told {
		f(why)
	}
	if idle {
		c.fail(why)
		c.tap.shut(xhttp2.ErrCodeNo)
	}
}

// fail records why the connection is broken or closed and retires it. The
// first reason stays; it is returned.
func (c *Conn) fail(err error) error {
	c.mu.Lock()
	first := c.failure == nil
	if first {
		c.failure = err
		if !c.greeted {
			c.settleLocked()
		}
	}
	err = c.failure
	c.mu.Unlock()
	c.retire(err)
	return err
}

// breakDown is fail for an error of the socket or of what came out of it. It
// puts the error in words and closes the socket. It returns the failure that
// the streams get.
func (c *Conn) breakDown(err error) error {
	code := xhttp2.ErrCodeNo
	if pe := (*wire.ProtocolError)(nil); errors.As(err, &pe) {
		code = xhttp2.ErrCodeProtocol
	} else {
		err = c.describe(err)
	}
	err = c.fail(err)
	c.tap.shut(code)
	return err
}

// describe says in a sentence how the connection was lost.
func (c *Conn) describe(err error) error {
	c.mu.Lock()
	bye := c.bye
	c.mu.Unlock()
	end := errors.Is(err, io.EOF)
	switch {
	case end && bye != nil:
		return fmt.Errorf("the server closed the connection after %v: %w", bye, io.ErrUnexpectedEOF)
	case end:
		return fmt.Errorf("the server closed the connection: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the server took no data for %v", c.opts.WriteTimeout)
	case bye != nil:
		return fmt.Errorf("the connection failed after %v: %w", bye, err)
	}
	return fmt.Errorf("the connection failed: %w", err)
}

// engineNote keeps the token of the engine's last error. It says what was wrong
// with a frame where the error itself has the code alone.
func (c *Conn) engineNote(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note = token
}

// engineClosed is called when the engine gives up. Where nothing else is known
// to be wrong, the server broke the protocol: the engine says so to streams
// only.
func (c *Conn) engineClosed() error {
	c.mu.Lock()
	note, known := c.note, c.why != nil
	c.mu.Unlock()
	switch {
	case note == lostPing:
		c.fail(fmt.Errorf("the server did not answer a PING for %v", c.opts.PingInterval))
	case known:
		c.fail(c.reason())
	case note == resetByPeer:
		c.fail(errors.New("the server reset a stream with PROTOCOL_ERROR"))
	default:
		c.fail(c.violation(xhttp2.ErrCodeProtocol))
		return c.tap.shut(xhttp2.ErrCodeProtocol)
	}
	return c.tap.shut(xhttp2.ErrCodeNo)
}

// violation is the error of a connection that the engine ended with code, with
// the engine's token for the frame where it noted one.
func (c *Conn) violation(code xhttp2.ErrCode) *wire.ProtocolError {
	c.mu.Lock()
	note := c.note
	c.mu.Unlock()
	if detail, ok := strings.CutPrefix(note, "frame_"); ok {
		return wire.Protocolf("the server broke HTTP/2: %v (%s)", code, strings.ReplaceAll(detail, "_", " "))
	}
	return wire.Protocolf("the server broke HTTP/2: %v", code)
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

// broken returns why the connection is broken or closed; nil: it is not.
func (c *Conn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}
