package http2

import (
	"fmt"
	"time"

	xhttp2 "golang.org/x/net/http2"
)

// probeTimeout is how long a server that was silent for one stream has for a
// sign of life.
const probeTimeout = 5 * time.Second

// health is what is known of a server that says nothing. Guarded by Conn.mu.
type health struct {
	// silentAt is the count of frames when a stream timed out without any sign
	// of life; while it stays so, the connection gets no new streams.
	silent   bool
	silentAt uint64
	// probe runs while a PING is out for that.
	probe   *time.Timer
	probing bool

	// tick is due when the server may have been silent for a ping interval; nil:
	// no PINGs are sent. asked is true while one is out, askedAt the count of
	// frames when it was sent.
	tick    *time.Timer
	asked   bool
	askedAt uint64
}

func (h *health) stop() {
	for _, t := range [...]*time.Timer{h.tick, h.probe} {
		if t != nil {
			t.Stop()
		}
	}
}

// startPings is called with mu held.
func (c *Conn) startPings() {
	if d := c.opts.PingInterval; d > 0 {
		c.health.tick = time.AfterFunc(d, c.tick)
	}
}

// tick sends a PING where the server has been silent for the interval, and ends
// the connection where it stayed silent after one.
func (c *Conn) tick() {
	interval := c.opts.PingInterval
	c.mu.Lock()
	if c.failure != nil {
		c.mu.Unlock()
		return
	}
	h := &c.health
	frames := c.frames.Load()
	h.asked = h.asked && h.askedAt == frames
	silence := time.Since(c.start) - time.Duration(c.lastRead.Load())
	dead, ask := h.asked, !h.asked && silence >= interval
	switch {
	case ask:
		h.asked, h.askedAt = true, frames
		h.tick.Reset(interval)
	case !dead:
		h.tick.Reset(interval - silence)
	}
	c.mu.Unlock()
	switch {
	case dead:
		c.fail(fmt.Errorf("the server did not answer a PING for %v", interval))
		c.shut(xhttp2.ErrCodeNo)
	case ask:
		c.out.ping(false, [8]byte{'c', 'a', 't', 'e', 'n', 'a'})
	}
}

// timedOut notes that a stream waited in vain since the server's frame number
// frames. If none came since, for nobody, the server may be gone: a PING finds
// out, and until a frame comes the connection gets no new streams.
func (c *Conn) timedOut(frames uint64) {
	c.mu.Lock()
	h := &c.health
	silent := c.why == nil && c.frames.Load() == frames
	ask := silent && !h.probing
	if silent {
		h.silent, h.silentAt = true, frames
	}
	if ask {
		h.probing = true
		h.probe = time.AfterFunc(probeTimeout, func() { c.probed(frames) })
	}
	c.mu.Unlock()
	if ask {
		c.out.ping(false, [8]byte{'p', 'r', 'o', 'b', 'e'})
	}
}

// probed retires the connection if no frame has come since number frames.
func (c *Conn) probed(frames uint64) {
	c.mu.Lock()
	c.health.probing = false
	c.mu.Unlock()
	if c.frames.Load() == frames {
		c.retire(fmt.Errorf("the server did not answer a PING for %v", probeTimeout))
	}
}
