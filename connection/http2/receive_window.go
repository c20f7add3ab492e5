package http2

import (
	xhttp2 "golang.org/x/net/http2"
)

// How much the server may send that nobody has read yet.
//
// It begins with a window of Options.StreamWindow for every stream, so that a
// body needs no round trip to come at full speed, and with half of
// Options.ConnWindow for all of them together. Where readers keep up that is all.
// A few bodies that nobody reads would use it up and let nothing else through. So
// once much lies unread, the connection is shrunk, for good: by SETTINGS the
// windows of all streams become small, those of open ones included (RFC 9113
// 6.9.2), and only then does the connection get its second half. What fills the
// first half cannot take the second, of which each stream has a small share.
//
// Afterwards a stream's window grows as its reader takes what came: by what is
// left of one half of ConnWindow, all that lies unread counted.
const (
	// smallWindow is the largest window of a stream on a shrunk connection, before
	// its reader has taken anything; shares is how many such streams half of the
	// connection's window is for.
	smallWindow = 256 << 10
	shares      = 128
	// leastUpdate is the least that a WINDOW_UPDATE is sent for while the reader
	// has something to read.
	leastUpdate = 4 << 10
)

// smallWindow is the size of a stream's window on a shrunk connection.
func (o Options) smallWindow() int64 {
	return min(smallWindow, max(o.half()/shares, maxFrameLen), int64(o.StreamWindow))
}

// half is half of the connection's window.
func (o Options) half() int64 { return int64(o.ConnWindow) / 2 }

// receiveWindow is what the peer may still send of what it was granted, and what
// was taken from the buffers but not granted again. avail, unsent and the bytes
// that are buffered make the window's size.
type receiveWindow struct {
	size, avail, unsent int64
	// slack is how much more than avail may come: what the window was shrunk by.
	// The peer may have used it before it knew, and is not reproached if it goes on.
	slack int64
}

func newReceiveWindow(size int64) receiveWindow { return receiveWindow{size: size, avail: size} }

// arrived takes n bytes that came off the window. It reports whether they were
// within it.
func (w *receiveWindow) arrived(n int) bool {
	w.avail -= int64(n)
	return w.avail+w.slack >= 0
}

// unread is how many bytes lie in the buffers.
func (w *receiveWindow) unread() int64 { return w.size - w.avail - w.unsent }

// taken adds n bytes that may be sent anew and returns how many of them to grant
// now: all, once they are as many as the peer has left, so that it never comes
// to a stop for what we hold back, or a quarter of the window, so that it can use
// the rest of it. Without urgency a few bytes wait for more.
func (w *receiveWindow) taken(n int64, urgent bool) (grant int64) {
	w.unsent += n
	switch {
	case w.unsent == 0 || w.unsent < min(w.avail, w.size/4):
	case w.unsent < leastUpdate && !urgent:
	case w.short() > 0: // it could not use them
	default:
		return w.grow(0)
	}
	return 0
}

// short is how much more lies in the buffers than the window, which was shrunk,
// has room for; 0 or less: it has room.
func (w *receiveWindow) short() int64 { return -w.avail - w.unsent }

// grow makes the window n bytes larger. It returns what to grant.
func (w *receiveWindow) grow(n int64) int64 {
	w.size += n
	n += w.unsent
	w.avail += n
	w.unsent = 0
	return n
}

// shrink makes the window smaller, where it is larger than size.
func (w *receiveWindow) shrink(size int64) {
	n := max(w.size-size, 0)
	w.size -= n
	w.avail -= n
	w.slack += n
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
		grant = c.receive.grow(0)
	}
	c.mu.Unlock()
	if grant > 0 {
		c.out.windowUpdate(0, grant)
	}
}

// crowdedLocked reports whether the connection is to be shrunk: half of what it has
// lies unread. The other half has to last until the server knows.
func (c *Conn) crowdedLocked() bool { return !c.shrunk && c.receive.unread() > c.opts.half()/2 }

// shrink makes the windows of streams small and that of the connection whole. The
// reading goroutine calls it, once.
func (c *Conn) shrink() {
	size := c.opts.smallWindow()
	c.out.mu.Lock() // those who open streams know on which side of the SETTINGS they are
	c.mu.Lock()
	c.shrunk = true
	more := c.receive.grow(c.opts.half())
	open := make([]*Stream, 0, len(c.streams))
	for _, s := range c.streams {
		open = append(open, s)
	}
	c.mu.Unlock()
	b := appendSettings(nil, xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: uint32(size)})
	b = appendWord(b, xhttp2.FrameWindowUpdate, 0, uint32(more))
	for _, s := range open {
		if grant := s.shrink(size); grant > 0 {
			b = appendWord(b, xhttp2.FrameWindowUpdate, s.id, uint32(grant))
		}
	}
	c.out.sendControlLocked(b)
}

// shrink makes the window of s small. It returns what to grant the server: of what
// was taken before and held back, while the window was large, it may need every
// byte now, and the reader be waiting for it.
func (s *Stream) shrink(size int64) (grant int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.shrink(size)
	grant, _ = s.refillLocked(0, true)
	return grant
}

// windowLocked is the window of a stream that is opened now.
func (c *Conn) windowLocked() receiveWindow {
	if c.shrunk {
		return newReceiveWindow(c.opts.smallWindow())
	}
	return newReceiveWindow(int64(c.opts.StreamWindow))
}

// growth returns how much the window of s may grow by: least at least, or not at
// all. Until the server has acknowledged that windows are small, it may yet fill
// one half of the connection's.
func (c *Conn) growth(s *Stream, least int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(int64(c.opts.StreamWindow)-c.opts.smallWindow()-s.grown, c.opts.half()-c.grown-c.buffered.Load())
	if n < least || !c.shrunk || c.acks < 2 || c.streams[s.id] != s {
		return 0
	}
	c.grown += n
	s.grown += n
	return n
}

// acknowledged notes that the server has taken our SETTINGS: first the opening's,
// then those of shrink.
func (c *Conn) acknowledged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acks++
}

// refillLocked takes n bytes more that were read. It returns what to grant the
// server and, unless it is 0, by how much at least the window should grow.
func (s *Stream) refillLocked(n int64, dry bool) (grant, least int64) {
	if s.recvEnd || s.closed {
		return 0, 0
	}
	grant = s.window.taken(n, dry)
	short := s.window.short()
	if s.window.size < int64(s.c.opts.StreamWindow) && (grant > 0 || short > 0) {
		least = max(leastUpdate, short+1)
	}
	return grant, least
}

// refill does what refillLocked asks for.
func (s *Stream) refill(grant, least int64) {
	if least > 0 {
		grant += s.grow(least)
	}
	if grant > 0 {
		s.c.out.windowUpdate(s.id, grant)
	}
}

// grow makes the window of s larger, by least at least or not at all. It returns
// what to grant.
func (s *Stream) grow(least int64) int64 {
	more := s.c.growth(s, least)
	if more == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.window.grow(more)
}
