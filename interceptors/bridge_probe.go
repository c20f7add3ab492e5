package interceptors

import (
	"context"
	"io"
	"time"

	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/internal/wire"
)

// probeTime bounds the wait for the first bytes of a body that may be empty. A
// body that takes longer is not taken for empty.
const probeTime = 100 * time.Millisecond

// probe finds out whether a body of unknown size is empty: then it is closed and
// nil is returned, otherwise a body with the same content. It waits for at most
// probeTime, and not beyond the end of ctx or of the call. The application avoids
// the wait by a ContentLength of -1.
func probe(ctx context.Context, call *lifetime.Context, body io.ReadCloser) (io.ReadCloser, error) {
	p := &probed{body: lifetime.OnceBody(body), first: make(chan struct{})}
	go p.readFirst() // ends with one Read of the body, which Close ends
	patience := time.NewTimer(probeTime)
	defer patience.Stop()
	select {
	case <-p.first:
		p.rethrow()
	case <-patience.C:
		return p, nil
	case <-ctx.Done():
		p.Close()
		return nil, lifetime.Cause(ctx)
	case <-call.Done():
		p.Close()
		return nil, lifetime.Cause(call)
	}
	switch {
	case p.n > 0 || p.err == nil:
		return p, nil
	case p.err == io.EOF:
		p.Close()
		return nil, nil
	default:
		p.Close()
		return nil, &wire.RequestBodyError{Err: p.err}
	}
}

// probed is a body whose first bytes are read already, or are being read.
type probed struct {
	body  *lifetime.Body
	first chan struct{} // closed when the fields below are set

	n        int // bytes in buffer
	err      error
	panicked any // what the body's Read panicked with
	buffer   [512]byte
	taken    int // of them, by Read
}

func (p *probed) readFirst() {
	defer close(p.first)
	defer func() { p.panicked = recover() }()
	p.n, p.err = p.body.Read(p.buffer[:])
}

// rethrow lets a panic of the body go on where the body is used.
func (p *probed) rethrow() {
	if p.panicked != nil {
		panic(p.panicked)
	}
}

// Read returns the first bytes, then the rest of the body.
func (p *probed) Read(b []byte) (int, error) {
	<-p.first
	p.rethrow()
	if p.taken < p.n {
		n := copy(b, p.buffer[p.taken:p.n])
		p.taken += n
		return n, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.body.Read(b)
}

// Close closes the body, once.
func (p *probed) Close() error { return p.body.Close() }
