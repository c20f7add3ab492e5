package http2

import (
	"sync"

	xhttp2 "golang.org/x/net/http2"
)

const (
	// joined is the largest piece of a body that is copied into a batch, and so
	// shares a write with what else there is.
	joined = 16 << 10
	// burst is how much of a body is written at a time at most. It fills whole
	// TLS records, with the headers of frames of usual size.
	burst = 128 << 10
	// burstRoom is what is kept free for these headers, in front of the body.
	burstRoom = burst / maxFrameLen * frameHeaderLen
)

// A bulk is memory for a piece of a body, behind room for headers.
type bulk []byte

var (
	smallBulks = sync.Pool{New: func() any { b := make(bulk, burstRoom+joined); return &b }}
	largeBulks = sync.Pool{New: func() any { b := make(bulk, burst); return &b }}
)

// newBulk takes memory for a piece of n bytes or, if that is too much, a part of
// it.
func newBulk(n int64) *bulk {
	if n <= joined {
		return smallBulks.Get().(*bulk)
	}
	return largeBulks.Get().(*bulk)
}

func (b *bulk) free() {
	if len(*b) == burst {
		largeBulks.Put(b)
	} else {
		smallBulks.Put(b)
	}
}

// body is where the piece lies.
func (b bulk) body() []byte { return b[burstRoom:] }

// frame makes frames of the n bytes at at, of limit bytes at most. What is in
// front of them is lost: headers, or bytes that were sent. It returns the frames.
func (b bulk) frame(at, n, limit int, stream uint32) []byte {
	frames := (n + limit - 1) / limit
	start := at - frames*frameHeaderLen
	to := start
	for end := at + n; at < end; {
		m := min(limit, end-at)
		putFrameHeader(b[to:], m, xhttp2.FrameData, 0, stream)
		to += frameHeaderLen
		to += copy(b[to:], b[at:at+m])
		at += m
	}
	return b[start:to]
}

// burst has the batch and then the n bytes at at in buf written, by a goroutine
// that ends with the write. There is one of a stream at a time. With last it
// frees buf. One that fails leaves buf to the garbage collector.
func (w *writer) burst(s *Stream, buf *bulk, at, n int, last bool) error {
	if err := s.awaitBurst(); err != nil {
		return err
	}
	if err := w.acquire(s); err != nil {
		return err
	}
	if w.torn.Load() {
		w.yield()
		return w.c.reason()
	}
	s.held.Store(false)
	w.sentData.Add(1)
	batch := w.takePending()
	frames := buf.frame(at, n, int(w.c.maxFrame.Load()), s.id)
	s.bursting.Store(true)
	done := s.writeWaiter()
	go func() {
		err := w.write(batch)
		if err == nil {
			err = w.write(frames)
		}
		w.yield()
		if last {
			buf.free()
		}
		s.bursting.Store(false)
		done.wake()
	}()
	return nil
}

// awaitBurst waits until the last burst of s is written.
func (s *Stream) awaitBurst() error {
	w := &s.c.out
	wait := writeWait{progress: w.progress.Load()}
	for s.bursting.Load() {
		park, err := s.writerWait(wait.again(w))
		if err != nil {
			return err
		}
		if s.bursting.Load() {
			<-park.ch
		}
	}
	return nil
}
