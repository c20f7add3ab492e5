package http2

import (
	"errors"
	"net/textproto"
	"strconv"
	"strings"
	"sync"

	"github.com/catena-http/catena/internal/wire"
	"golang.org/x/net/http/httpguts"
	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// blockExcess is how many bytes a header block may have on the wire beyond
	// what any allowed one can need; frameCost is what each of its frames costs
	// on top of its length, so that empty ones are not free.
	blockExcess = 64 << 10
	frameCost   = 32
	// keptNames bounds the field names that a connection remembers.
	keptNames = 200
)

// A field is a field of a head or trailer section, its name in canonical form.
type field struct{ name, value string }

// fieldList is memory for the fields of one section, on its way between the
// reading goroutine and the caller's.
type fieldList struct{ f []field }

var fieldLists = sync.Pool{New: func() any { return new(fieldList) }}

func (l *fieldList) free() {
	clear(l.f)
	l.f = l.f[:0]
	if cap(l.f) <= 256 {
		fieldLists.Put(l)
	}
}

// headerBlock is a header block that is being read (RFC 9113 4.3). It belongs to
// the reading goroutine.
//
// Every block is decoded to its end, whoever wants it, because the decoder's
// state depends on it. Once a field breaks a rule or a limit, the rest is
// decoded without making anything of it.
type headerBlock struct {
	c      *Conn
	dec    fieldDecoder
	names  map[string]string // canonical forms of valid names beyond canonicalNames
	open   bool              // CONTINUATION is to come
	stream uint32
	end    bool // END_STREAM
	s      *Stream
	cost   int

	fields              *fieldList
	status              string
	regular             bool // a regular field came
	count, size         int
	maxFields, maxBytes int
	trailer             bool
	bad                 *wire.ProtocolError // the first thing that is wrong
}

func (b *headerBlock) init(c *Conn) {
	b.c = c
	b.dec.emit = b.emit
	b.dec.maxString = int(c.opts.headerListSize())
}

// admits checks that h may follow: between the frames of a block no other may
// stand (RFC 9113 6.10).
func (b *headerBlock) admits(h frameHeader) error {
	continues := h.typ == xhttp2.FrameContinuation
	if b.open == continues && (!continues || h.stream == b.stream) {
		return nil
	}
	if b.open {
		return b.c.violation(xhttp2.ErrCodeProtocol, "%v on stream %d within the header block of stream %d", h.typ, h.stream, b.stream)
	}
	return b.c.violation(xhttp2.ErrCodeProtocol, "CONTINUATION without HEADERS")
}

// headers takes a HEADERS frame (RFC 9113 6.2).
func (in *reader) headers(h frameHeader, p []byte) error {
	c, b := in.c, &in.block
	pad := 0
	if h.flags.Has(xhttp2.FlagHeadersPadded) {
		if len(p) == 0 {
			return c.violation(xhttp2.ErrCodeFrameSize, "padded HEADERS without a length of padding")
		}
		pad, p = int(p[0]), p[1:]
	}
	if h.flags.Has(xhttp2.FlagHeadersPriority) {
		if len(p) < 5 {
			return c.violation(xhttp2.ErrCodeFrameSize, "HEADERS of %d bytes with a priority", h.length)
		}
		p = p[5:]
	}
	if pad > len(p) {
		return c.violation(xhttp2.ErrCodeProtocol, "HEADERS of %d bytes with %d bytes of padding", h.length, pad)
	}
	p = p[:len(p)-pad]
	c.mu.Lock()
	s := c.streams[h.stream]
	idle := s == nil && c.idleLocked(h.stream)
	c.mu.Unlock()
	if idle {
		return c.violation(xhttp2.ErrCodeProtocol, "HEADERS on stream %d, which was never opened", h.stream)
	}
	if s == nil {
		if err := in.idle.spend(c); err != nil {
			return err
		}
	} else {
		in.idle.fillUp()
	}
	b.begin(s, h)
	return in.fragment(p, h.flags.Has(xhttp2.FlagHeadersEndHeaders))
}

func (in *reader) continuation(h frameHeader, p []byte) error {
	return in.fragment(p, h.flags.Has(xhttp2.FlagContinuationEndHeaders))
}

// fragment takes a part of a block, and what the block says after the last one.
func (in *reader) fragment(p []byte, last bool) error {
	b := &in.block
	if err := b.decode(p, last); err != nil || !last {
		return err
	}
	b.open = false
	s, fields := b.s, b.fields
	b.s, b.fields = nil, nil
	in.touch(s)
	if s != nil {
		s.head(b, fields)
	}
	return nil
}

func (b *headerBlock) begin(s *Stream, h frameHeader) {
	b.s, b.stream, b.end = s, h.stream, h.flags.Has(xhttp2.FlagHeadersEndStream)
	b.open, b.cost, b.status, b.regular, b.bad = true, 0, "", false, nil
	b.count, b.size = 0, 0
	b.dec.muted = s == nil
	if s != nil {
		b.maxFields = least(s.x.MaxHeaderFields, b.c.opts.MaxHeaderFields)
		b.maxBytes = least(s.x.MaxHeaderBytes, b.c.opts.MaxHeaderBytes)
		b.trailer = s.headed()
		b.fields = fieldLists.Get().(*fieldList)
	}
}

