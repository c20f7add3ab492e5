package http2

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// WriteRequestHeaders opens the stream with req's head. bodySize is 0 for no
// body, -1 for one of unknown length. Where a body or trailers are to come, the
// head may wait for them until Flush. It fails with the reason why the stream
// could not be opened within the write timeout; after an error it is of no use
// but to End.
func (s *Stream) WriteRequestHeaders(req *http.Request, bodySize int64) error {
	out, err := outgoing(req, s.c.opts.Secure)
	if err != nil {
		return err
	}
	s.method = out.method
	s.open = bodySize != 0 || len(out.trailer) > 0
	s.size, s.left = bodySize, bodySize
	if err := s.mayWrite(); err != nil {
		return err
	}
	if asksForWebSocket(req, bodySize) {
		if err := s.extend(&out); err != nil {
			return err
		}
		s.open, s.size, s.left = true, -1, -1
	}
	if err := s.c.admit(s); err != nil {
		return err
	}
	return s.c.out.openStream(s, &out)
}

// openStream writes the head of s, unless more is to follow soon.
func (w *writer) openStream(s *Stream, out *message) error {
	w.mu.Lock()
	s.id = w.nextID
	if err := w.c.register(s); err != nil {
		w.mu.Unlock()
		return err
	}
	s.mu.Lock()
	s.opened = true
	s.sentEnd = !s.open
	gone := s.cause != nil || s.failure != nil
	s.mu.Unlock()
	if gone {
		w.mu.Unlock()
		w.c.forget(s)
		return s.mayWrite()
	}
	w.nextID += 2
	s.batch.Store(w.batch)
	w.appendRequest(s, out)
	if w.nextID >= lastStreamID {
		defer w.c.retire(errExhausted)
	}
	if s.open {
		s.held.Store(true)
		w.mu.Unlock()
		return nil
	}
	if w.joinLocked() {
		return w.lead(s)
	}
	return nil
}

// appendRequest adds the HEADERS of s. mu is held.
func (w *writer) appendRequest(s *Stream, out *message) {
	start := w.beginBlock()
	w.field(":method", out.method)
	w.field(":authority", out.authority)
	if out.method != http.MethodConnect || out.protocol != "" {
		w.field(":scheme", out.scheme)
		w.field(":path", out.path)
	}
	if out.protocol != "" {
		w.field(":protocol", out.protocol)
	}
	for name, values := range out.header {
		lower := lowerName(name)
		values = out.sends(lower, values)
		if lower == "cookie" {
			w.cookies(values)
			continue
		}
		for _, v := range values {
			w.field(lower, v)
		}
	}
	if len(out.trailer) > 0 {
		w.field("trailer", strings.Join(sortedNames(out.trailer), ","))
	}
	if s.size > 0 || s.size == 0 && !s.open && sendsLength(out.method) {
		w.field("content-length", strconv.FormatInt(s.size, 10))
	}
	var flags xhttp2.Flags
	if !s.open {
		flags = xhttp2.FlagHeadersEndStream
	}
	w.endBlock(start, s.id, flags)
}

// sendsLength reports whether a request of the method without a body says so.
func sendsLength(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return true
	}
	return false
}

// appendTrailers adds the trailer section of s, which ends the stream.
func (w *writer) appendTrailers(s *Stream, trailer http.Header) {
	start := w.beginBlock()
	for name, values := range trailer {
		lower := lowerName(name)
		for _, v := range values {
			w.field(lower, v)
		}
	}
	w.endBlock(start, s.id, xhttp2.FlagHeadersEndStream)
}

// cookies sends each cookie as a field of its own, which compresses better (RFC
// 9113 8.2.3).
func (w *writer) cookies(values []string) {
	for _, v := range values {
		for {
			crumb, rest, more := strings.Cut(v, ";")
			if crumb = strings.TrimLeft(crumb, " "); crumb != "" {
				w.field("cookie", crumb)
			}
			if !more {
				break
			}
			v = rest
		}
	}
}

// shortSecret is the length below which a cookie could be guessed by trying what
// compresses (RFC 7541 7.1.3).
const shortSecret = 20

// field encodes a field. Credentials never enter the table.
func (w *writer) field(name, value string) {
	f := hpack.HeaderField{Name: name, Value: value}
	switch name {
	case "authorization", "proxy-authorization":
		f.Sensitive = true
	case "cookie":
		f.Sensitive = len(value) < shortSecret
	}
	w.henc.WriteField(f)
}

// beginBlock leaves room for the header of the first frame.
func (w *writer) beginBlock() (start int) {
	w.beginFrame()
	start = len(w.pending)
	w.pending = append(w.pending, make([]byte, frameHeaderLen)...)
	return start
}

// endBlock puts what was encoded since beginBlock into HEADERS and, beyond the
// server's frame size, CONTINUATION frames.
func (w *writer) endBlock(start int, stream uint32, flags xhttp2.Flags) {
	block := w.pending[start+frameHeaderLen:]
	limit := int(w.c.maxFrame.Load())
	if len(block) <= limit {
		putFrameHeader(w.pending[start:], len(block), xhttp2.FrameHeaders, flags|xhttp2.FlagHeadersEndHeaders, stream)
		return
	}
	block = slices.Clone(block)
	w.pending = w.pending[:start]
	typ := xhttp2.FrameHeaders
	for len(block) > 0 {
		n := min(len(block), limit)
		if n == len(block) {
			flags |= xhttp2.FlagContinuationEndHeaders
		}
		w.pending = appendFrameHeader(w.pending, n, typ, flags, stream)
		w.pending = append(w.pending, block[:n]...)
		block = block[n:]
		typ, flags = xhttp2.FrameContinuation, 0
	}
}
