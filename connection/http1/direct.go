package http1

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/catena-http/catena/internal/wire"
)

// directSize is the size from which on a body of known size takes the shortest
// way to the connection, if its reader knows one.
const directSize = 128 << 10

// sourced is a reader that stands for another one.
type sourced interface{ Source() io.Reader }

// readDirectly sends a body without a copy in between: a file by the kernel, what
// is in memory by its own WriteTo. It reports whether it knew a way; then the body
// has been sent, or the error says why not.
func (c *Conn) readDirectly(r io.Reader) (sent int64, err error, ok bool) {
	if c.remaining < directSize {
		return 0, nil, false
	}
	if s, is := r.(sourced); is {
		r = s.Source()
	}
	conn, kernel := c.nc.(*net.TCPConn)
	switch source := r.(type) {
	case *os.File:
		if info, err := source.Stat(); !kernel || err != nil || !info.Mode().IsRegular() {
			return 0, nil, false
		}
		sent, err = c.sendFile(conn, source)
	case io.WriterTo:
		sent, err = c.takeFrom(source)
	default:
		return 0, nil, false
	}
	if err == nil && c.remaining == 0 {
		err = c.expectEnd(r)
	}
	return sent, err, true
}

// takeFrom lets source write itself.
func (c *Conn) takeFrom(source io.WriterTo) (int64, error) {
	if c.flush(); c.writeErr != nil {
		return 0, c.writeErr
	}
	before := c.remaining
	w := &bodyWriter{c: c}
	_, err := source.WriteTo(w)
	switch {
	case w.err != nil:
		err = w.err
	case err != nil:
		err = &wire.RequestBodyError{Err: err}
	}
	return before - c.remaining, err
}

// bodyWriter writes body bytes straight to the connection.
type bodyWriter struct {
	c   *Conn
	err error // the connection's, or that of a body that is too long
}

func (w *bodyWriter) Write(p []byte) (int, error) {
	c := w.c
	if w.err == nil && int64(len(p)) > c.remaining {
		w.err = c.tooLong()
	}
	if w.err != nil {
		return 0, w.err
	}
	if c.writeOut(p); c.writeErr != nil {
		w.err = c.writeErr
		return 0, w.err
	}
	c.remaining -= int64(len(p))
	return len(p), nil
}

// sendFile lets the kernel copy what the body lacks from file, a regular one. It
// watches the progress as writeWatching does.
func (c *Conn) sendFile(conn *net.TCPConn, file *os.File) (sent int64, err error) {
	if c.flush(); c.writeErr != nil {
		return 0, c.writeErr
	}
	progress := time.Now()
	for c.remaining > 0 {
		timeout := c.x.WriteTimeout
		look := min(timeout/64, time.Second/4)
		if err := c.armWrite(look, look); err != nil {
			c.writeErr = err
			return sent, err
		}
		at, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return sent, &wire.RequestBodyError{Err: err}
		}
		n, err := conn.ReadFrom(io.LimitReader(file, c.remaining))
		if n > 0 {
			c.written.Store(true)
		}
		sent += n
		c.remaining -= n
		switch now := time.Now(); {
		case err == nil:
			return sent, nil // if the file is shorter, FinishRequest says so
		case timeout > 0 && errors.Is(err, os.ErrDeadlineExceeded) && !c.wasInterrupted() && (n > 0 || now.Sub(progress) < timeout):
			if n > 0 {
				progress = now
			}
			// A copy by way of memory may have read more than was written.
			if _, err := file.Seek(at+n, io.SeekStart); err != nil {
				return sent, &wire.RequestBodyError{Err: err}
			}
		default:
			return sent, c.fileError(err)
		}
	}
	return sent, nil
}

// fileError tells a file that can't be read from a connection that can't be
// written to.
func (c *Conn) fileError(err error) error {
	var path *os.PathError
	if errors.As(err, &path) || errors.Is(err, os.ErrClosed) {
		return &wire.RequestBodyError{Err: err}
	}
	if c.writeErr = err; c.wasInterrupted() {
		c.writeErr = errInterrupted
	}
	return c.writeErr
}
