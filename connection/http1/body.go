package http1

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A body closed before its end is read on, so that the connection can be used
// again, as long as that is cheaper than a new connection.
const (
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)

var errBodyAbandoned = errors.New("the response body is no longer readable: its exchange has ended")

type bodyKind uint8

const (
	sizedBody   bodyKind = iota // by Content-Length
	chunkedBody                 // by chunks
	closeBody                   // by the end of the connection
)

// body is the content of the final response. It holds on to the Conn only until
// its end, its failure or Close: by then another exchange may be on it.
type body struct {
	c        *Conn // nil: over, see err
	response *http.Response
	kind     bodyKind
	phase    chunkPhase
	left     int64 // bytes left of the body (sizedBody) or of the chunk (chunkedBody)
	received int64
	excess   int   // chunkedBody: bytes of chunk lines beyond what content accounts for
	err      error // what Read returns when c is nil
}

var _ io.WriterTo = (*body)(nil)

// open gives m a body that is read from c.
func (c *Conn) open(m *message, kind bodyKind, size int64) {
	m.body = body{c: c, response: &m.response, kind: kind, left: size}
	m.response.Body = &m.body
	c.body = &m.body
}

// Read reads the content. The last bytes come together with io.EOF where the end
// is known by then.
func (b *body) Read(p []byte) (int, error) {
	if b.c == nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	b.c.armEach()
	return b.read(p)
}

func (b *body) read(p []byte) (n int, err error) {
	switch b.kind {
	case sizedBody:
		n, err = b.readSized(p)
	case chunkedBody:
		n, err = b.readChunks(p)
	default:
		n, err = b.readToClose(p)
	}
	b.received += int64(n)
	switch {
	case err == io.EOF:
		b.finish()
	case err != nil:
		b.fail(err)
	}
	return n, err
}

func (b *body) readSized(p []byte) (int, error) {
	size := b.received + b.left
	n, err := b.c.readContent(p[:min(int64(len(p)), b.left)], b.left)
	b.left -= int64(n)
	if err != nil {
		return n, cutOff(err, "response body after %d of %d bytes", b.received, size)
	}
	if b.left == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (b *body) readToClose(p []byte) (int, error) {
	n, err := b.c.readContent(p, int64(len(p)))
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF && b.c.cutBelowTLS() {
		// TLS without a close_notify: somebody may have cut it (RFC 9112 9.8).
		return n, fmt.Errorf("the connection ended without saying that the response body is complete, after %d bytes: %w", b.received, io.ErrUnexpectedEOF)
	}
	return n, err
}

// readContent reads body bytes into p, of which left are still to come: what is
// buffered first; then straight from the connection where p is large or takes all
// there is, and by way of the buffer where it is small.
func (c *Conn) readContent(p []byte, left int64) (int, error) {
	if c.in.buffered() == 0 {
		if len(p) >= len(c.in.b) || int64(len(p)) == left {
			return c.readOnce(p)
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.in.data())
	c.in.r += n
	return n, nil
}

// WriteTo copies what is left of the body to w, by large pieces.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	buffer := largeBuffers.Get().(*[copySize]byte)
	defer largeBuffers.Put(buffer)
	var written int64
	for {
		n, err := b.Read(buffer[:])
		if n > 0 {
			m, werr := w.Write(buffer[:n])
			written += int64(m)
			if werr == nil && m < n {
				werr = io.ErrShortWrite
			}
			if werr != nil {
				return written, werr
			}
		}
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}
	}
}

// Close ends the body; Read then fails with http.ErrBodyReadAfterClose. What is
// left is read and dropped where that is cheap, for at most 100 ms, and the
// connection can be used again only if that reached the end.
func (b *body) Close() error {
	if b.c != nil {
		b.drain()
	}
	if b.c != nil {
		b.fail(nil)
	}
	b.err = http.ErrBodyReadAfterClose
	return nil
}

func (b *body) drain() {
	c := b.c
	if !c.worthDraining() || b.kind == closeBody || b.kind == sizedBody && b.left > drainBytes {
		return
	}
	limit := drainTime
	if t := c.x.ReadTimeout; t > 0 {
		limit = min(limit, t)
	}
	c.armWithin(limit)
	buffer := largeBuffers.Get().(*[copySize]byte)
	defer largeBuffers.Put(buffer)
	for dropped := 0; dropped < drainBytes && b.c != nil; {
		n, _ := b.read(buffer[:min(copySize, drainBytes-dropped)])
		dropped += n
	}
}

// worthDraining reports whether the connection could be used again if only the
// response were at its end.
func (c *Conn) worthDraining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request == requestFinished && !c.spoiled && !c.closeAsked
}

// finish ends the body at its end.
func (b *body) finish() {
	b.c.responseDone()
	b.c, b.err = nil, io.EOF
}

// fail ends the body before its end.
func (b *body) fail(err error) {
	b.c.spoiled = true
	b.c.body = nil
	b.c, b.err = nil, err
}

// takeTrailer puts the fields of a trailer section where the caller finds them.
// Those that would change the framing after the fact are dropped (RFC 9110
// 6.5.1).
func (b *body) takeTrailer(block []byte) error {
	spans, err := splitFields(block, nil, b.c.x.MaxHeaderFields)
	if err != nil {
		return err
	}
	if len(spans) == 0 {
		return nil
	}
	fields := make(http.Header, len(spans))
	addFields(fields, string(block), spans)
	for name, values := range fields {
		if isFraming(name) {
			continue
		}
		if b.response.Trailer == nil {
			b.response.Trailer = make(http.Header, len(fields))
		}
		b.response.Trailer[name] = values
	}
	return nil
}
