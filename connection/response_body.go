package connection

import (
	"errors"
	"io"
	"net/http"

	"github.com/catena-http/catena/event"
)

// responseBody is the body of an exchange's response. Close may be called beside
// a Read that blocks, and ends it.
type responseBody Exchange

var (
	_ io.ReadCloser = (*responseBody)(nil)
	_ io.WriterTo   = (*responseBody)(nil)
)

// The states of Exchange.reading.
const (
	bodyIdle    = iota
	bodyInUse   // a Read is under way
	bodyClosing // a Read is under way and Close was called: the reader ends the body
	bodyEnded   // read to its end, or failed: bodyErr says how
	bodyClosed  // by Close
)

// enter takes the body for one Read.
func (x *Exchange) enter() error {
	if x.reading.CompareAndSwap(bodyIdle, bodyInUse) {
		return nil
	}
	switch x.reading.Load() {
	case bodyEnded:
		return x.bodyErr
	case bodyInUse:
		return errors.New("the response body is being read by another goroutine")
	default:
		return http.ErrBodyReadAfterClose
	}
}

// leave ends a Read that gave err, and returns what the reader gets.
func (x *Exchange) leave(n int64, err error) error {
	x.received.Add(n)
	x.bodyBegins()
	if err == nil {
		if x.reading.CompareAndSwap(bodyInUse, bodyIdle) {
			return nil
		}
		return x.closedBeside()
	}
	if err == io.EOF {
		x.bodyErr = io.EOF
		if !x.reading.CompareAndSwap(bodyInUse, bodyEnded) {
			x.cut = true
			x.reading.Store(bodyEnded)
		}
		x.bodyEnds()
		return io.EOF
	}
	if x.reading.Load() == bodyClosing {
		return x.closedBeside()
	}
	return x.bodyFails(err)
}

// left is the end of a Read that returned, or else panicked: in a listener, or in
// the writer that the body was copied to. The body can still be closed then.
func (x *Exchange) left(returned bool) {
	if !returned && !x.reading.CompareAndSwap(bodyInUse, bodyIdle) && x.reading.Load() == bodyClosing {
		x.closedBeside()
	}
}

// closedBeside ends a body that was closed beside the Read that ends now.
func (x *Exchange) closedBeside() error {
	x.cut = true
	x.endByClose()
	return http.ErrBodyReadAfterClose
}

func (x *Exchange) bodyBegins() {
	if !x.bodyStarted {
		x.bodyStarted = true
		x.listener().ResponseBodyStart(x.call())
	}
}

func (x *Exchange) bodyEnds() {
	defer x.partDone()
	x.listener().ResponseBodyEnd(x.call(), x.received.Load())
}

// bodyFails ends a body that could not be read. An upload beside it is stopped.
func (x *Exchange) bodyFails(err error) error {
	cause := x.explain(event.StepRead, err)
	x.allocation.bodyAttempt(x, cause)
	result := x.allocation.owner.BodyFailed(cause)
	x.bodyErr = result
	x.reading.Store(bodyEnded)
	defer func() {
		x.stopUpload()
		x.parts.Store(0)
		x.finish(true)
	}()
	x.listener().ResponseFailed(x.call(), cause)
	x.allocation.judge(x, cause, nil)
	return result
}

// endByClose ends a body that was not read to its end. The codec drains what is
// cheap to drain.
func (x *Exchange) endByClose() {
	x.reading.Store(bodyClosed)
	defer x.bodyEnds()
	x.bodyBegins()
	x.stopUpload()
	x.body.Close()
}

func (b *responseBody) Read(p []byte) (n int, err error) {
	x := (*Exchange)(b)
	if err := x.enter(); err != nil {
		return 0, err
	}
	returned := false
	defer func() { x.left(returned) }()
	n, err = x.body.Read(p)
	err = x.leave(int64(n), err)
	returned = true
	return n, err
}

// WriteTo copies the rest of the body to w by the codec's shortest way.
func (b *responseBody) WriteTo(w io.Writer) (n int64, err error) {
	x := (*Exchange)(b)
	if err := x.enter(); err != nil {
		if err == io.EOF {
			err = nil
		}
		return 0, err
	}
	returned := false
	defer func() { x.left(returned) }()
	n, err = x.copyTo(w)
	returned = true
	return n, err
}

func (x *Exchange) copyTo(w io.Writer) (int64, error) {
	sink := &sink{w: w}
	n, err := io.Copy(sink, x.body)
	if sink.err != nil { // the writer's failure, not the body's
		if left := x.leave(n, nil); left != nil {
			return n, left
		}
		return n, sink.err
	}
	if err == nil {
		err = io.EOF
	}
	if err = x.leave(n, err); err == io.EOF {
		err = nil
	}
	return n, err
}

// sink tells a writer's errors from a reader's.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// Close ends the body; the rest of it is dropped.
func (b *responseBody) Close() error {
	x := (*Exchange)(b)
	for {
		switch state := x.reading.Load(); state {
		case bodyIdle:
			if x.reading.CompareAndSwap(bodyIdle, bodyInUse) {
				x.endByClose()
				return nil
			}
		case bodyInUse:
			if x.reading.CompareAndSwap(bodyInUse, bodyClosing) {
				x.interrupt()
				return nil
			}
		case bodyEnded:
			// An upload that goes on beside an ended response ends now.
			x.stopUpload()
			return nil
		default:
			return nil
		}
	}
}

// upgradedBody is the connection after a 101, or a stream of HTTP/2 after an
// extended CONNECT, read and written by two goroutines at most. What is left to do
// at Close is to give the connection up, or the stream alone.
type upgradedBody struct{ x *Exchange }

var _ io.ReadWriteCloser = (*upgradedBody)(nil)

func (b *upgradedBody) Read(p []byte) (int, error) {
	n, err := b.x.body.Read(p)
	b.x.received.Add(int64(n))
	if err != nil && err != io.EOF {
		err = b.x.allocation.owner.BodyFailed(b.x.explain(event.StepRead, err))
	}
	return n, err
}

func (b *upgradedBody) Write(p []byte) (int, error) {
	n, err := b.x.body.(io.Writer).Write(p)
	if err != nil {
		err = b.x.allocation.owner.BodyFailed(b.x.explain(event.StepWrite, err))
	}
	return n, err
}

// CloseWrite tells the peer that nothing more is written, where the connection
// can.
func (b *upgradedBody) CloseWrite() error {
	if c, ok := b.x.body.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (b *upgradedBody) Close() error {
	x := b.x
	if x.reading.Swap(bodyClosed) == bodyClosed {
		return nil
	}
	defer x.partDone()
	if !x.conn.multiplexed() {
		defer x.conn.retire(event.ReasonUpgraded)
	}
	err := x.body.Close()
	x.bodyBegins()
	x.listener().ResponseBodyEnd(x.call(), x.received.Load())
	return err
}
