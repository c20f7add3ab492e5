package http2

import (
	"sync"
	"time"

	xhttp2 "golang.org/x/net/http2"
)

const (
	// joined is the largest piece of a body that is copied into a batch, and so
	// shares a write with what else there is.
	joined = 16 << 10
	// largeBurst is how much of a body is written at a time, and hugeBurst where
	// that takes no longer than hugePace. Where it takes longer than slowPace it
	// is joined, so that others get to write in between.
	largeBurst = 128 << 10
	hugeBurst  = 512 << 10
	hugePace   = time.Millisecond
	slowPace   = 20 * time.Millisecond
	// burstRoom is what is kept free in front of the body for headers of frames
	// of the usual size. With them a burst fills whole TLS records.
	burstRoom = hugeBurst / maxFrameLen * frameHeaderLen
)

// A bulk is memory for a piece of a body, behind room for headers.
type bulk []byte

var bulks = [...]struct {
	size int
	pool sync.Pool
}{{size: joined + burstRoom}, {size: largeBurst}, {size: hugeBurst}}

// newBulk takes memory for a piece of n bytes or, if that is too much, a part of
// it.
func newBulk(n int) *bulk {
	i := 0
	for i < len(bulks)-1 && n > bulks[i].size-burstRoom {
		i++
	}
	if b, ok := bulks[i].pool.Get().(*bulk); ok {
		return b
	}
	b := make(bulk, bulks[i].size)
	return &b
}

func (b *bulk) free() {
	for i := range bulks {
		if len(*b) == bulks[i].size {
			bulks[i].pool.Put(b)
		}
	}
}

// largest is how much is to be written of a body at a time.
func (w *writer) largest() int {
	pace := time.Duration(w.pace.Load())
	switch {
	case pace > slowPace:
		return joined
	case pace == 0 || pace > hugePace || w.c.opts.Secure:
		return largeBurst - burstRoom
	}
	return hugeBurst
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

// burst has the batch and then the n bytes at at in buf written. With last it
// frees buf. One that fails leaves buf to the garbage collector.
func (w *writer) burst(s *Stream, buf *bulk, at, n int, last bool) error {
	return w.launch(s, func() {
		w.write(buf.frame(at, n, int(w.c.maxFrame.Load()), s.id))
		if last {
			buf.free()
		}
	})
}

// launch has the batch written and then a piece of the body of s, by a goroutine
// that ends with the write. There is one of a stream at a time.
func (w *writer) launch(s *Stream, write func()) error {
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
	s.bursting.Store(true)
	done := s.writeWaiter()
	go func() {
		if w.writeBatch(batch) == nil {
			write()
		}
		w.yield()
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
