package http2

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// dataMark is where in a batch the last frame of a body lies.
type dataMark struct {
	batch uint64 // 0: nowhere
	at    int
}

// Write sends bytes of the request's body as the server's windows allow. Each
// wait for a window is bounded by the exchange's write timeout. More bytes than
// WriteRequestHeaders announced are a *wire.RequestBodyError, none of them is
// sent, and the stream is reset. Where the server answered and wants no more,
// the error is a *wire.StreamResetError with code NO_ERROR and the response is
// there to be read.
//
// The last bytes of a body of known length may wait for FinishRequest.
func (s *Stream) Write(p []byte) (int, error) {
	if err := s.fits(len(p)); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if len(p) <= joined {
		return s.writePieces(p, s.join)
	}
	sent := 0
	for sent < len(p) {
		buf := newBulk(min(len(p)-sent, s.c.out.largest()))
		n, err := s.writeBulk(buf, copy(buf.body(), p[sent:]))
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// fits checks n more bytes against the declared length.
func (s *Stream) fits(n int) error {
	if s.size == 0 && n > 0 {
		return s.badBody(errors.New("longer than the declared 0 bytes"))
	}
	if s.size > 0 && int64(n) > s.left {
		return s.badBody(fmt.Errorf("longer than the declared %d bytes", s.size))
	}
	return nil
}

// writePieces sends p in pieces as large as the windows allow, by send.
func (s *Stream) writePieces(p []byte, send func(p []byte) error) (int, error) {
	sent := 0
	for sent < len(p) {
		n, err := s.takeWindow(len(p) - sent)
		if err != nil {
			return sent, err
		}
		if s.size > 0 {
			s.left -= int64(n)
		}
		if err := send(p[sent : sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// writeBulk sends the first n bytes of buf's body, and frees buf. It does not
// wait for the last piece to be written.
func (s *Stream) writeBulk(buf *bulk, n int) (int, error) {
	at := burstRoom
	return s.writePieces(buf.body()[:n], func(p []byte) error {
		last := at+len(p) == burstRoom+n
		err := s.c.out.burst(s, buf, at, len(p), last)
		at += len(p)
		return err
	})
}

// join adds p, of joined bytes at most, to the batch. The end of a body stays
// there until FinishRequest.
func (s *Stream) join(p []byte) error {
	w := &s.c.out
	w.mu.Lock()
	if len(w.pending) > fullBatch {
		w.mu.Unlock()
		buf := newBulk(joined)
		return w.burst(s, buf, burstRoom, copy(buf.body(), p), true)
	}
	w.beginFrame()
	for limit := int(s.c.maxFrame.Load()); len(p) > 0; {
		n := min(len(p), limit)
		s.last = dataMark{w.batch, len(w.pending)}
		w.pending = appendFrameHeader(w.pending, n, xhttp2.FrameData, 0, s.id)
		w.pending = append(w.pending, p[:n]...)
		p = p[n:]
	}
	w.sentData.Add(1)
	if s.size > 0 && s.left == 0 {
		s.held.Store(true)
		w.mu.Unlock()
		return nil
	}
	s.held.Store(false)
	if w.joinLocked() {
		go w.leadAlone()
	}
	return nil
}

// badBody ends the stream for an error of the request's own body.
func (s *Stream) badBody(err error) error {
	err = &wire.RequestBodyError{Err: err}
	s.fail(err)
	return err
}

// ReadFrom sends the request's body from r. An error of r's comes back as a
// *wire.RequestBodyError, one of the stream's as Write returns it.
func (s *Stream) ReadFrom(r io.Reader) (int64, error) {
	size := int(min(s.size, largeBurst))
	var sent int64
	for {
		if size < 0 || size > joined {
			// The body may be slow to come, or hang on the response.
			if err := s.flushHeld(); err != nil {
				return sent, err
			}
		}
		most := size
		if size > joined {
			most = s.c.out.largest()
		}
		buf := newBulk(most)
		n, err := r.Read(buf.body())
		w, werr := s.writeRead(buf, n)
		sent += int64(w)
		if werr != nil {
			return sent, werr
		}
		if err == io.EOF {
			return sent, nil
		}
		if err != nil {
			s.bodyErr = &wire.RequestBodyError{Err: err}
			return sent, s.bodyErr
		}
		if n == joined && size < 0 {
			size = largeBurst // it comes faster than it goes: take more at a time
		}
	}
}

// writeRead sends n bytes that were read into buf, and frees buf.
func (s *Stream) writeRead(buf *bulk, n int) (int, error) {
	if n <= joined {
		defer buf.free()
		return s.Write(buf.body()[:n])
	}
	if err := s.fits(n); err != nil {
		return 0, err
	}
	return s.writeBulk(buf, n)
}

// Flush sends what was held back.
func (s *Stream) Flush() error { return s.flushHeld() }

// flushHeld writes what was held back of the stream. It is for the request's side.
func (s *Stream) flushHeld() error {
	if s.joinHeld() {
		return s.c.out.lead(s)
	}
	return nil
}

// letGo is flushHeld for the response's side, which does not wait for it.
func (s *Stream) letGo() {
	if s.joinHeld() {
		go s.c.out.leadAlone()
	}
}

// joinHeld makes what was held back a part of the batch, like any other, and
// reports whether the batch needs a leader.
func (s *Stream) joinHeld() (lead bool) {
	if !s.held.Swap(false) {
		return false
	}
	w := &s.c.out
	w.mu.Lock()
	if len(w.pending) == 0 {
		w.mu.Unlock()
		return false
	}
	return w.joinLocked()
}

// FinishRequest ends the body, with trailer if there is any. A body shorter than
// declared is a *wire.RequestBodyError and the stream is reset. From here on the
// read timeout counts.
func (s *Stream) FinishRequest(trailer http.Header) error {
	if !s.open {
		return nil
	}
	if s.tunneled {
		return s.headSent()
	}
	if s.left > 0 {
		return s.badBody(fmt.Errorf("%d bytes shorter than the declared %d", s.left, s.size))
	}
	fields, err := trailerFields(trailer)
	if err != nil {
		return s.badBody(err)
	}
	if err := s.mayWrite(); err != nil {
		return err
	}
	if err := s.awaitBurst(); err != nil {
		return err
	}
	s.open = false
	if err := s.c.out.finish(s, fields); err != nil {
		return err
	}
	s.requestSent()
	return nil
}

// headSent sends the head of a request that has an answer before it has an end.
func (s *Stream) headSent() error {
	err := s.flushHeld()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
	return err
}

// finish sends END_STREAM: with trailers, with the last DATA if that has not
// been written, or with an empty one.
func (w *writer) finish(s *Stream, trailer http.Header) error {
	w.mu.Lock()
	switch {
	case len(trailer) > 0:
		w.appendTrailers(s, trailer)
	case s.last.batch == w.batch && !w.closed:
		w.pending[s.last.at+4] |= byte(xhttp2.FlagDataEndStream)
	default:
		w.beginFrame()
		w.pending = appendFrameHeader(w.pending, 0, xhttp2.FrameData, xhttp2.FlagDataEndStream, s.id)
	}
	s.held.Store(false)
	if w.joinLocked() {
		return w.lead(s)
	}
	return nil
}

// requestSent notes that the request is complete, with END_STREAM.
func (s *Stream) requestSent() {
	s.mu.Lock()
	s.sent, s.sentEnd = true, true
	over := s.recvEnd && s.closeLocked()
	s.wakeLocked() // its reader's time begins
	s.mu.Unlock()
	if over {
		s.c.forget(s)
	}
}

// AbortRequest leaves the body unfinished. The server never sees an end of it.
// Without a response or a failure so far, or where the body itself failed, the
// stream is reset at once; otherwise the response may still be read, and the stream is
// reset afterwards.
func (s *Stream) AbortRequest() {
	s.mu.Lock()
	answered := s.hasFinal || s.failure != nil
	s.mu.Unlock()
	switch {
	case s.bodyErr != nil:
		s.fail(s.bodyErr)
	case !answered:
		s.fail(errUnfinished)
	case s.open:
		s.InterruptWrite()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
	s.wakeLocked()
}

// InterruptWrite makes a Write that waits, and every later one, fail at once.
// It may be called from any goroutine. The stream lives on.
func (s *Stream) InterruptWrite() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = true
	s.wakeLocked()
}
