package oracle

import (
	"context"
	"fmt"
	"time"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// settleLocked ends the wait for SETTINGS.
func (c *Conn) settleLocked() {
	close(c.settled)
	if c.timer != nil {
		c.timer.Stop()
	}
}

func (c *Conn) settingsLate(after time.Duration) {
	err := wire.Protocolf("the server sent no SETTINGS within %v (SETTINGS_TIMEOUT)", after)
	select {
	case <-c.settled:
	default:
		c.fail(err)
		c.tap.shut(xhttp2.ErrCodeSettingsTimeout)
	}
}

// frameRead sees each frame of the server's, on the reading goroutine, just
// before the engine gets the end of it.
func (c *Conn) frameRead(f frame) {
	c.frames.Add(1)
	switch f.typ {
	case xhttp2.FrameSettings:
		if !f.flags.Has(xhttp2.FlagSettingsAck) {
			c.settings(f.payload)
		}
	case xhttp2.FrameGoAway:
		if g, ok := parseGoAway(f.payload); ok {
			c.goneAway(g)
		}
	}
}

func (c *Conn) settings(payload []byte) {
	n, named := maxStreams(payload)
	c.mu.Lock()
	first := !c.greeted
	c.greeted = true
	switch {
	case named:
		c.limit = int(min(n, 1<<30))
	case first:
		c.limit = endlessStreams
	}
	if first && c.failure == nil {
		c.settleLocked()
	}
	c.mu.Unlock()
}

// goneAway merges g with what earlier GOAWAY frames said: a server that shuts
// down with grace sends two (RFC 9113 6.8), and the ids only go down.
func (c *Conn) goneAway(g goAway) {
	c.mu.Lock()
	if old := c.bye; old != nil {
		g.last = min(g.last, old.last)
		if g.code == xhttp2.ErrCodeNo {
			g.code, g.debug = old.code, old.debug
		}
	}
	c.bye = &g
	c.mu.Unlock()
	c.retire(fmt.Errorf("the server sent %v", g))
}

// GoneAway reports whether the server sent a GOAWAY.
func (c *Conn) GoneAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bye != nil
}

// spared reports whether the server's GOAWAY says that stream id was not
// processed, and with which words.
func (c *Conn) spared(id uint32) (goAway, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bye == nil || id <= c.bye.last {
		return goAway{}, false
	}
	return *c.bye, true
}

// timedOut notes that a stream waited in vain since the server's frame number
// frames. If none came since, for nobody, the server may be gone: a PING finds
// out, and until a frame comes the connection gets no new streams.
func (c *Conn) timedOut(frames uint64) {
	c.mu.Lock()
	silent := c.why == nil && c.frames.Load() == frames
	probe := silent && !c.probing
	if silent {
		c.silent, c.silentAt = true, frames
	}
	c.probing = c.probing || probe
	c.mu.Unlock()
	if probe {
		go c.probe()
	}
}

// probe asks for a sign of life and retires the connection if there is none.
// Its goroutine ends with the answer, after probeTimeout, or with the
// connection.
func (c *Conn) probe() {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	err := c.engine.ping(ctx)
	c.mu.Lock()
	c.probing = false
	c.mu.Unlock()
	if err != nil {
		c.retire(fmt.Errorf("the server did not answer a PING for %v", probeTimeout))
	}
}
