package http2

import (
	xhttp2 "golang.org/x/net/http2"
)

// sendWindow is what the server lets us send (RFC 9113 5.2). Guarded by Conn.mu.
type sendWindow struct {
	conn    int64
	initial int64 // of a new stream
	// blocked are the streams that wait for a window.
	blocked []*Stream
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
