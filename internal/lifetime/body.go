package lifetime

import (
	"io"
	"sync/atomic"
)

// Body is a request body that is closed at most once, whoever closes it, that a
// Guard closes when the call ends, and that knows whether it was touched.
type Body struct {
	body    io.ReadCloser
	closed  atomic.Bool
	touched atomic.Bool
}

// OnceBody is body, closed at most once. A Body stays what it is.
func OnceBody(body io.ReadCloser) *Body {
	if b, ok := body.(*Body); ok {
		return b
	}
	return &Body{body: body}
}

// Read reads from the body underneath.
func (b *Body) Read(p []byte) (int, error) {
	if !b.touched.Load() {
		b.touched.Store(true)
	}
	return b.body.Read(p)
}

// Source is the body underneath, for a codec that knows a shorter way than Read.
// The body counts as touched from now on.
func (b *Body) Source() io.Reader {
	b.touched.Store(true)
	return b.body
}

// Close closes the body underneath the first time.
func (b *Body) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	return b.body.Close()
}

// Interrupt closes the body (Hook).
func (b *Body) Interrupt() { b.Close() }

// Touched reports whether the body was read from or closed.
func (b *Body) Touched() bool { return b.touched.Load() || b.closed.Load() }
