package http2

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

var (
	errCanceled    = errors.New("the stream was canceled")
	errEnded       = errors.New("the exchange has ended")
	errGivenUp     = errors.New("the response body was closed")
	errNoHead      = errors.New("the final response was read already")
	errUnfinished  = errors.New("the request body was not finished")
	errInterrupted = errors.New("the write of the request body was interrupted")
)

// Stream is one exchange on a Conn. Its methods follow the order that the
// package comment gives. The request side may be driven by one goroutine and
// the response side by another at the same time; Cancel and InterruptWrite may
// be called from anywhere.
type Stream struct {
	c      *Conn
	x      wire.Exchange
	method string
	id     uint32 // set before anybody else knows the stream

	// Of the request's side.
	size, left int64 // of the body: declared, and to come; -1: unknown, 0: none
	open       bool  // the body's end is to be sent
	tunneled   bool  // an extended CONNECT: our direction stays open
	last       dataMark
	bodyErr    error // of the request's own body

	// held is true while frames of this stream may lie in a batch that nobody
	// leads. batch is the one of the HEADERS.
	held  atomic.Bool
	batch atomic.Uint64
	// bursting is true while a goroutine writes a piece of the body.
	bursting atomic.Bool

	// Guarded by Conn.mu.
	sendWindow int64
	blocked    *waiter // woken when a window opens; not nil: in send.blocked
	grown      int64

	// Of the response's side.
	resp     http.Response
	accepted bool    // the final head was handed out
	cur      segment // that is being read; k is nil: none

	// r parks the response's side, w the request's. Each is set before anybody
	// can want to wake it.
	r, w *waiter

	mu       sync.Mutex // guards what follows
	admitted bool       // holds a slot, not a reservation
	opened   bool       // has its id
	released bool
	// cause is why the stream was ended from this side: it is what every method
	// returns then. failure is what the server did to the response, which counts
	// after what came before it; refusal is why it takes no more of the request.
	cause, failure, refusal error
	interrupted             bool
	sent                    bool // the request is complete, or given up
	sentEnd, recvEnd        bool // END_STREAM
	closed                  bool // on the wire
	reading                 bool // a Read is under way
	bodyClosed              bool

	interim     []head
	interimSize int
	final       head
	hasFinal    bool
	bodiless    bool
	length      int64 // the content-length; -1: there is none
	rest        int64 // of it, that did not come yet; -1: any number
	headEnded   bool  // the head had END_STREAM
	window      receiveWindow
	segments    []segment
	few         [2]segment // memory for them
	buffered    int64      // bytes in segments and cur
	taken       int64      // bytes read that no window was given back for
	trailer     *fieldList
}

// NewStream makes the exchange that a reservation was made for. It does
// nothing on the wire. End is due also for a stream that is not used.
func (c *Conn) NewStream(x wire.Exchange) *Stream {
	s := &Stream{c: c, x: x}
	s.rest, s.length = -1, -1
	s.segments = s.few[:0]
	return s
}

// Duplex reports that the response can come while the request is written.
func (s *Stream) Duplex() bool { return true }

// Reusable reports true: a stream leaves nothing behind that keeps others from
// the connection.
func (s *Stream) Reusable() bool { return true }

// Written reports whether the server may have seen anything of the request: a
// write of its HEADERS was begun.
func (s *Stream) Written() bool {
	batch := s.batch.Load()
	return batch > 0 && s.c.out.begun.Load() >= batch
}

// admit notes that s has a slot, and where its reader waits. Whoever ends s from
// another goroutine looks there.
func (s *Stream) admit(r *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.r = r
	s.admitted = true
	s.sent = !s.open
}

// Cancel ends the exchange from any goroutine, any number of times: the stream
// is reset with CANCEL and every wait for it returns.
func (s *Stream) Cancel() { s.fail(errCanceled) }

// End ends the exchange and gives its slot back. Whatever is unfinished is
// reset with CANCEL.
func (s *Stream) End() {
	s.fail(errEnded)
	s.mu.Lock()
	released, admitted := s.released, s.admitted
	s.released = true
	s.mu.Unlock()
	switch {
	case released:
	case admitted:
		s.c.release(s.r, s.w)
	default:
		s.c.Unreserve()
	}
}

