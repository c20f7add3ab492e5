package http2

import (
	"encoding/binary"
	"fmt"
	"time"

	xhttp2 "golang.org/x/net/http2"
)

// control takes a frame that is neither DATA nor part of a header block. Those
// of unknown types, and priorities, mean nothing to a client.
func (c *Conn) control(h frameHeader, p []byte) error {
	switch h.typ {
	case xhttp2.FrameSettings:
		return c.settings(h, p)
	case xhttp2.FramePing:
		return c.pinged(h, p)
	case xhttp2.FrameGoAway:
		if h.stream != 0 {
			return c.violation(xhttp2.ErrCodeProtocol, "GOAWAY on stream %d", h.stream)
		}
		if len(p) < 8 {
			return c.violation(xhttp2.ErrCodeFrameSize, "GOAWAY of %d bytes", len(p))
		}
		c.goneAway(parseGoAway(p))
	case xhttp2.FrameRSTStream:
		if len(p) != 4 {
			return c.violation(xhttp2.ErrCodeFrameSize, "RST_STREAM of %d bytes", len(p))
		}
		return c.resetByServer(h.stream, xhttp2.ErrCode(binary.BigEndian.Uint32(p)))
	case xhttp2.FrameWindowUpdate:
		if len(p) != 4 {
			return c.violation(xhttp2.ErrCodeFrameSize, "WINDOW_UPDATE of %d bytes", len(p))
		}
		return c.windowUpdated(h, binary.BigEndian.Uint32(p)&^(1<<31))
	case xhttp2.FramePushPromise:
		return c.violation(xhttp2.ErrCodeProtocol, "PUSH_PROMISE, though push is switched off")
	}
	return nil
}

func (c *Conn) pinged(h frameHeader, p []byte) error {
	switch {
	case h.stream != 0:
		return c.violation(xhttp2.ErrCodeProtocol, "PING on stream %d", h.stream)
	case len(p) != 8:
		return c.violation(xhttp2.ErrCodeFrameSize, "PING of %d bytes", len(p))
	case !h.flags.Has(xhttp2.FlagPingAck):
		c.out.ping(true, [8]byte(p))
	}
	return nil
}

// resetByServer takes a RST_STREAM (RFC 9113 6.4).
func (c *Conn) resetByServer(id uint32, code xhttp2.ErrCode) error {
	c.mu.Lock()
	s := c.streams[id]
	idle := s == nil && c.idleLocked(id)
	c.mu.Unlock()
	switch {
	case idle:
		return c.violation(xhttp2.ErrCodeProtocol, "RST_STREAM on stream %d, which was never opened", id)
	case s == nil:
		return nil
	}
	if code == xhttp2.ErrCodeProtocol {
		// It blames us: what else is sent here would fare no better.
		c.retireAfter(fmt.Errorf("the server reset a stream: %v", code), func() { s.resetByServer(code) })
	} else {
		s.resetByServer(code)
	}
	return nil
}

const (
	// idleFrames is how many frames that carry nothing are taken in a row,
	// idleRate how many a second at any time.
	idleFrames = 10000
	idleRate   = 100
)

// budget bounds the frames that carry nothing for anybody: empty DATA, PING,
// SETTINGS, priorities, unknown ones, those for streams that are over. A head, a
// piece of a body and a frame of DATA that we send fill it up again.
type budget struct {
	spent int
	since time.Time
	sent  uint64 // writer.data when it was filled up
}

func (b *budget) fillUp() { b.spent = 0 }

func (b *budget) spend(c *Conn) error {
	if b.spent == 0 {
		b.since = time.Now()
	}
	if b.spent++; b.spent <= idleFrames {
		return nil
	}
	sent := c.out.sentData.Load()
	if time.Since(b.since) > idleFrames/idleRate*time.Second || sent != b.sent {
		b.spent, b.sent = 0, sent
		return nil
	}
	return c.violation(xhttp2.ErrCodeEnhanceYourCalm, "%d frames that carry nothing", idleFrames)
}
