package http2

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"sync"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

var errUnfinished = errors.New("the request body was not finished")

// Write sends bytes of the request's body as the server's windows allow. Each
// wait for a window is bounded by the exchange's write timeout. More bytes than
// WriteRequestHeaders announced are a *wire.RequestBodyError, none of them is
// sent, and the stream is reset. Where the server answered and wants no more,
// the error is a *wire.StreamResetError with code NO_ERROR and the response is
// there to be read.
func (s *Stream) Write(p []byte) (int, error) {
	if s.up == nil {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, s.badBody(errors.New("longer than the declared 0 bytes"))
	}
	if s.up.size >= 0 && int64(len(p)) > s.up.left {
		return 0, s.badBody(fmt.Errorf("longer than the declared %d bytes", s.up.size))
	}
	n, err := s.up.write(p)
	switch err {
	case nil:
		return n, nil
	case errUploadStopped:
		return n, s.whyStopped()
	case os.ErrDeadlineExceeded:
		s.writeTimedOut()
	}
	return n, err
}

// badBody ends the stream for an error of the request's own body.
func (s *Stream) badBody(err error) error {
	err = &wire.RequestBodyError{Err: err}
	s.fail(err)
	return err
}

// whyStopped says why the engine takes no more of the body. The reason is on
// its way when the upload ends: either the stream was ended from this side, or
// the engine is about to return from it.
func (s *Stream) whyStopped() error {
	select {
	case <-s.dead:
	case <-s.answered:
	}
	if cause := s.ended(); cause != nil {
		return cause
	}
	if s.err != nil {
		return s.explain(s.err)
	}
	return resetError(xhttp2.ErrCodeNo)
}

var chunks = sync.Pool{New: func() any { return new([maxChunk]byte) }}

// ReadFrom sends the request's body from r. An error of r's comes back as a
// *wire.RequestBodyError, one of the stream's as Write returns it.
func (s *Stream) ReadFrom(r io.Reader) (int64, error) {
	chunk := chunks.Get().(*[maxChunk]byte)
	defer chunks.Put(chunk)
	var sent int64
	for {
		n, err := r.Read(chunk[:])
		if n > 0 {
			w, werr := s.Write(chunk[:n])
			sent += int64(w)
			if werr != nil {
				return sent, werr
			}
		}
		if err == io.EOF {
			return sent, nil
		}
		if err != nil {
			err = &wire.RequestBodyError{Err: err}
			s.mu.Lock()
			s.bodyErr = err
			s.mu.Unlock()
			return sent, err
		}
	}
}

// Flush does nothing: nothing is held back.
func (s *Stream) Flush() error { return nil }

// FinishRequest ends the body, with trailer if there is any, and waits until
// the end is written. Trailers that the request did not declare are sent only
// if its length was unknown. A body shorter than declared is a *wire.RequestBodyError
// and the stream is reset. From here on the read timeout counts.
func (s *Stream) FinishRequest(trailer http.Header) error {
	if s.up == nil {
		return nil
	}
	if s.up.left > 0 {
		return s.badBody(fmt.Errorf("%d bytes shorter than the declared %d", s.up.left, s.up.size))
	}
	fields, err := trailerFields(trailer)
	if err != nil {
		return s.badBody(err)
	}
	if s.trailer != nil {
		clear(s.trailer) // of declared ones that did not come
		maps.Copy(s.trailer, fields)
	}
	s.up.finish()
	return s.awaitSent()
}

// awaitSent waits for the engine to have written the body's end.
func (s *Stream) awaitSent() error {
	select {
	case <-s.sent:
	case <-s.up.stopped:
	case <-s.up.interrupted:
		return errUploadInterrupted
	case <-s.up.alarm():
		s.writeTimedOut()
		return os.ErrDeadlineExceeded
	}
	select {
	case <-s.sent:
		if s.sendErr == nil {
			s.requestSent()
			return nil
		}
	default:
	}
	return s.whyStopped()
}

// AbortRequest leaves the body unfinished. The server never sees an end of it.
// Without a response or a failure so far, or where the body itself failed, the stream is
// reset at once; otherwise the response may still be read, and the stream is
// reset afterwards.
func (s *Stream) AbortRequest() {
	s.mu.Lock()
	cause, answered := s.bodyErr, s.content != nil || s.err != nil
	s.mu.Unlock()
	switch {
	case cause != nil:
		s.fail(cause)
	case !answered:
		s.fail(errUnfinished)
	case s.up != nil:
		s.up.interrupt()
	}
	s.clock.requestComplete()
}

// InterruptWrite makes a Write that waits, and every later one, fail at once.
// It may be called from any goroutine. The stream lives on.
func (s *Stream) InterruptWrite() {
	s.mu.Lock()
	up := s.up
	s.mu.Unlock()
	if up != nil {
		up.interrupt()
	}
}
