package http2

import (
	"io"
	"net/http"
	"os"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// body is the body of a final response: the Stream in that role.
type body Stream

var _ io.WriterTo = (*body)(nil)

// Read returns content as it comes. What came before the stream failed is
// delivered first. Each wait is bounded by the read timeout once the request
// is complete.
func (b *body) Read(p []byte) (int, error) {
	s := (*Stream)(b)
	if len(p) == 0 {
		return 0, nil
	}
	piece, err := s.nextPiece()
	if err != nil {
		return 0, err
	}
	n := copy(p, piece)
	s.took(n)
	return n, nil
}

// WriteTo writes the rest of the content to w, from where it was read into.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	s := (*Stream)(b)
	var total int64
	for {
		piece, err := s.nextPiece()
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		n, err := w.Write(piece)
		n = min(max(n, 0), len(piece))
		s.took(n)
		total += int64(n)
		if err == nil && n < len(piece) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return total, err
		}
	}
}

// Close gives up what was not read: unless the exchange is complete, the
// stream is reset with CANCEL, the request's body included. It does not wait
// and may be called beside a Read, which then returns.
func (b *body) Close() error {
	s := (*Stream)(b)
	s.mu.Lock()
	closed := s.bodyClosed
	s.bodyClosed = true
	whole := s.recvEnd && s.sentEnd && s.buffered == 0
	s.mu.Unlock()
	if !closed && !whole {
		s.fail(errGivenUp)
	}
	return nil
}

// nextPiece waits for content and returns a piece of it. took is due.
func (s *Stream) nextPiece() ([]byte, error) {
	var wait readWait
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.bodyClosed:
			return nil, http.ErrBodyReadAfterClose
		case s.cause != nil:
			return nil, s.cause
		case s.cur.k == nil && len(s.segments) > 0:
			s.cur = s.segments[0]
			s.segments[0] = segment{}
			s.segments = s.segments[1:]
			fallthrough
		case s.cur.k != nil:
			s.reading = true
			return s.cur.bytes(), nil
		case s.failure != nil:
			return nil, s.failure
		case s.recvEnd:
			if s.trailer != nil {
				s.resp.Trailer = addTrailers(s.resp.Trailer, s.trailer.f)
				s.trailer.free()
				s.trailer = nil
			}
			return nil, io.EOF
		}
		if !s.parkReader(&wait) {
			return nil, os.ErrDeadlineExceeded
		}
	}
}

// took notes that n bytes of the piece were read and gives the windows back.
func (s *Stream) took(n int) {
	s.mu.Lock()
	s.reading = false
	if s.cause != nil {
		s.dropCur() // fail has accounted for it
		s.mu.Unlock()
		return
	}
	s.cur.r += int32(n)
	s.c.buffered.Add(-int64(n))
	s.buffered -= int64(n)
	s.taken += int64(n)
	if s.cur.r < s.cur.w {
		s.mu.Unlock()
		return
	}
	s.dropCur()
	taken, dry := s.taken, s.buffered == 0
	s.taken = 0
	grant, least := s.refillLocked(taken, dry)
	s.mu.Unlock()
	s.refill(grant, least)
	s.c.credit(taken, dry)
}

func (s *Stream) dropCur() {
	if s.cur.k != nil {
		s.cur.k.release()
		s.cur = segment{}
	}
}

// dropLocked drops what was received and not read. It returns how much of the
// connection's window is to be given back.
func (s *Stream) dropLocked() int64 {
	for _, g := range s.segments {
		g.k.release()
	}
	s.segments = nil
	if !s.reading {
		s.dropCur()
	}
	n := s.buffered + s.taken
	s.c.buffered.Add(-s.buffered)
	s.buffered, s.taken = 0, 0
	return n
}

// beginData takes the header of a frame of DATA: total bytes of window, content
// bytes of body. It returns how many of them the stream wants; less than 0: it
// does not want the frame. err is for after them.
func (s *Stream) beginData(total, content int) (want int, late *wire.ProtocolError) {
	s.mu.Lock()
	if s.cause != nil || s.closed {
		s.mu.Unlock()
		return -1, nil
	}
	var err *wire.ProtocolError
	code := xhttp2.ErrCodeProtocol
	switch {
	case !s.window.arrived(total):
		code = xhttp2.ErrCodeFlowControl
		err = broken(code, "more DATA than the stream's window")
	case !s.hasFinal:
		err = broken(code, "DATA before the response's head")
	case s.recvEnd:
		code = xhttp2.ErrCodeStreamClosed
		err = broken(code, "DATA after the end of the stream")
	case s.bodiless && content > 0:
		err = wire.Protocolf("content in a response to %s with status %d, which has none", s.method, s.final.code)
	default:
		want = content
		if s.rest >= 0 && int64(content) > s.rest {
			want = int(s.rest)
			late = wire.Protocolf("the response is longer than its content-length")
		}
		if s.rest > 0 {
			s.rest -= int64(want)
		}
		if total == want {
			s.mu.Unlock()
			return want, late
		}
		// Padding is nobody's to read, and there may be no reader's turn to grant it.
		grant, least := s.refillLocked(int64(total-want), s.buffered+int64(want) == 0)
		s.mu.Unlock()
		s.refill(grant, least)
		return want, late
	}
	s.mu.Unlock()
	s.violated(code, err)
	return -1, nil
}

// shortOf is the error of a body that ended n bytes too early.
func shortOf(n int64) error {
	err := wire.Protocolf("the response ended %d bytes short of its content-length", n)
	err.Err = io.ErrUnexpectedEOF
	return err
}
