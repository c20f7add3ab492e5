package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"

	"golang.org/x/net/http2"
)

// socketConn is the connection of a socketHTTP2. Who finds nobody writing writes what
// all callers have to say by then.
type socketConn struct {
	nc    net.Conn
	ended chan struct{} // closed when the goroutine that reads has ended

	// The peer's settings, fixed once dialSocketHTTP2 has returned.
	maxFrame     int
	streamWindow int64

	mu      sync.Mutex // guards what follows
	changed *sync.Cond // a window, err, greeted, or writing to false
	greeted bool       // the peer's SETTINGS have come
	err     error      // what ended the connection
	streams map[uint32]*socketStream
	nextID  uint32
	window  int64  // what may be sent by all streams
	credit  uint32 // what was received and the peer was not given back
	writing bool   // somebody writes, and will write what is pending too
	pending []byte
	spare   []byte // memory for pending; it may be what is being written
}

func dialSocketHTTP2(cfg Config, host string) (*socketConn, error) {
	nc, err := dialSocket(cfg, host)
	if err != nil {
		return nil, err
	}
	c := &socketConn{
		nc: nc, ended: make(chan struct{}), maxFrame: leastFrame, streamWindow: firstWindow,
		streams: map[uint32]*socketStream{}, nextID: 1, window: firstWindow,
	}
	c.changed = sync.NewCond(&c.mu)
	settings := []byte{0, byte(http2.SettingEnablePush), 0, 0, 0, 0, 0, byte(http2.SettingInitialWindowSize)}
	settings = binary.BigEndian.AppendUint32(settings, ourWindow)
	opening := appendFrame([]byte(http2.ClientPreface), http2.FrameSettings, 0, 0, settings)
	c.pending = appendWindowUpdate(opening, 0, mostWindow-firstWindow) // before any answer to the server
	go c.read()                                                        // ends with the connection
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	for c.err == nil && !c.greeted {
		c.changed.Wait()
	}
	return c, c.err
}

// take waits until s may send something, n bytes at most, and takes them from the
// windows.
func (c *socketConn) take(s *socketStream, n int64) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && (c.window <= 0 || s.window <= 0) {
		c.changed.Wait()
	}
	n = min(n, c.window, s.window)
	c.window -= n
	s.window -= n
	return n, c.err
}

// write waits until nobody writes, and writes b.
func (c *socketConn) write(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && c.writing {
		c.changed.Wait()
	}
	c.writing = true
	return c.drain(b)
}

// flush writes what is pending, or leaves it to who writes already. mu is held.
func (c *socketConn) flush() error {
	if c.writing {
		return c.err
	}
	c.writing = true
	if len(c.streams) > 1 { // one write serves all who are ready to
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	return c.drain(nil)
}

// drain writes b, what is pending and what comes meanwhile, with mu free. writing is
// true, and mu held otherwise.
func (c *socketConn) drain(b []byte) error {
	for c.err == nil && len(b)+len(c.pending) > 0 {
		if len(b) == 0 {
			b = c.pending
			c.pending, c.spare = c.spare[:0], b
		}
		c.mu.Unlock()
		_, err := c.nc.Write(b)
		c.mu.Lock()
		if err != nil {
			c.failLocked(err)
		}
		b = nil
	}
	c.writing = false
	c.changed.Broadcast()
	return c.err
}

// fail ends the connection and returns the first error that did.
func (c *socketConn) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failLocked(err)
}

func (c *socketConn) failLocked(err error) error {
	if c.err != nil {
		return c.err
	}
	c.err = err
	c.nc.Close()
	for _, s := range c.streams {
		s.done <- err
	}
	clear(c.streams)
	c.changed.Broadcast()
	return err
}

func (c *socketConn) read() {
	defer close(c.ended)
	buf := make([]byte, readBuffer)
	for n := 0; ; {
		k, err := c.nc.Read(buf[n:])
		if err != nil {
			c.fail(err)
			return
		}
		rest, err := c.frames(buf[:n+k])
		if err != nil {
			c.fail(err)
			return
		}
		n = copy(buf, rest)
	}
}

