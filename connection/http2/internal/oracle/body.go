package oracle

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/catena-http/catena/internal/wire"
)

// body is the body of a final response.
type body struct {
	s    *Stream
	resp *http.Response
	rc   io.ReadCloser // the engine's

	// Of the reader.
	left  int64 // of the content-length; -1: none was sent
	empty bool  // there may be no content (HEAD, 204, 304)
	err   error // sticky

	closed atomic.Bool
}

// Read returns content as it comes. What came before the stream failed is
// delivered first. Each wait is bounded by the read timeout once the request
// is complete.
func (b *body) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	b.s.startWait()
	n, err := b.read(p)
	b.s.stopWait()
	if err != nil && b.closed.Load() {
		return n, http.ErrBodyReadAfterClose
	}
	return n, err
}

func (b *body) read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	if n > 0 && b.empty {
		n, err = 0, wire.Protocolf("content in a response to %s with status %d, which has none", b.s.method, b.resp.StatusCode)
		b.s.fail(err)
	}
	if err != nil {
		b.err = b.atEnd(err)
	}
	return n, b.err
}

// atEnd turns the engine's last word into ours.
func (b *body) atEnd(err error) error {
	if err == io.ErrUnexpectedEOF && b.s.ended() == nil && b.s.c.broken() == nil {
		// The stream ended in order, but before its content-length.
		if !b.empty {
			err = &wire.ProtocolError{
				Reason: fmt.Sprintf("the response ended %d bytes short of its content-length", b.left),
				Err:    err,
			}
			b.s.fail(err)
			return err
		}
		err = io.EOF
	}
	if err != io.EOF {
		return b.s.explainBody(err, b.left == 0)
	}
	if err := b.trailers(); err != nil {
		b.s.fail(err)
		return err
	}
	b.s.responseComplete()
	return io.EOF
}

// trailers checks the trailer section, which the engine has put in place.
func (b *body) trailers() error {
	for _, name := range [...]string{"Content-Length", "Trailer", "Transfer-Encoding"} {
		delete(b.resp.Trailer, name)
	}
	return b.s.checkSize("trailer section", b.resp.Trailer)
}

// Close gives up what was not read: unless the exchange is complete, the
// stream is reset with CANCEL, the request's body included. It does not wait
// and may be called beside a Read, which then returns.
func (b *body) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	if !b.s.whole() {
		b.s.fail(errGivenUp)
	}
	return nil
}
