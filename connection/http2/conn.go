package http2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// assumedStreams is how many streams a server is taken to allow until its
// SETTINGS arrive; afterwards, where they name no limit, endlessStreams.
const (
	assumedStreams = 100
	endlessStreams = 1000
	// lastStreamID leaves some room below the end of the id space, 2^31-1.
	lastStreamID = 1<<31 - 1<<10
)

var (
	errClosed   = fmt.Errorf("the connection was closed: %w", net.ErrClosed)
	errShutdown = errors.New("the connection was shut down")
)

// Conn is the client side of one HTTP/2 connection. It is safe for concurrent
// use.
//
// Its life has three one-way steps: it takes streams; it is retired, and takes
// no more of them while those that are open go on; it is closed. A retired
// connection closes by itself when its last stream ends.
type Conn struct {
	opts   Options
	tap    *tap
	engine *clientConn
	// settled is closed when the server's SETTINGS are there, or never will be.
	settled chan struct{}
	// frames counts what the server sent.
	frames atomic.Uint64

	mu sync.Mutex // guards what follows; never held over I/O or a callback
	// limit is what the server allows at once; reserved and open count slots
	// of streams before and after their HEADERS were let go.
	limit, reserved, open int
	greeted               bool        // SETTINGS are there
	timer                 *time.Timer // of SettingsTimeout; nil: none, or over
	lastOpened            uint32
	// why is set when the connection is retired, failure when it is broken or
	// closed. failure implies why.
	why, failure error
	bye          *goAway // the server's GOAWAY; nil: none came
	note         string  // the engine's last error token
	retired      []func(error)
	// silentAt is frames as it was when a stream timed out without any sign of
	// life; while it stays so, the connection gets no new streams.
	silent   bool
	silentAt uint64
}

// NewConn takes nc over, writes the preface and SETTINGS to it and starts to
// read. On an error nc is closed. It waits for these writes, for no answer.
func NewConn(nc net.Conn, opts Options) (*Conn, error) {
	c := &Conn{opts: opts.withDefaults(), limit: assumedStreams, settled: make(chan struct{})}
	c.tap = newTap(nc, c)
	if d := c.opts.SettingsTimeout; d > 0 {
		c.mu.Lock()
		c.timer = time.AfterFunc(d, func() { c.settingsLate(d) })
		c.mu.Unlock()
	}
	engine, err := newClientConn(c.tap, c.opts, c.engineNote)
	if err != nil {
		return nil, c.breakDown(err)
	}
	c.engine = engine
	return c, nil
}

// Reserve reserves a slot for one stream and reports whether it did. It does
// not where the server's SETTINGS_MAX_CONCURRENT_STREAMS is reached, and where
// the connection takes no new streams. It never waits. A reservation ends in
// NewStream or Unreserve.
func (c *Conn) Reserve() bool {
	if !c.engine.usable() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.healthyLocked() || c.reserved+c.open >= c.limit {
		return false
	}
	c.reserved++
	return true
}

// Unreserve gives back a reservation that no NewStream has used.
func (c *Conn) Unreserve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved--
}

// Healthy reports whether new streams may be opened, slots aside. It is false
// from retirement on, and while the server is silent after a stream timed out
// without a frame from it. It does no I/O: the reading goroutine has seen
// whatever the server sent.
func (c *Conn) Healthy() bool {
	if !c.engine.usable() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.healthyLocked()
}

func (c *Conn) healthyLocked() bool {
	return c.why == nil && (!c.silent || c.frames.Load() != c.silentAt)
}

// OnRetire has f called once when the connection takes no more streams, with
// the reason: a GOAWAY, a failure, Shutdown or Close. f is called from any
// goroutine, without a lock, and before OnRetire returns if the connection is
// retired already.
func (c *Conn) OnRetire(f func(err error)) {
	c.mu.Lock()
	why := c.why
	if why == nil {
		c.retired = append(c.retired, f)
	}
	c.mu.Unlock()
	if why != nil {
		f(why)
	}
}

// Close closes the connection at once; every stream fails. The goroutines of
// the connection end with it. It returns the socket's error; a second Close
// returns the same.
func (c *Conn) Close() error {
	c.fail(errClosed)
	return c.tap.shut(xhttp2.ErrCodeNo)
}

// Shutdown retires the connection: it is closed, after a GOAWAY, as soon as no
// stream is open, which for an idle connection is at once.
func (c *Conn) Shutdown() { c.retire(errShutdown) }

// retire stops new streams, tells so and, where none is open, closes.
func (c *Conn) retire(why error) {
	c.mu.Lock()
	if c.why != nil {
		c.mu.Unlock()
		return
	}
	c.why = why
	told := c.retired
	c.retired = nil
	idle := c.open == 0
	c.mu.Unlock()
	for _, f := range told {
		f(why)
	}
	if idle {
		c.fail(why)
		c.tap.shut(xhttp2.ErrCodeNo)
	}
}

