package http2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catena-http/catena/internal/wire"
)

var (
	errCanceled = errors.New("the stream was canceled")
	errEnded    = errors.New("the exchange has ended")
	errGivenUp  = errors.New("the response body was closed")
	errNoHead   = errors.New("the final response was read already")
)

// Stream is one exchange on a Conn. Its methods follow the order that the
// package comment gives. The request side may be driven by one goroutine and
// the response side by another at the same time; Cancel and InterruptWrite may
// be called from anywhere.
type Stream struct {
	c *Conn
	x wire.Exchange
	// ctx ends the stream; no caller's context is behind it.
	ctx    context.Context
	cancel context.CancelFunc

	// Of the calling goroutine.
	method   string
	up       *upload     // nil: no request body
	trailer  http.Header // the outgoing request's; filled before the body's end
	started  bool        // the engine has the request
	final    bool        // the final head was handed out
	released bool
	admitted bool // holds a slot, not a reservation

	clock    clock
	interims interim
	// headed is closed when the engine is done with writing HEADERS. Set before
	// are id, 0 if they did not reach the socket, and intact: they did, whole.
	headed chan struct{}
	id     uint32
	intact bool
	// frames is how many frames the server had sent when the present wait began.
	frames atomic.Uint64
	// sent is closed when the engine is through with the request's body;
	// sendErr is set before.
	sent    chan struct{}
	sendErr error
	// answered is closed when the engine has a final head or none will come;
	// resp or err is set before.
	answered chan struct{}
	resp     *http.Response
	err      error
	// dead is closed when the stream was ended from this side; cause is set
	// before.
	dead chan struct{}

	mu       sync.Mutex    // guards what follows
	content  io.ReadCloser // the engine's body; nil: no final head so far
	cause    error
	bodyErr  error // of the request's own body
	sentAll  bool  // the request is complete, with END_STREAM
	received bool  // the response is
}

// NewStream makes the exchange that a reservation was made for. It does
// nothing on the wire. End is due also for a stream that is not used.
func (c *Conn) NewStream(x wire.Exchange) *Stream {
	s := &Stream{
		c: c, x: x,
		headed:   make(chan struct{}),
		sent:     make(chan struct{}),
		answered: make(chan struct{}),
		dead:     make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.clock.timeout, s.clock.expire = x.ReadTimeout, s.readTimedOut
	s.interims.ready = make(chan struct{}, 1)
	return s
}

// WriteRequestHeaders opens the stream with req's head. bodySize is 0 for no
// body, -1 for one of unknown length. It returns when the head is written, or
// with the reason why it could not be within the write timeout; after an error
// the stream is of no use but to End.
func (s *Stream) WriteRequestHeaders(req *http.Request, bodySize int64) error {
	out, err := outgoing(req, s.c.opts.Secure)
	if err != nil {
		return err
	}
	if err := s.attach(out, bodySize); err != nil {
		return err
	}
	late := time.AfterFunc(forever(s.x.WriteTimeout), s.writeTimedOut)
	defer late.Stop()
	if err := s.c.admit(s.ctx); err != nil {
		if cause := s.ended(); cause != nil {
			return cause
		}
		return err
	}
	s.admitted, s.started = true, true
	go s.run(out.WithContext(httptrace.WithClientTrace(s.ctx, s.trace())))
	if err := s.awaitOpen(); err != nil {
		return err
	}
	if s.up == nil {
		s.requestSent()
	}
	return nil
}

// awaitOpen waits for the head to be written. A server can be so quick that
// the engine has the answer before it tells of that.
func (s *Stream) awaitOpen() error {
	select {
	case <-s.headed:
		if s.intact {
			return nil
		}
		select {
		case <-s.answered:
		case <-s.dead:
			return s.ended()
		}
	case <-s.answered:
	case <-s.dead:
		return s.ended()
	}
	if s.err != nil {
		return s.explain(s.err)
	}
	select {
	case <-s.headed:
		return nil
	case <-s.dead:
		return s.ended()
	}
}

// requestSent notes that the request is complete.
func (s *Stream) requestSent() {
	s.mu.Lock()
	s.sentAll = true
	s.mu.Unlock()
	s.clock.requestComplete()
}

// attach gives out its body. A request without one can carry no trailers on
// the engine, so one that wants to is sent as an empty body of unknown length.
func (s *Stream) attach(out *http.Request, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return s.cause
	}
	s.method = out.Method
	if size == 0 && len(out.Trailer) > 0 {
		size = -1
	}
	if size == 0 {
		out.Trailer = nil
		return nil
	}
	if size < 0 && out.Trailer == nil {
		out.Trailer = make(http.Header) // undeclared ones may come
	}
	for name := range out.Trailer {
		out.Trailer[name] = nil
	}
	s.trailer = out.Trailer
	s.up = newUpload(size, s.x.WriteTimeout)
	out.Body, out.ContentLength = s.up, size
	return nil
}

