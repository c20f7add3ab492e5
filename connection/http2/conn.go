package http2

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	probeTimeout = 5 * time.Second
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
	probing  bool // a PING is out for it
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

// Confirm waits for the server's SETTINGS and reports whether a reservation holds:
// before them more slots may be handed out than the server turns out to allow.
// One that does not hold is given back. At ctx's end it is left as it is, for
// whoever goes on with it to fail.
func (c *Conn) Confirm(ctx context.Context) bool {
	select {
	case <-c.settled:
	case <-ctx.Done():
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil && c.reserved+c.open <= c.limit {
		return true
	}
	c.reserved = max(c.reserved-1, 0)
	return false
}

// Unreserve gives back a reservation that no NewStream has used.
func (c *Conn) Unreserve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A caller who went on although Reserve said no has nothing to give back.
	c.reserved = max(c.reserved-1, 0)
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
		c.reserved = max(c.reserved-1, 0)
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
// did not reach the socket, and reports whether the write went well. It is
// called before the engine writes again.
func (c *Conn) opened() (id uint32, whole bool) {
	id, whole = c.tap.lastOpened()
	c.mu.Lock()
	fresh := id > c.lastOpened
	if fresh {
		c.lastOpened = id
	}
	c.mu.Unlock()
	if !fresh {
		return 0, false
	}
	if id >= lastStreamID {
		c.retire(errors.New("the connection has used up its stream ids"))
	}
	return id, whole
}
