package http2

import (
	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

const (
	// shareFrom is the size from which on a frame's content stays in the chunk that
	// it was read into, however many others there are, and shareHeld the same where
	// bodies hold the chunk already; freeSegments is how many pieces of a body may
	// be smaller. What is beyond is copied together.
	shareFrom    = 2 << 10
	shareHeld    = 256
	freeSegments = 8
	// pinnedFree is how many bytes of chunks bodies may hold on top of twice
	// their own size. Beyond it all is copied.
	pinnedFree = 1 << 20
)

// dataFrame is a frame of DATA whose payload is being read.
type dataFrame struct {
	s         *Stream // nil: nobody wants it
	left, pad int     // bytes to come, and how many of them nobody wants
	end       bool
	large     bool                // the content is, of which a read may bring a small piece
	late      *wire.ProtocolError // what is wrong with it, for after its content
}

// beginData reads the header of a frame of DATA (RFC 9113 6.1).
func (in *reader) beginData(h frameHeader) error {
	c := in.c
	head, pad := frameHeaderLen, 0
	if h.flags.Has(xhttp2.FlagDataPadded) {
		head++
		if err := in.fill(head); err != nil {
			return err
		}
		pad = int(in.buf.b[in.r+frameHeaderLen])
		if pad >= h.length {
			return c.violation(xhttp2.ErrCodeProtocol, "DATA of %d bytes with %d bytes of padding", h.length, pad)
		}
	}
	in.take(head)
	left := h.length - (head - frameHeaderLen)
	content := left - pad
	c.mu.Lock()
	s := c.streams[h.stream]
	idle := s == nil && c.idleLocked(h.stream)
	within := c.receive.arrived(h.length)
	crowded := c.crowdedLocked()
	c.mu.Unlock()
	switch {
	case idle:
		return c.violation(xhttp2.ErrCodeProtocol, "DATA on stream %d, which was never opened", h.stream)
	case !within:
		return c.violation(xhttp2.ErrCodeFlowControl, "more DATA than the connection's window")
	}
	if crowded {
		c.shrink()
	}
	end := h.flags.Has(xhttp2.FlagDataEndStream)
	if content == 0 && !end || s == nil {
		if err := in.idle.spend(c); err != nil {
			return err
		}
	} else {
		in.idle.fillUp()
	}
	in.touch(s)
	want, late := -1, (*wire.ProtocolError)(nil)
	if s != nil {
		want, late = s.beginData(h.length, content)
	}
	if want < 0 {
		s, want = nil, 0
	}
	c.dropped(int64(h.length - want))
	in.data = dataFrame{s: s, left: left, pad: left - want, end: end, large: want >= shareFrom, late: late}
	if left == 0 {
		in.endData()
	}
	return nil
}

// readData hands over what is there of the frame.
func (in *reader) readData() error {
	if err := in.fill(1); err != nil {
		return err
	}
	d := &in.data
	n := min(d.left, in.w-in.r)
	in.touch(d.s)
	if content := min(n, d.left-d.pad); content > 0 && d.s != nil {
		if n == d.left && d.pad == 0 && d.end {
			d.end = false // it is delivered with the content
			in.deliver(d.s, content, true)
		} else {
			in.deliver(d.s, content, false)
		}
	}
	in.take(n)
	if d.left -= n; d.left == 0 {
		in.endData()
	}
	return nil
}

func (in *reader) endData() {
	d := in.data
	in.data = dataFrame{}
	switch {
	case d.s == nil:
	case d.late != nil:
		d.s.violated(xhttp2.ErrCodeProtocol, d.late)
	case d.end:
		d.s.ended()
	}
}

// deliver gives the next n bytes to s, with the end of the stream where they are
// the last.
func (in *reader) deliver(s *Stream, n int, last bool) {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		in.c.dropped(int64(n))
		return
	}
	in.hand(s, n)
	var over bool
	var err error
	if last {
		over, err = s.endLocked()
	}
	s.mu.Unlock()
	s.settle(over, err)
}

// hand gives the next n bytes to s in place, where that is no waste. s.mu is held.
func (in *reader) hand(s *Stream, n int) {
	c, k := in.c, in.buf
	buffered := c.buffered.Add(int64(n))
	s.buffered += int64(n)
	in.ahead = s.buffered > aheadMost
	if last := len(s.segments) - 1; last >= 0 && s.segments[last].k == k && int(s.segments[last].w) == in.r {
		s.segments[last].w += int32(n) // the same frame goes on: another has a header before it
		return
	}
	share := in.data.large || len(s.segments) < freeSegments
	if k.pinned == nil {
		share = share && c.pinned.Load()+int64(len(k.b)) <= 2*buffered+pinnedFree
	} else {
		share = share || n >= shareHeld
	}
	if share {
		k.pin(c)
		k.refs.Add(1)
		s.segments = append(s.segments, segment{k: k, r: int32(in.r), w: int32(in.r + n)})
		return
	}
	s.copyIn(k.b[in.r : in.r+n])
}

// copyIn adds p to the body's own chunks. s.mu is held.
func (s *Stream) copyIn(p []byte) {
	for len(p) > 0 {
		last := len(s.segments) - 1
		goesOn := last >= 0 && s.segments[last].own
		if !goesOn || int(s.segments[last].w) == len(s.segments[last].k.b) {
			k := newChunk(goesOn || len(p) > smallChunk)
			k.pin(s.c)
			s.segments = append(s.segments, segment{k: k, own: true})
			last++
		}
		g := &s.segments[last]
		n := copy(g.k.b[g.w:], p)
		g.w += int32(n)
		p = p[n:]
	}
}
