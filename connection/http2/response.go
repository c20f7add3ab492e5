package http2

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// maxInterim bounds the interim heads that wait to be read. A caller that reads
// them counts for itself.
const maxInterim = 100

// A head is a head that came and was not read yet.
type head struct {
	code   int
	size   int
	fields *fieldList
}

// head takes a header block: an interim head, the final one, or trailers. The
// reading goroutine calls it.
func (s *Stream) head(b *headerBlock, fields *fieldList) {
	err := b.bad
	switch {
	case err != nil:
	case b.trailer:
		err = s.trailers(b.end, fields)
	default:
		err = s.anyHead(b, fields)
	}
	if err != nil {
		s.violated(xhttp2.ErrCodeProtocol, err)
	}
}

// anyHead takes an interim head or the final one.
func (s *Stream) anyHead(b *headerBlock, fields *fieldList) *wire.ProtocolError {
	code, err := statusCode(b.status)
	switch {
	case err != nil:
		return err
	case code == http.StatusSwitchingProtocols:
		return wire.Protocolf("a 101 response, which HTTP/2 does not have")
	case code < 200 && b.end:
		return malformed("END_STREAM with an interim head")
	case code < 200:
		return s.interimHead(head{code: code, size: b.size, fields: fields})
	}
	length, err := contentLength(fields.f)
	if err != nil {
		return err
	}
	if code == http.StatusNoContent && length > 0 {
		return wire.Protocolf("a 204 response announces content of %d bytes", length)
	}
	s.finalHead(head{code: code, size: b.size, fields: fields}, length, b.end)
	return nil
}

func (s *Stream) interimHead(h head) *wire.ProtocolError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.interim) == maxInterim || s.interimSize+h.size > s.c.opts.MaxHeaderBytes {
		err := wire.Protocolf("%d interim responses wait to be read", len(s.interim))
		err.Err = wire.ErrTooManyInterim
		return err
	}
	s.interim = append(s.interim, h)
	s.interimSize += h.size
	return nil
}

func (s *Stream) finalHead(h head, length int64, end bool) {
	s.mu.Lock()
	s.final, s.hasFinal = h, true
	s.length, s.rest, s.headEnded = length, length, end
	if s.bodiless = s.method == http.MethodHead || !bodyAllowed(h.code); s.bodiless {
		s.rest = -1
	}
	var over bool
	var err error
	if end {
		over, err = s.endLocked()
	} else if h.code > 299 {
		// The server has answered; what it did not read of the request it
		// need not (RFC 9113 8.1).
		s.refuseLocked(resetError(xhttp2.ErrCodeNo))
		s.wakeLocked()
	}
	s.mu.Unlock()
	s.settle(over, err)
}

// trailers takes a trailer section (RFC 9113 8.1).
func (s *Stream) trailers(end bool, fields *fieldList) *wire.ProtocolError {
	if !end {
		return broken(xhttp2.ErrCodeProtocol, "a second head")
	}
	s.mu.Lock()
	if s.recvEnd {
		s.mu.Unlock()
		return broken(xhttp2.ErrCodeStreamClosed, "HEADERS after the end of the stream")
	}
	s.trailer = fields
	over, err := s.endLocked()
	s.mu.Unlock()
	s.settle(over, err)
	return nil
}

// broken is the error of a stream on which the server broke HTTP/2.
func broken(code xhttp2.ErrCode, reason string) *wire.ProtocolError {
	return wire.Protocolf("the server broke HTTP/2: %v (%s)", code, reason)
}

// bodyAllowed reports whether a response with this status has content (RFC
// 9110 6.4.1).
func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// interimResponse makes the message of an interim head.
func interimResponse(h head) *http.Response {
	resp := &http.Response{Body: http.NoBody}
	h.fill(resp)
	return resp
}

// fill puts a head into resp, and frees its fields.
func (h *head) fill(resp *http.Response) {
	resp.Status, resp.StatusCode = statusLine(h.code), h.code
	resp.Proto, resp.ProtoMajor = "HTTP/2.0", 2
	resp.Header = make(http.Header, len(h.fields.f))
	values := make([]string, len(h.fields.f))
	for i, f := range h.fields.f {
		if f.name == "Trailer" {
			resp.Trailer = declare(resp.Trailer, f.value)
			continue
		}
		if old, ok := resp.Header[f.name]; ok {
			if f.name != "Content-Length" { // equal ones are one
				resp.Header[f.name] = append(old, f.value)
			}
			continue
		}
		values[i] = f.value
		resp.Header[f.name] = values[i : i+1 : i+1]
	}
	h.fields.free()
	h.fields = nil
}

// declare adds the names of a Trailer field to h, without values.
func declare(h http.Header, names string) http.Header {
	if h == nil {
		h = make(http.Header)
	}
	for name := range strings.SplitSeq(names, ",") {
		name = http.CanonicalHeaderKey(strings.Trim(name, " \t"))
		if name != "" {
			h[name] = nil
		}
	}
	return h
}

// addTrailers puts a trailer section into h, without what can not stand there
// (RFC 9110 6.5.1).
func addTrailers(h http.Header, fields []field) http.Header {
	for _, f := range fields {
		switch f.name {
		case "Content-Length", "Trailer", "Transfer-Encoding":
			continue
		}
		if h == nil {
			h = make(http.Header)
		}
		h[f.name] = append(h[f.name], f.value)
	}
	return h
}

var statusLines = sync.OnceValue(func() *[600]string {
	lines := new([600]string)
	for code := range lines {
		if text := http.StatusText(code); text != "" {
			lines[code] = strconv.Itoa(code) + " " + text
		}
	}
	return lines
})

func statusLine(code int) string {
	if lines := statusLines(); code < len(lines) && lines[code] != "" {
		return lines[code]
	}
	return strconv.Itoa(code) + " " + http.StatusText(code)
}

// resetError is the server's RST_STREAM with code.
func resetError(code xhttp2.ErrCode) *wire.StreamResetError {
	return &wire.StreamResetError{Code: uint32(code), Name: code.String()}
}