// fail ends the stream for cause, which its methods return from now on. What was
// received and not read is dropped. Later calls do nothing.
func (s *Stream) fail(cause error) {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		return
	}
	s.cause = cause
	dropped := s.dropLocked()
	reset := s.closeLocked()
	s.wakeLocked()
	s.mu.Unlock()
	if reset {
		s.c.forget(s)
		s.c.out.reset(s.id, xhttp2.ErrCodeCancel)
	}
	s.c.dropped(dropped)
}

// closeLocked notes that nothing more is sent or wanted. It reports whether the
// wire does not know that yet.
func (s *Stream) closeLocked() bool {
	open := !s.closed && s.opened
	s.closed = true
	return open
}

func (s *Stream) wakeLocked() {
	if s.released {
		return
	}
	if s.r != nil {
		s.r.wake()
	}
	if s.w != nil {
		s.w.wake()
	}
}

// failed ends the stream for what the server did. A complete response stays.
func (s *Stream) failed(err error) (open bool) {
	s.mu.Lock()
	if s.recvEnd {
		s.refuseLocked(err)
	} else if s.failure == nil {
		s.failure = err
	}
	open = s.closeLocked()
	s.wakeLocked()
	s.mu.Unlock()
	if open {
		s.c.forget(s)
	}
	return open
}

// violated is failed for what the server must not do; it is told.
func (s *Stream) violated(code xhttp2.ErrCode, err error) {
	if s.failed(err) {
		s.c.out.reset(s.id, code)
	}
}

// broken is violated for a breach of HTTP/2 itself.
func (s *Stream) broken(code xhttp2.ErrCode, reason string) { s.violated(code, broken(code, reason)) }

// lost ends the stream because the connection failed.
func (s *Stream) lost(err error) {
	if !s.Written() {
		err = unopened(err)
	}
	s.failed(err)
}

// resetByServer takes a RST_STREAM.
func (s *Stream) resetByServer(code xhttp2.ErrCode) {
	var err error = resetError(code)
	if code == xhttp2.ErrCodeRefusedStream && !s.headed() {
		err = &wire.UnprocessedError{Err: err}
	}
	s.failed(err)
}

// refuseLocked makes the rest of the request's body unwanted.
func (s *Stream) refuseLocked(err error) {
	if s.refusal == nil {
		s.refusal = err
	}
}

// headed reports whether the final head is there.
func (s *Stream) headed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasFinal
}

// ended takes the server's END_STREAM.
func (s *Stream) ended() {
	s.mu.Lock()
	over, err := s.endLocked()
	s.mu.Unlock()
	s.settle(over, err)
}

// endLocked notes the server's END_STREAM, in the same breath as what came with
// it: a caller that sees the one must see the other. settle is due, without mu.
func (s *Stream) endLocked() (over bool, err error) {
	switch {
	case s.cause != nil || s.failure != nil || s.recvEnd:
		return false, nil
	case s.rest > 0:
		return false, shortOf(s.rest)
	}
	s.recvEnd = true
	return s.sentEnd && s.closeLocked(), nil
}

// settle does what endLocked asks for.
func (s *Stream) settle(over bool, err error) {
	switch {
	case err != nil:
		s.violated(xhttp2.ErrCodeProtocol, err)
	case over:
		s.c.forget(s)
	}
}

// mayWrite returns why no more of the request can be sent; nil: it can.
func (s *Stream) mayWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cause != nil:
		return s.cause
	case s.interrupted:
		return errInterrupted
	case s.failure != nil:
		return s.failure
	}
	return s.refusal
}

// writeWaiter is what parks the request's side.
func (s *Stream) writeWaiter() *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w == nil {
		s.w = newWaiter()
	}
	return s.w
}

// writerWait prepares a wait of the request's side and returns what to wait on;
// an error where there is nothing to wait for any more. After the write timeout
// the stream is ended.
func (s *Stream) writerWait(dl *deadline) (*waiter, error) {
	w := s.writeWaiter()
	if err := s.mayWrite(); err != nil {
		return nil, err
	}
	if dl.over(w, s.x.WriteTimeout) {
		s.fail(fmt.Errorf("the request could not be written in %v: %w", s.x.WriteTimeout, wire.ErrWriteTimeout))
		return nil, s.mayWrite()
	}
	return w, nil
}
