package catena

import (
	"io"
	"sync/atomic"
)

// callBody is the body of a response as the application gets it where it is not
// the connection's own: decoded, or an interceptor's. The call ends with it.
type callBody struct {
	call     *Call
	body     io.ReadCloser
	switched bool // after a 101: it ends by Close alone
	ended    atomic.Bool
}

type halfCloser interface{ CloseWrite() error }

// public is the body for the application: it can be written to, and that side be
// closed, where the one underneath can, as after a 101.
func (b *callBody) public() io.ReadCloser {
	w, writes := b.body.(io.Writer)
	half, halfCloses := b.body.(halfCloser)
	switch {
	case writes && halfCloses:
		return struct {
			*callBody
			io.Writer
			halfCloser
		}{b, w, half}
	case writes:
		return struct {
			*callBody
			io.Writer
		}{b, w}
	}
	return b
}

func (b *callBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	switch {
	case err == nil:
	case err == io.EOF:
		if !b.switched && !b.call.allocation.Uploading() {
			b.end(nil)
		}
	default:
		err = b.call.failure(err)
		if !b.switched {
			b.end(err)
		}
	}
	return n, err
}

func (b *callBody) Close() error {
	err := b.body.Close()
	b.end(nil)
	return err
}

// end ends the call. A connection's body that an interceptor did not end is ended
// before.
func (b *callBody) end(err error) {
	if b.ended.Swap(true) {
		return
	}
	b.call.allocation.CloseBody()
	b.call.end(err)
}
