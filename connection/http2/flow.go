package http2

import (
	xhttp2 "golang.org/x/net/http2"
)

const (
	// firstWindow is a stream's receive window until its reader has shown that
	// it reads.
	firstWindow = 512 << 10
	// windowGrowth is the factor by which a window grows at a time.
	windowGrowth = 4
	// leastUpdate is the least that a WINDOW_UPDATE is sent for while the reader
	// has something to read.
	leastUpdate = 4 << 10
)

// receiveWindow is what the peer may still send of what it was granted, and what
// was taken from the buffers but not granted again. avail, unsent and the bytes
// that are buffered make the window's size.
type receiveWindow struct{ avail, unsent int64 }

// arrived takes n bytes that came off the window. It reports whether they were
// within it.
func (w *receiveWindow) arrived(n int) bool {
	w.avail -= int64(n)
	return w.avail >= 0
}

// taken adds n bytes that may be sent anew and returns how many of them to grant
// now: all, once they are as many as the peer has left, so that it never comes
// to a stop for what we hold back. Without urgency a few bytes wait for more.
func (w *receiveWindow) taken(n int64, urgent bool) (grant int64) {
	w.unsent += n
	if w.unsent == 0 || w.unsent < w.avail || w.unsent < leastUpdate && !urgent {
		return 0
	}
	return w.grant(0)
}

// grant grants what may be sent anew, and extra on top.
func (w *receiveWindow) grant(extra int64) int64 {
	n := w.unsent + extra
	w.avail += n
	w.unsent = 0
	return n
}

// sendWindow is what the server lets us send (RFC 9113 5.2). Guarded by Conn.mu.
type sendWindow struct {
	conn    int64
	initial int64 // of a new stream
	// blocked are the streams that wait for a window.
	blocked []*Stream
}

// credit gives n bytes of bodies that were read back to the connection's window.
func (c *Conn) credit(n int64, urgent bool) {
	if n == 0 {
		return
	}
	c.mu.Lock()
	grant := c.receive.taken(n, urgent)
	c.mu.Unlock()
	if grant > 0 {
		c.out.windowUpdate(0, grant)
	}
}

// dropped is credit for bytes that nobody will read: they do not wait for more.
func (c *Conn) dropped(n int64) {
	if n == 0 {
		return
	}
	c.mu.Lock()
	c.receive.unsent += n
	grant := int64(0)
	if c.receive.unsent >= min(leastUpdate, c.receive.avail) {
		grant = c.receive.grant(0)
	}
	c.mu.Unlock()
	if grant > 0 {
		c.out.windowUpdate(0, grant)
	}
}

// grow returns how much the window of s, which has the size given, may grow by.
func (c *Conn) grow(s *Stream, size int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(size*windowGrowth, int64(c.opts.StreamWindow)) - size
	n = min(n, int64(c.opts.ConnWindow)/2-c.grown)
	if n <= 0 || c.streams[s.id] != s {
		return 0
	}
	c.grown += n
	s.grown += n
	return n
}

// takeWindow waits until some of n bytes of the body of s may be sent, and
// returns how many. They count as sent.
func (s *Stream) takeWindow(n int) (int, error) {
	if err := s.mayWrite(); err != nil {
		return 0, err
	}
	if got := s.c.takeWindow(s, n, nil); got > 0 {
		return got, nil
	}
	// What the server waits for before it opens a window may be held back.
	if err := s.flushHeld(); err != nil {
		return 0, err
	}
	var dl deadline
	for {
		w, err := s.writerWait(&dl)
		if err != nil {
			return 0, err
		}
		if got := s.c.takeWindow(s, n, w); got > 0 {
			return got, nil
		}
		<-w.ch
	}
}

// takeWindow takes up to n bytes off the windows for the body of s. Where there
// are none, w (unless nil) is woken when that may have changed.
func (c *Conn) takeWindow(s *Stream, n int, w *waiter) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := min(int64(n), c.send.conn, s.sendWindow)
	if got > 0 {
		c.send.conn -= got
		s.sendWindow -= got
		return int(got)
	}
	if w != nil && s.blocked == nil {
		s.blocked = w
		c.send.blocked = append(c.send.blocked, s)
	}
	return 0
}

// unblockLocked wakes who waits for a window.
func (c *Conn) unblockLocked() {
	for i, s := range c.send.blocked {
		s.blocked.wake()
		s.blocked = nil
		c.send.blocked[i] = nil
	}
	c.send.blocked = c.send.blocked[:0]
}

// windowUpdated takes a WINDOW_UPDATE (RFC 9113 6.9).
func (c *Conn) windowUpdated(h frameHeader, n uint32) error {
	if n == 0 && h.stream == 0 {
		return c.violation(xhttp2.ErrCodeProtocol, "a WINDOW_UPDATE of 0")
	}
	c.mu.Lock()
	if h.stream == 0 {
		c.send.conn += int64(n)
		over := c.send.conn > maxWindow
		c.unblockLocked()
		c.mu.Unlock()
		if over {
			return c.violation(xhttp2.ErrCodeFlowControl, "the connection's window is over 2^31-1")
		}
		return nil
	}
	s := c.streams[h.stream]
	idle := s == nil && c.idleLocked(h.stream)
	var over bool
	if s != nil {
		s.sendWindow += int64(n)
		over = s.sendWindow > maxWindow
		if s.blocked != nil {
			s.blocked.wake()
		}
	}
	c.mu.Unlock()
	switch {
	case idle:
		return c.violation(xhttp2.ErrCodeProtocol, "WINDOW_UPDATE on stream %d, which was never opened", h.stream)
	case s == nil:
	case n == 0:
		s.broken(xhttp2.ErrCodeProtocol, "a WINDOW_UPDATE of 0")
	case over:
		s.broken(xhttp2.ErrCodeFlowControl, "the stream's window is over 2^31-1")
	}
	return nil
}

// resizeLocked applies a SETTINGS_INITIAL_WINDOW_SIZE to the streams that are
// open (RFC 9113 6.9.2). A window may become negative. It reports whether all
// are within bounds.
func (c *Conn) resizeLocked(initial int64) bool {
	delta := initial - c.send.initial
	c.send.initial = initial
	for _, s := range c.streams {
		s.sendWindow += delta
		if s.sendWindow > maxWindow {
			return false
		}
	}
	if delta > 0 {
		c.unblockLocked()
	}
	return true
}

// idleLocked reports whether no stream with this id was ever opened.
func (c *Conn) idleLocked(id uint32) bool { return id%2 == 0 || id > c.lastOpened }
