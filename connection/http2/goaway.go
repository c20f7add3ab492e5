package http2

import (
	"encoding/binary"
	"fmt"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// maxDebug is how much of a GOAWAY's debug data is kept.
const maxDebug = 64

// A goAway is what the server's GOAWAY frames said, taken together.
type goAway struct {
	last  uint32 // the lowest Last-Stream-ID
	code  xhttp2.ErrCode
	debug string // at most maxDebug bytes
}

// parseGoAway reads a GOAWAY's payload, of 8 bytes at least (RFC 9113 6.8).
func parseGoAway(p []byte) goAway {
	return goAway{
		last:  binary.BigEndian.Uint32(p) &^ (1 << 31),
		code:  xhttp2.ErrCode(binary.BigEndian.Uint32(p[4:])),
		debug: string(p[8:min(len(p), 8+maxDebug)]),
	}
}

func (g goAway) String() string {
	if g.debug == "" {
		return fmt.Sprintf("GOAWAY %v", g.code)
	}
	return fmt.Sprintf("GOAWAY %v %q", g.code, g.debug)
}

// goneAway merges g with what earlier GOAWAY frames said: a server that shuts
// down with grace sends two (RFC 9113 6.8), and the ids only go down. Streams
// above the last one were not processed.
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
	c.retireAfter(fmt.Errorf("the server sent %v", g), func() {
		for _, s := range c.streamsAbove(g.last) {
			s.failed(&wire.UnprocessedError{
				Err:      fmt.Errorf("the server did not process the request: it sent %v", g),
				Shutdown: true,
			})
		}
	})
}

func (c *Conn) streamsAbove(last uint32) (above []*Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, s := range c.streams {
		if id > last {
			above = append(above, s)
		}
	}
	return above
}

// GoneAway reports whether the server sent a GOAWAY.
func (c *Conn) GoneAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bye != nil
}