// run is the stream's own goroutine: it ends when the engine has a head or an
// error, both of which Cancel brings about.
func (s *Stream) run(out *http.Request) {
	resp, err := s.c.engine.RoundTrip(out)
	s.mu.Lock()
	s.resp, s.err = resp, err
	if resp != nil {
		s.content = resp.Body
	}
	close(s.answered)
	dead := s.cause != nil
	s.mu.Unlock()
	if dead && resp != nil {
		s.content.Close()
	}
}

// trace are the engine's hooks. They run on goroutines of the engine's; the
// first holds its write lock, the last its reading.
func (s *Stream) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		WroteHeaders: func() {
			s.id, s.intact = s.c.opened()
			close(s.headed)
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			s.sendErr = info.Err
			close(s.sent)
		},
		Got1xxResponse: s.gotInterim,
	}
}

func (s *Stream) gotInterim(code int, header textproto.MIMEHeader) error {
	resp := &http.Response{
		Status: statusLine(code), StatusCode: code,
		Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header(header), Body: http.NoBody,
	}
	err := s.checkInterim(resp)
	if err == nil {
		err = s.interims.put(resp, s.c.opts.MaxHeaderBytes)
	}
	if err != nil {
		s.fail(err)
	}
	return err
}

// Duplex reports that the response can come while the request is written.
func (s *Stream) Duplex() bool { return true }

// Upgrade returns nil: HTTP/2 has no 101 (RFC 9113 8.6).
func (s *Stream) Upgrade() io.ReadWriteCloser { return nil }

// Reusable reports true: a stream leaves nothing behind that keeps others from
// the connection.
func (s *Stream) Reusable() bool { return true }

// Written reports whether the server may have seen anything of the request. It
// is true from the moment the engine has it, until it is known that no frame
// was written.
func (s *Stream) Written() bool {
	if !s.started {
		return false
	}
	select {
	case <-s.headed:
		return s.id != 0
	default:
	}
	select {
	case <-s.answered:
		// Ended from here, a write may be under way. Otherwise an error says
		// that the engine is through with the stream and has not opened it.
		return s.ended() != nil || s.err == nil
	default:
		return true
	}
}

// Cancel ends the exchange from any goroutine, any number of times: the stream
// is reset with CANCEL and every wait for it returns.
func (s *Stream) Cancel() { s.fail(errCanceled) }

// End ends the exchange and gives its slot back. Whatever is unfinished is
// reset with CANCEL.
func (s *Stream) End() {
	if s.whole() {
		s.cancel()
	} else {
		s.fail(errEnded)
	}
	if s.released {
		return
	}
	s.released = true
	if s.admitted {
		s.c.release()
	} else {
		s.c.Unreserve()
	}
}

// whole reports whether both messages are complete.
func (s *Stream) whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sentAll && s.received && s.cause == nil
}

// fail ends the stream for cause, which its methods return from now on. Later
// calls do nothing.
func (s *Stream) fail(cause error) {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		return
	}
	s.cause = cause
	close(s.dead)
	content, up := s.content, s.up
	s.mu.Unlock()
	s.cancel()
	if up != nil {
		up.Close()
	}
	if content != nil {
		// The engine wakes a waiting Read at once, but may then wait for the
		// lock under which it writes.
		go content.Close()
	}
}

// ended returns why the stream was ended from this side; nil: it was not.
func (s *Stream) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// startWait and stopWait enclose each wait for the server.
func (s *Stream) startWait() {
	s.frames.Store(s.c.frames.Load())
	s.clock.start()
}

func (s *Stream) stopWait() { s.clock.stop() }

func (s *Stream) readTimedOut() {
	s.c.timedOut(s.frames.Load())
	s.fail(os.ErrDeadlineExceeded)
}

func (s *Stream) writeTimedOut() {
	s.fail(fmt.Errorf("the request could not be written in %v: %w", s.x.WriteTimeout, wire.ErrWriteTimeout))
}

// forever stands for a timeout of none.
func forever(d time.Duration) time.Duration {
	if d <= 0 {
		return 1<<63 - 1
	}
	return d
}