// fail records why the connection is broken or closed and retires it. The
// first reason stays; it is returned.
func (c *Conn) fail(err error) error {
	c.mu.Lock()
	first := c.failure == nil
	if first {
		c.failure = err
		if !c.greeted {
			c.settleLocked()
		}
	}
	err = c.failure
	c.mu.Unlock()
	c.retire(err)
	return err
}

// breakDown is fail for an error of the socket or of what came out of it. It
// puts the error in words and closes the socket. It returns the failure that
// the streams get.
func (c *Conn) breakDown(err error) error {
	code := xhttp2.ErrCodeNo
	if pe := (*wire.ProtocolError)(nil); errors.As(err, &pe) {
		code = xhttp2.ErrCodeProtocol
	} else {
		err = c.describe(err)
	}
	err = c.fail(err)
	c.tap.shut(code)
	return err
}

// describe says in a sentence how the connection was lost.
func (c *Conn) describe(err error) error {
	c.mu.Lock()
	bye := c.bye
	c.mu.Unlock()
	end := errors.Is(err, io.EOF)
	switch {
	case end && bye != nil:
		return fmt.Errorf("the server closed the connection after %v: %w", bye, io.ErrUnexpectedEOF)
	case end:
		return fmt.Errorf("the server closed the connection: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the server took no data for %v", c.opts.WriteTimeout)
	case bye != nil:
		return fmt.Errorf("the connection failed after %v: %w", bye, err)
	}
	return fmt.Errorf("the connection failed: %w", err)
}

// engineNote keeps the token of the engine's last error. It says what was wrong
// with a frame where the error itself has the code alone.
func (c *Conn) engineNote(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note = token
}

// engineClosed is called when the engine gives up. Where nothing else is known
// to be wrong, the server broke the protocol: the engine says so to streams
// only.
func (c *Conn) engineClosed() error {
	c.mu.Lock()
	note, known := c.note, c.why != nil
	c.mu.Unlock()
	switch {
	case note == lostPing:
		c.fail(fmt.Errorf("the server did not answer a PING for %v", c.opts.PingInterval))
	case known:
		c.fail(c.reason())
	default:
		c.fail(c.violation(xhttp2.ErrCodeProtocol))
		return c.tap.shut(xhttp2.ErrCodeProtocol)
	}
	return c.tap.shut(xhttp2.ErrCodeNo)
}

// violation is the error of a connection that the engine ended with code, with
// the engine's token for the frame where it noted one.
func (c *Conn) violation(code xhttp2.ErrCode) *wire.ProtocolError {
	c.mu.Lock()
	note := c.note
	c.mu.Unlock()
	if detail, ok := strings.CutPrefix(note, "frame_"); ok {
		return wire.Protocolf("the server broke HTTP/2: %v (%s)", code, strings.ReplaceAll(detail, "_", " "))
	}
	return wire.Protocolf("the server broke HTTP/2: %v", code)
}

// reason returns why the connection takes no more streams.
func (c *Conn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return c.failure
	}
	return c.why
}

// broken returns why the connection is broken or closed; nil: it is not.
func (c *Conn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

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

// admit turns the reservation of a stream into an open slot. Until SETTINGS are
// there only one stream goes ahead: how many more the server allows is not
// known, and to exceed it costs refusals (RFC 9113 5.1.2).
func (c *Conn) admit(ctx context.Context) error {
	for {
		c.mu.Lock()
		switch {
		case c.why != nil:
			why := c.why
			c.mu.Unlock()
			return &wire.UnprocessedError{Err: fmt.Errorf("no new stream: %w", why), Shutdown: true}
		case !c.greeted && c.open > 0:
			c.mu.Unlock()
			select {
			case <-c.settled:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case c.open >= c.limit:
			limit := c.limit
			c.mu.Unlock()
			return &wire.UnprocessedError{Err: fmt.Errorf("the server allows %d streams at once now", limit)}
		}
		c.reserved--
		c.open++
		c.mu.Unlock()
		return nil
	}
}

// release gives an open slot back. The last one closes a retired connection.
func (c *Conn) release() {
	c.mu.Lock()
	c.open--
	last := c.open == 0 && c.why != nil
	why := c.why
	c.mu.Unlock()
	if last {
		c.fail(why)
		c.tap.shut(xhttp2.ErrCodeNo)
	}
}

// opened names the stream whose HEADERS the engine has just written, 0 if they
// did not reach the socket. It is called before the engine writes again.
func (c *Conn) opened() uint32 {
	id := c.tap.lastOpened()
	c.mu.Lock()
	fresh := id > c.lastOpened
	if fresh {
		c.lastOpened = id
	}
	c.mu.Unlock()
	if !fresh {
		return 0
	}
	if id >= lastStreamID {
		c.retire(errors.New("the connection has used up its stream ids"))
	}
	return id
}

// timedOut notes that a stream timed out whose last sign of life from the
// server was its frame number frames.
func (c *Conn) timedOut(frames uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frames.Load() == frames {
		c.silent, c.silentAt = true, frames
	}
}
