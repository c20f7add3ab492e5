package oracle

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// maxChunk bounds what the engine takes of the request's body at a time, and
// so what FinishRequest may still have to wait for: one frame of usual size.
const maxChunk = 16 << 10

var (
	errUploadStopped     = errors.New("the request body is not wanted any more")
	errUploadInterrupted = errors.New("the write of the request body was interrupted")
)

// upload is the request's body on its way from the caller's Writes to the
// engine's Reads. Nothing is buffered: a Write returns when the engine has
// taken its bytes, which it does as the windows allow.
type upload struct {
	data  chan []byte // from Write to Read
	taken chan int    // and back: how many bytes Read took
	eof   chan struct{}
	// stopped is closed when the engine wants no more, interrupted when the
	// caller may write no more. After the latter alone Read waits: neither an
	// end nor an error would be true.
	stopped, interrupted    chan struct{}
	onceStop, onceInterrupt sync.Once
	size, left              int64 // declared, and yet to come; -1: unknown. Writer's.
	timer                   *time.Timer
	timeout                 time.Duration
}

func newUpload(size int64, timeout time.Duration) *upload {
	return &upload{
		data:        make(chan []byte),
		taken:       make(chan int),
		eof:         make(chan struct{}),
		stopped:     make(chan struct{}),
		interrupted: make(chan struct{}),
		size:        size,
		left:        size,
		timeout:     timeout,
	}
}

// write hands p over. Its errors are errUploadStopped, errUploadInterrupted
// and os.ErrDeadlineExceeded; the last is for one chunk at most maxChunk long
// that the engine did not take in time.
func (u *upload) write(p []byte) (n int, err error) {
	select {
	case <-u.interrupted:
		return 0, errUploadInterrupted
	default:
	}
	for len(p) > 0 {
		late := u.alarm()
		select {
		case u.data <- p:
			took := <-u.taken
			n, p = n+took, p[took:]
			if u.left > 0 {
				u.left -= int64(took)
			}
		case <-u.stopped:
			return n, errUploadStopped
		case <-u.interrupted:
			return n, errUploadInterrupted
		case <-late:
			return n, os.ErrDeadlineExceeded
		}
	}
	return n, nil
}

// alarm returns a channel that fires after the write timeout; nil without one.
func (u *upload) alarm() <-chan time.Time {
	if u.timeout <= 0 {
		return nil
	}
	if u.timer == nil {
		u.timer = time.NewTimer(u.timeout)
	} else {
		u.timer.Reset(u.timeout)
	}
	return u.timer.C
}

func (u *upload) interrupt() { u.onceInterrupt.Do(func() { close(u.interrupted) }) }

// finish lets the engine see the end of the body.
func (u *upload) finish() { close(u.eof) }

// Read gives the engine what a Write offers.
func (u *upload) Read(b []byte) (int, error) {
	if len(b) > maxChunk {
		b = b[:maxChunk]
	}
	select {
	case p := <-u.data:
		n := copy(b, p)
		u.taken <- n
		return n, nil
	case <-u.stopped:
		return 0, errUploadStopped
	case <-u.eof:
		return 0, io.EOF
	}
}

// Close ends the upload from the engine's side. Writes that wait return.
func (u *upload) Close() error {
	u.onceStop.Do(func() { close(u.stopped) })
	return nil
}
