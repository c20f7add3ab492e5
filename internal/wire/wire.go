// Package wire holds what the connection room and its two codecs share: the
// terms of one exchange and the errors by which a codec tells what went wrong
// and how far the request had got. The codecs import it because they may not
// import the room above them; connection re-exports the errors under the same
// names.
package wire

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Exchange is what a call asks of the codec for one request and its response.
type Exchange struct {
	// ReadTimeout bounds each wait for the peer while reading, the head of a
	// response as a whole. 0 means none.
	ReadTimeout time.Duration
	// WriteTimeout bounds each write. 0 means none.
	WriteTimeout time.Duration
	// MaxHeaderBytes bounds the head of a response, and its trailer section,
	// each in bytes.
	MaxHeaderBytes int
	// MaxHeaderFields bounds the number of fields of a head or a trailer section.
	MaxHeaderFields int
	// AbsoluteForm asks for the request target in absolute-form, which is what
	// a plain HTTP proxy expects (RFC 9112 3.2.2). HTTP/2 ignores it.
	AbsoluteForm bool
}

// ErrWriteTimeout is what a codec that reads and writes at the same time fails
// with, on the reading side too, where its write timeout passed. It is an
// os.ErrDeadlineExceeded.
var ErrWriteTimeout = fmt.Errorf("write: %w", os.ErrDeadlineExceeded)

// ProtocolError says that the peer broke HTTP. The exchange is never retried
// on it and an HTTP/1.1 connection is not used again.
type ProtocolError struct {
	// Reason is what was wrong, as a phrase without a capital: "malformed
	// status line \"ICY 200 OK\"". It quotes at most 64 bytes of the peer's.
	Reason string
	// Err is the cause, if there was one.
	Err error
}

func (e *ProtocolError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("protocol error: %s: %v", e.Reason, e.Err)
	}
	return "protocol error: " + e.Reason
}

func (e *ProtocolError) Unwrap() error { return e.Err }

// Protocolf makes a ProtocolError from a format.
func Protocolf(format string, args ...any) *ProtocolError {
	return &ProtocolError{Reason: fmt.Sprintf(format, args...)}
}

// ErrTooManyInterim is part of the ProtocolError of a response that never comes for
// interim ones.
var ErrTooManyInterim = errors.New("too many interim responses")

// RequestBodyError says that the request's own body could not be sent: its Read
// failed, or it was longer or shorter than the request declared. The connection
// is not to blame and the exchange is not retried.
type RequestBodyError struct{ Err error }

func (e *RequestBodyError) Error() string { return "request body: " + e.Err.Error() }

func (e *RequestBodyError) Unwrap() error { return e.Err }

// UnprocessedError says that the server did not process the request, by its own
// word: REFUSED_STREAM, or a GOAWAY below the stream (RFC 9113 8.7). Any request
// may be sent again.
type UnprocessedError struct {
	Err error
	// Shutdown is true where the whole connection takes no more streams.
	Shutdown bool
}

func (e *UnprocessedError) Error() string { return e.Err.Error() }

func (e *UnprocessedError) Unwrap() error { return e.Err }

// StreamResetError says that the server reset the stream of the exchange
// (RFC 9113 7).
type StreamResetError struct {
	Code uint32
	Name string // "INTERNAL_ERROR"
}

func (e *StreamResetError) Error() string { return "stream was reset: " + e.Name }
