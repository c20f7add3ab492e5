package interceptors

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/catena-http/catena/connection"
)

// gzipBody is the decoded body of a response. Close may be called beside a Read
// that blocks, and ends it. One goroutine reads.
type gzipBody struct {
	network *http.Response // its Body is the coded one
	decoded *http.Response
	call    *connection.StreamAllocation

	state    atomic.Int32
	released atomic.Bool // the network's body was closed

	// Of the one who reads; of Close where nobody does.
	decoder *decoder // nil before the first Read and after the end
	err     error    // what Read returns after the end
}

// The states of a gzipBody.
const (
	gzipIdle    = iota
	gzipReading // a Read is under way
	gzipClosing // a Read is under way and Close was called
	gzipEnded   // read to the end, or failed
	gzipClosed  // by Close
)

// Read decodes. The decoder comes with the first Read, so that nothing is read
// ahead of it.
func (b *gzipBody) Read(p []byte) (int, error) {
	if !b.state.CompareAndSwap(gzipIdle, gzipReading) {
		return 0, b.refusal()
	}
	if len(p) == 0 {
		return 0, b.leave(nil)
	}
	if b.decoder == nil {
		b.decoder = newDecoder(b.network.Body)
	}
	n, err := b.decoder.Read(p)
	return n, b.leave(err)
}

// refusal is what a Read gets that may not begin.
func (b *gzipBody) refusal() error {
	switch b.state.Load() {
	case gzipEnded:
		return b.err
	case gzipReading:
		return errors.New("the response body is being read by another goroutine")
	default:
		return http.ErrBodyReadAfterClose
	}
}

// leave ends a Read that gave err, and returns what the reader gets.
func (b *gzipBody) leave(err error) error {
	if err == nil {
		if b.state.CompareAndSwap(gzipReading, gzipIdle) {
			return nil
		}
		b.giveBack()
		b.state.Store(gzipClosed)
		return http.ErrBodyReadAfterClose
	}
	b.err = b.explain(err)
	b.giveBack()
	if err := b.err; b.state.CompareAndSwap(gzipReading, gzipEnded) {
		return err
	}
	b.state.Store(gzipClosed)
	return http.ErrBodyReadAfterClose
}

// explain is the reader's error for one of the decoder's. What the network's body
// failed with is explained already. After an end or a failure that is not the
// network's, the rest of the network's body is not wanted: Close drops what is
// cheap to drop, and lets the connection be used again.
func (b *gzipBody) explain(err error) error {
	switch network := b.decoder.networkErr(); {
	case network == io.EOF && err == io.EOF:
		b.decoded.Trailer = b.network.Trailer
		return io.EOF
	case network != nil && network != io.EOF:
		return network
	case err == io.EOF:
		b.release()
		b.decoded.Trailer = b.network.Trailer
		return io.EOF
	}
	if b.state.Load() == gzipReading {
		err = b.call.BodyFailed(fmt.Errorf("decode the response body: %w", err))
	}
	b.release()
	return err
}

func (b *gzipBody) giveBack() {
	if b.decoder != nil {
		b.decoder.free()
		b.decoder = nil
	}
}

// release closes the network's body, once.
func (b *gzipBody) release() error {
	if b.released.Swap(true) {
		return nil
	}
	return b.network.Body.Close()
}

// Close ends the body; the rest of it is dropped.
func (b *gzipBody) Close() error {
	switch {
	case b.state.CompareAndSwap(gzipIdle, gzipClosed):
		b.giveBack()
	case b.state.CompareAndSwap(gzipReading, gzipClosing):
	}
	return b.release()
}
