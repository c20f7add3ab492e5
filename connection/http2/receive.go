package http2

import (
	"net/http"
	"os"
	"time"
)

// readWait is one wait for the server.
type readWait struct {
	begun  bool
	frames uint64 // that had come when it began
	deadline
}

// parkReader waits until somebody wakes the response's side. The read timeout
// runs once the request is complete: until then the server may rightly be
// silent. When it is over, the stream is ended and parkReader reports false. mu
// is held at the call and afterwards.
func (s *Stream) parkReader(wait *readWait) bool {
	if !wait.begun {
		wait.begun, wait.frames = true, s.c.frames.Load()
	}
	late := s.sent && wait.over(s.r, s.x.ReadTimeout)
	s.mu.Unlock()
	if late {
		s.c.timedOut(wait.frames)
		s.fail(os.ErrDeadlineExceeded)
	} else {
		<-s.r.ch
	}
	s.mu.Lock()
	return !late
}

// AwaitResponse waits at most d for the first head, interim ones included, and
// reports whether one is there. Silence is false and nil.
func (s *Stream) AwaitResponse(d time.Duration) (bool, error) {
	s.letGo()
	var dl deadline
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.cause != nil:
			return false, s.cause
		case s.hasFinal || len(s.interim) > 0:
			return true, nil
		case s.failure != nil:
			return false, s.failure
		case d <= 0 || dl.over(s.r, d):
			return false, nil
		}
		s.mu.Unlock()
		<-s.r.ch
		s.mu.Lock()
	}
}

// ReadResponseHeaders returns the next head: interim ones (1xx) one by one,
// then the final one with its body. started (which may be nil) is called once,
// when the head is there. The whole head is bounded by the read timeout, which
// counts once the request is complete.
//
// The response's Request is nil. Its Trailer is filled when the body is at its
// end; a copy of the Response does not see trailers that were not declared.
func (s *Stream) ReadResponseHeaders(started func()) (*http.Response, error) {
	if s.accepted {
		return nil, errNoHead
	}
	s.letGo()
	h, interim, err := s.nextHead()
	if err != nil {
		return nil, err
	}
	if started != nil {
		started()
	}
	if interim {
		return interimResponse(h), nil
	}
	return s.accept(h)
}

// nextHead waits for a head.
func (s *Stream) nextHead() (h head, interim bool, err error) {
	var wait readWait
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.cause != nil:
			return head{}, false, s.cause
		case len(s.interim) > 0:
			h = s.interim[0]
			s.interim[0], s.interim = head{}, s.interim[1:]
			s.interimSize -= h.size
			return h, true, nil
		case s.hasFinal:
			return s.final, false, nil
		case s.failure != nil:
			return head{}, false, s.failure
		}
		if !s.parkReader(&wait) {
			return head{}, false, os.ErrDeadlineExceeded
		}
	}
}

// accept makes the final response.
func (s *Stream) accept(h head) (*http.Response, error) {
	s.accepted = true
	resp := &s.resp
	h.fill(resp)
	resp.Body = (*body)(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tunneled && h.code < 300 {
		s.x.ReadTimeout, s.x.WriteTimeout = 0, 0
		resp.Body, resp.ContentLength = &tunnel{(*body)(s)}, -1
		return resp, nil
	}
	resp.ContentLength = s.length
	if s.length < 0 && s.headEnded && s.method != http.MethodHead {
		resp.ContentLength = 0
	}
	// Where there can be no content, the end may come in a frame of its own: see
	// it now, so that what has no body needs no reader.
	var wait readWait
	for empty := (s.bodiless || s.length == 0) && s.sent; ; {
		switch {
		case s.cause != nil:
			return nil, s.cause
		case empty && s.failure != nil:
			return nil, s.failure
		case s.recvEnd && (empty || s.headEnded):
			resp.Body = http.NoBody
			if s.trailer != nil {
				resp.Trailer = addTrailers(resp.Trailer, s.trailer.f)
				s.trailer.free()
				s.trailer = nil
			}
			return resp, nil
		case !empty:
			return resp, nil
		}
		if !s.parkReader(&wait) {
			return nil, os.ErrDeadlineExceeded
		}
	}
}
