package lifetime

import (
	"io"
	"sync/atomic"
)

// Body is a request body that is closed at most once, whoever closes it, and
// that a Guard closes when the call ends.
type Body struct {
	io.Reader
	closer io.Closer
	closed atomic.Bool
	// taken is set once the body's sending has begun: whoever sends it closes it.
	taken atomic.Bool
}

// OnceBody is body, closed at most once. A Body stays what it is.
func OnceBody(body io.ReadCloser) *Body {
	if b, ok := body.(*Body); ok {
		return b
	}
	return &Body{Reader: body, closer: body}
}

// Close closes the body underneath the first time.
func (b *Body) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	return b.closer.Close()
}

// Interrupt closes the body (Hook).
func (b *Body) Interrupt() { b.Close() }

// Take says that the body's sending begins.
func (b *Body) Take() { b.taken.Store(true) }

// Taken reports whether the body's sending has begun.
func (b *Body) Taken() bool { return b.taken.Load() }
