package catena

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// callBody is the body of a response as the application gets it where it is not
// the connection's own: decoded, or an interceptor's. The call ends with it. Close
// may be called beside a Read.
type callBody struct {
	call     *Call
	body     io.ReadCloser
	switched bool // after a 101: read and written side by side, it ends by Close alone
	state    atomic.Int32
	err      error // what Read returns once the body is over; set before state
}

// The states of a callBody.
const (
	bodyIdle    = iota
	bodyInUse   // a Read is under way
	bodyClosing // a Read and a Close are: the later of them ends the call
	bodyLeft    // of these one is done
	bodyOver
)

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

func (b *callBody) Read(p []byte) (n int, err error) {
	if b.switched {
		if n, err = b.body.Read(p); err != nil && err != io.EOF {
			err = b.call.failure(err)
		}
		return n, err
	}
	if !b.state.CompareAndSwap(bodyIdle, bodyInUse) {
		return 0, b.refusal()
	}
	returned := false
	defer func() {
		if !returned && !b.state.CompareAndSwap(bodyInUse, bodyIdle) { // a panic
			b.depart()
		}
	}()
	n, err = b.body.Read(p)
	err = b.leave(err)
	returned = true
	return n, err
}

// refusal is what a Read gets that may not begin.
func (b *callBody) refusal() error {
	switch b.state.Load() {
	case bodyOver:
		return b.err
	case bodyInUse:
		return errors.New("the response body is being read by another goroutine")
	default:
		return http.ErrBodyReadAfterClose
	}
}

// leave ends a Read that gave err, and returns what the reader gets. The end of a
// body whose upload goes on is not the call's.
func (b *callBody) leave(err error) error {
	next, end := int32(bodyIdle), false
	if err != nil && (err != io.EOF || !b.call.allocation.Uploading()) {
		next, end = bodyOver, true
		if err != io.EOF {
			err = b.call.failure(err)
		}
		b.err = err
	}
	switch {
	case !b.state.CompareAndSwap(bodyInUse, next):
		b.depart()
		if err != io.EOF {
			err = http.ErrBodyReadAfterClose
		}
	case end:
		b.end(err)
	}
	return err
}

// Close ends the body. Beside a Read it makes that end, by closing what is read
// from.
func (b *callBody) Close() error {
	for {
		switch b.state.Load() {
		case bodyIdle:
			if b.state.CompareAndSwap(bodyIdle, bodyLeft) {
				defer b.depart()
				return b.body.Close()
			}
		case bodyInUse:
			if b.state.CompareAndSwap(bodyInUse, bodyClosing) {
				defer b.depart()
				defer b.call.allocation.CloseBody() // what is underneath may not have
				return b.body.Close()
			}
		default:
			return nil
		}
	}
}

// depart is the end of a Read or a Close after which the body is closed. Where the
// two run side by side, the later one ends the call.
func (b *callBody) depart() {
	if b.state.CompareAndSwap(bodyClosing, bodyLeft) {
		return
	}
	b.err = http.ErrBodyReadAfterClose
	b.state.Store(bodyOver)
	b.end(nil)
}

// end ends the call, with err where it is not io.EOF. A connection's body that an
// interceptor did not end is ended before.
func (b *callBody) end(err error) {
	b.call.allocation.CloseBody()
	if err == io.EOF {
		err = nil
	}
	b.call.end(err)
}
