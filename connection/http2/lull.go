package http2

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// lullTime is how long a connection is idle before it makes itself small.
const lullTime = 100 * time.Millisecond

// A lull is a time without a stream and without a frame. In one, the reading
// goroutine, whose stack has grown by what it has parsed, leaves its place to
// another, whose stack is small: that is much of what an idle connection costs.
// Doing so at once would cost too much between requests that follow each other.
//
// Only a socket of the system has lulls: there the buffer goes too.
type lull struct {
	awaited bool        // or there; the reading goroutine's
	there   atomic.Bool // the timer has found one

	// Guarded by Conn.mu.
	timer  *time.Timer
	frames uint64 // that had come when the timer was set
}

// awaitLull is called before a wait for the socket.
func (in *reader) awaitLull() {
	if in.lull.awaited {
		return
	}
	c := in.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.greeted || len(c.streams) > 0 || c.failure != nil {
		return
	}
	in.lull.awaited = true
	in.lull.frames = c.frames.Load()
	in.lull.timer = time.AfterFunc(lullTime, in.lullDue)
}

// lullDue ends the wait of the reading goroutine where nothing has happened, and
// looks again later where something has.
func (in *reader) lullDue() {
	c := in.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil || c.writeErr != nil {
		return
	}
	if frames := c.frames.Load(); len(c.streams) > 0 || frames != in.lull.frames {
		in.lull.frames = frames
		in.lull.timer.Reset(lullTime)
		return
	}
	in.lull.timer = nil
	in.lull.there.Store(true)
	c.waiters = nil
	c.nc.SetReadDeadline(time.Unix(1, 0))
}

// doze reports whether a read failed with err because a lull is there, and makes
// reads possible again, the next one without a need for much of a stack.
func (in *reader) doze(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || !in.lull.there.Swap(false) {
		return false
	}
	c := in.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc.SetReadDeadline(c.readUntil)
	in.makeRoom(frameHeaderLen)
	return true
}

// sleep reads what comes next, on a new stack. The lull is over when it is there.
func (in *reader) sleep() {
	err := in.read(frameHeaderLen)
	in.lull.awaited = false
	in.parse(err)
}