// frames takes the frames in b and returns what is left: a part of one.
func (c *socketConn) frames(b []byte) (rest []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(b) >= frameHead && len(b) >= frameLen(b) {
		n := frameLen(b)
		if err := c.frame(b[:n]); err != nil {
			return nil, err
		}
		b = b[n:]
	}
	if len(c.pending) > 0 {
		return b, c.flush()
	}
	return b, c.err
}

// frame takes a frame. mu is held.
func (c *socketConn) frame(b []byte) error {
	kind, flags := http2.FrameType(b[3]), http2.Flags(b[4])
	id, b := binary.BigEndian.Uint32(b[5:]), b[frameHead:]
	s := c.streams[id]
	switch kind {
	case http2.FrameHeaders, http2.FrameData:
		return c.message(s, kind, flags, b)
	case http2.FrameSettings:
		if !flags.Has(http2.FlagSettingsAck) {
			c.settings(b)
		}
	case http2.FramePing:
		if !flags.Has(http2.FlagPingAck) {
			c.pending = appendFrame(c.pending, http2.FramePing, http2.FlagPingAck, 0, b)
		}
	case http2.FrameWindowUpdate:
		n := int64(binary.BigEndian.Uint32(b))
		if id == 0 {
			c.window += n
		} else if s != nil {
			s.window += n
		}
		c.changed.Broadcast()
	case http2.FrameRSTStream, http2.FrameGoAway:
		return fmt.Errorf("the server sent %s: % x", kind, b)
	}
	return nil
}

// message takes a part of the response on s. mu is held.
func (c *socketConn) message(s *socketStream, kind http2.FrameType, flags http2.Flags, b []byte) error {
	switch {
	case s == nil:
		return errors.New("the server answered what was not asked")
	case kind == http2.FrameHeaders && (len(b) == 0 || b[0] != 0x88):
		return fmt.Errorf("the server answered with a head that does not begin with status 200: % x", b)
	case kind == http2.FrameData:
		n := uint32(len(b))
		s.got += int64(n)
		s.credit = c.giveBack(s.id, s.credit+n, ourWindow)
		c.credit = c.giveBack(0, c.credit+n, mostWindow)
	}
	if flags.Has(http2.FlagDataEndStream) { // the same bit as that of HEADERS
		delete(c.streams, s.id)
		s.done <- nil
	}
	return nil
}

// giveBack gives the peer a window back once half of it is used, and returns what is
// left to give. mu is held.
func (c *socketConn) giveBack(id, credit, window uint32) uint32 {
	if credit < window/2 {
		return credit
	}
	c.pending = appendWindowUpdate(c.pending, id, credit)
	return 0
}

// settings takes the peer's SETTINGS and acknowledges them. mu is held.
func (c *socketConn) settings(b []byte) {
	for ; len(b) > 0; b = b[6:] {
		v := binary.BigEndian.Uint32(b[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(b)) {
		case http2.SettingInitialWindowSize:
			c.streamWindow = int64(v)
		case http2.SettingMaxFrameSize:
			c.maxFrame = int(v)
		}
	}
	c.pending = appendFrame(c.pending, http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
	c.greeted = true
	c.changed.Broadcast()
}

func appendFrame(b []byte, kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) []byte {
	return append(appendHead(b, len(payload), kind, flags, stream), payload...)
}

func appendHead(b []byte, size int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	b = append(b, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

// frameLen is the length of the frame that b begins with.
func frameLen(b []byte) int { return frameHead + int(b[0])<<16 + int(b[1])<<8 + int(b[2]) }

func appendWindowUpdate(b []byte, stream, n uint32) []byte {
	return appendFrame(b, http2.FrameWindowUpdate, 0, stream, binary.BigEndian.AppendUint32(nil, n))
}
