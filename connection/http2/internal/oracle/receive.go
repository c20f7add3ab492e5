package oracle

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/catena-http/catena/internal/wire"
)

// AwaitResponse waits at most d for the first head, interim ones included, and
// reports whether one is there. Silence is false and nil.
func (s *Stream) AwaitResponse(d time.Duration) (bool, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for silent := false; ; {
		if s.interims.waiting() {
			return true, nil
		}
		select {
		case <-s.dead:
			return false, s.ended()
		case <-s.answered:
			if s.err == nil || s.interims.waiting() {
				return true, nil
			}
			return false, s.explain(s.err)
		default:
			if silent {
				return false, nil
			}
		}
		select {
		case <-s.interims.ready:
		case <-s.answered:
		case <-s.dead:
		case <-timer.C:
			silent = true // unless something came in the same moment
		}
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
	if s.final {
		return nil, errNoHead
	}
	if started == nil {
		started = func() {}
	}
	s.startWait()
	defer s.stopWait()
	for {
		if resp := s.interims.take(); resp != nil {
			started()
			return resp, nil
		}
		select {
		case <-s.interims.ready:
		case <-s.dead:
			return nil, s.ended()
		case <-s.answered:
			if s.interims.waiting() {
				continue
			}
			if s.err != nil {
				return nil, s.explain(s.err)
			}
			started()
			return s.accept(s.resp)
		}
	}
}

// accept checks the final head and gives it its body.
func (s *Stream) accept(resp *http.Response) (*http.Response, error) {
	s.final = true
	if err := s.checkHead(resp); err != nil {
		s.fail(err)
		return nil, err
	}
	resp.Request, resp.TLS = nil, nil
	ended := endedWithHead(resp)
	bodiless := s.method == http.MethodHead || !bodyAllowed(resp.StatusCode)
	switch {
	case bodiless && ended, ended && resp.ContentLength <= 0:
		s.responseComplete()
		resp.Body = http.NoBody
		return resp, nil
	case ended:
		err := &wire.ProtocolError{
			Reason: "the response ended before its content of " + strconv.FormatInt(resp.ContentLength, 10) + " bytes",
			Err:    io.ErrUnexpectedEOF,
		}
		resp.Body = &body{s: s, resp: resp, rc: s.content, err: err}
		return resp, nil
	}
	b := &body{s: s, resp: resp, rc: s.content, left: resp.ContentLength, empty: bodiless}
	resp.Body = b
	if (bodiless || resp.ContentLength == 0) && s.clock.complete() {
		// The end of the stream comes in a frame of its own: see it now, so
		// that what has no body needs no reader.
		return s.drainEmpty(b)
	}
	return resp, nil
}

func (s *Stream) drainEmpty(b *body) (*http.Response, error) {
	var one [1]byte
	if _, err := b.read(one[:]); err != io.EOF {
		return nil, err
	}
	b.resp.Body = http.NoBody
	return b.resp, nil
}

// responseComplete notes that nothing more of the response is to come.
func (s *Stream) responseComplete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = true
}

// checkHead checks what the engine leaves unchecked of a final head.
func (s *Stream) checkHead(resp *http.Response) error {
	if resp.StatusCode < 200 || resp.StatusCode > 999 || len(resp.Status) < 4 || resp.Status[3] != ' ' {
		return wire.Protocolf("malformed :status %.64q", resp.Status)
	}
	if resp.StatusCode == http.StatusNoContent && resp.ContentLength > 0 {
		return wire.Protocolf("a 204 response announces content of %d bytes", resp.ContentLength)
	}
	return s.checkSize("response head", resp.Header)
}

// checkInterim checks an interim head.
func (s *Stream) checkInterim(resp *http.Response) error {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return wire.Protocolf("a 101 response, which HTTP/2 does not have")
	}
	return s.checkSize("interim head", resp.Header)
}

// checkSize holds the fields of h against the exchange's limits. 0 is no limit
// beyond the connection's.
func (s *Stream) checkSize(what string, h http.Header) error {
	fields, bytes := headerSize(h)
	if limit := s.x.MaxHeaderFields; limit > 0 && fields > limit {
		return wire.Protocolf("%s of %d fields, more than the %d allowed", what, fields, limit)
	}
	if limit := s.x.MaxHeaderBytes; limit > 0 && bytes > limit {
		return wire.Protocolf("%s of %d bytes, more than the %d allowed", what, bytes, limit)
	}
	return nil
}

// headerSize counts the fields of h and the bytes of their names and values.
func headerSize(h http.Header) (fields, bytes int) {
	for name, values := range h {
		for _, v := range values {
			fields++
			bytes += len(name) + len(v)
		}
	}
	return fields, bytes
}

// bodyAllowed reports whether a response with this status has content (RFC
// 9110 6.4.1).
func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

func statusLine(code int) string { return strconv.Itoa(code) + " " + http.StatusText(code) }