// least is the smaller of an exchange's limit, which may be none, and the
// connection's.
func least(exchange, connection int) int {
	if exchange <= 0 {
		return connection
	}
	return min(exchange, connection)
}

func (b *headerBlock) decode(p []byte, last bool) error {
	b.cost += len(p) + frameCost
	if b.cost > int(b.c.opts.headerListSize())+blockExcess {
		return b.c.violation(xhttp2.ErrCodeEnhanceYourCalm, "a header block of more than %d bytes", b.cost-frameCost)
	}
	if err := b.dec.write(p); err != nil {
		return b.broken(err)
	}
	if last {
		if err := b.dec.end(); err != nil {
			return b.broken(err)
		}
	}
	return nil
}

// broken is the error of a block that can not be decoded: the state is lost, and
// the connection with it.
func (b *headerBlock) broken(err error) error {
	if errors.Is(err, hpack.ErrStringLength) {
		return b.c.violation(xhttp2.ErrCodeEnhanceYourCalm, "a header field of more than %d bytes", b.c.opts.headerListSize())
	}
	return b.c.violation(xhttp2.ErrCodeCompression, "%v", err)
}

// emit takes a decoded field.
func (b *headerBlock) emit(name, value string) {
	if b.bad = b.add(name, value); b.bad != nil {
		b.dec.muted = true
	}
}

// add checks a field (RFC 9113 8.2, 8.3) and keeps it.
func (b *headerBlock) add(wireName, value string) *wire.ProtocolError {
	if strings.HasPrefix(wireName, ":") {
		if wireName != ":status" || b.trailer || b.regular || b.status != "" {
			return malformed("pseudo-header field %.64q out of place", wireName)
		}
		b.status = value
		return nil
	}
	b.regular = true
	b.count++
	b.size += len(wireName) + len(value)
	if b.count > b.maxFields {
		return wire.Protocolf("%s of %d fields, more than the %d allowed", b.what(), b.count, b.maxFields)
	}
	if b.size > b.maxBytes {
		return wire.Protocolf("%s of %d bytes, more than the %d allowed", b.what(), b.size, b.maxBytes)
	}
	name, ok := b.canonical(wireName)
	if !ok {
		return malformed("header field name %.64q", wireName)
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return malformed("the value of header field %.64q", wireName)
	}
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade":
		// They speak of a connection that is not this one (RFC 9113 8.2.2).
		return nil
	}
	b.fields.f = append(b.fields.f, field{name, value})
	return nil
}

// canonicalNames has the fields that responses usually have.
var canonicalNames = func() map[string]string {
	names := make(map[string]string)
	for _, lower := range strings.Fields(`accept-ranges access-control-allow-origin age allow alt-svc cache-control
		content-disposition content-encoding content-language content-length content-range content-security-policy
		content-type date etag expires grpc-message grpc-status last-modified link location retry-after server
		set-cookie strict-transport-security trailer vary via www-authenticate x-cache x-content-type-options
		x-frame-options x-powered-by x-request-id`) {
		names[lower] = textproto.CanonicalMIMEHeaderKey(lower)
	}
	return names
}()

// canonical returns the canonical form of a name and reports whether it is valid.
// What is not usual is remembered.
func (b *headerBlock) canonical(name string) (string, bool) {
	if usual, ok := canonicalNames[name]; ok {
		return usual, true
	}
	if known, ok := b.names[name]; ok {
		return known, true
	}
	if !validName(name) {
		return "", false
	}
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	if len(b.names) < keptNames && len(canonical) <= 64 {
		if b.names == nil {
			b.names = make(map[string]string)
		}
		b.names[name] = canonical
	}
	return canonical, true
}

func (b *headerBlock) what() string {
	switch {
	case b.trailer:
		return "trailer section"
	case len(b.status) == 3 && b.status[0] == '1':
		return "interim head"
	}
	return "response head"
}

// malformed is the error of a message that breaks RFC 9113 8.1.1.
func malformed(format string, args ...any) *wire.ProtocolError {
	err := wire.Protocolf(format, args...)
	err.Reason = "malformed response (PROTOCOL_ERROR): " + err.Reason
	return err
}

// validName reports whether name is a field name as HTTP/2 has it: a token in
// lower case.
func validName(name string) bool {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return httpguts.ValidHeaderFieldName(name)
}

// statusCode reads :status: three digits, 100 or more.
func statusCode(v string) (int, *wire.ProtocolError) {
	if code, err := strconv.Atoi(v); err == nil && len(v) == 3 && code >= 100 {
		return code, nil
	}
	if v == "" {
		return 0, malformed("no :status")
	}
	return 0, malformed(":status %.64q", v)
}

// contentLength reads the field's values; -1: there is none. Equal ones count as
// one (RFC 9110 8.6).
func contentLength(fields []field) (int64, *wire.ProtocolError) {
	seen := ""
	n := int64(-1)
	for _, f := range fields {
		if f.name != "Content-Length" || f.value == seen {
			continue
		}
		v, err := strconv.ParseUint(f.value, 10, 63)
		if err != nil || n >= 0 && int64(v) != n {
			return 0, malformed("content-length %.64q", f.value)
		}
		seen, n = f.value, int64(v)
	}
	return n, nil
}
