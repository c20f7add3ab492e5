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
	// keptWaiters is how many waiters are kept for later streams.
	keptWaiters = 128
)

var (
	errClosed    = fmt.Errorf("the connection was closed: %w", net.ErrClosed)
	errExhausted = errors.New("the connection has used up its stream ids")
	errShutdown  = errors.New("the connection was shut down")
)

// Conn is the client side of one HTTP/2 connection. It is safe for concurrent
// use.
//
// Its life has three one-way steps: it takes streams; it is retired, and takes
// no more of them while those that are open go on; it is closed. A retired
// connection closes by itself when its last stream ends.
//
// Locks: out.mu may be held while mu or a Stream's mu is taken; these two are
// never held together. None is held over I/O, a callback or a wait.
type Conn struct {
	opts Options
	nc   net.Conn
	out  writer
	in   reader

	// frames counts what the server sent, buffered the bytes of bodies that
	// wait to be read, pinned the bytes of chunks that they lie in.
	frames   atomic.Uint64
	buffered atomic.Int64
	pinned   atomic.Int64
	// maxFrame is the largest payload the server takes.
	maxFrame atomic.Int32
	// lastRead is when the server sent something last, as the time since start;
	// it is kept up where PINGs are sent.
	start    time.Time
	lastRead atomic.Int64

	// settled is closed when the server's SETTINGS are there, or never will be.
	settled chan struct{}

	shutOnce sync.Once
	shutErr  error

	mu sync.Mutex // guards what follows
	// streams are those that are open on the wire.
	streams map[uint32]*Stream
	// limit is what the server allows at once; reserved and open count slots
	// of streams before and after their HEADERS were let go.
	limit, reserved, open int
	limited               bool        // by the server's word
	greeted               bool        // SETTINGS are there
	timer                 *time.Timer // of SettingsTimeout; nil: none, or over
	connect               bool        // SETTINGS_ENABLE_CONNECT_PROTOCOL came
	lastOpened            uint32
	// why is set when the connection is retired, failure when it is broken or
	// closed. failure implies why.
	why, failure error
	writeErr     error     // of the first write that failed
	readUntil    time.Time // afterwards; zero: there is no end
	bye          *goAway   // the server's GOAWAY; nil: none came
	retired      []func(error)
	waiters      []*waiter // to be used again

	send    sendWindow
	receive receiveWindow
	shrunk  bool  // streams' windows are small
	acks    int   // of our SETTINGS
	grown   int64 // bytes that streams' windows have grown by since
	health  health
}

// NewConn takes nc over, writes the preface and SETTINGS to it and starts to
// read. On an error nc is closed. It waits for these writes, for no answer.
func NewConn(nc net.Conn, opts Options) (*Conn, error) {
	c := &Conn{opts: opts.withDefaults(), nc: nc, limit: assumedStreams, start: time.Now(), settled: make(chan struct{})}
	c.streams = make(map[uint32]*Stream)
	c.maxFrame.Store(maxFrameLen)
	c.send = sendWindow{conn: defaultWindow, initial: defaultWindow}
	c.receive = newReceiveWindow(c.opts.half())
	c.out.init(c)
	c.in.init(c)
	c.mu.Lock()
	if d := c.opts.SettingsTimeout; d > 0 {
		c.timer = time.AfterFunc(d, func() { c.settingsLate(d) })
	}
	c.startPings()
	c.mu.Unlock()
	if err := c.out.open(c.opening()); err != nil {
		c.fail(err)
		c.shut(xhttp2.ErrCodeNo)
		return nil, err
	}
	go c.in.run() // ends with the connection
	return c, nil
}

// Reserve reserves a slot for one stream and reports whether it did. It does
// not where the server's SETTINGS_MAX_CONCURRENT_STREAMS is reached, and where
// the connection takes no new streams. It never waits. A reservation ends in
// NewStream or Unreserve.
func (c *Conn) Reserve() bool {
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
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.healthyLocked()
}

func (c *Conn) healthyLocked() bool {
	return c.why == nil && (!c.health.silent || c.frames.Load() != c.health.silentAt)
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
	return c.shut(xhttp2.ErrCodeNo)
}

// Shutdown retires the connection: it is closed, after a GOAWAY, as soon as no
// stream is open, which for an idle connection is at once.
func (c *Conn) Shutdown() { c.retire(errShutdown) }

// admit turns the reservation of s into an open slot. Until SETTINGS are there
// only one stream goes ahead: how many more the server allows is not known, and
// to exceed it costs refusals (RFC 9113 5.1.2).
func (c *Conn) admit(s *Stream) error {
	var dl deadline
	for {
		c.mu.Lock()
		switch {
		case c.why != nil:
			why := c.why
			c.mu.Unlock()
			return unopened(why)
		case !c.greeted && c.open > 0:
			c.mu.Unlock()
			if err := c.awaitSettings(s, &dl); err != nil {
				return err
			}
			continue
		case c.open >= c.limit:
			limit := c.limit
			c.mu.Unlock()
			return &wire.UnprocessedError{Err: fmt.Errorf("the server allows %d streams at once now", limit)}
		}
		c.reserved = max(c.reserved-1, 0)
		c.open++
		r := c.waiterLocked()
		c.mu.Unlock()
		s.admit(r)
		return nil
	}
}

// awaitSettings waits until SETTINGS are there or never will be.
func (c *Conn) awaitSettings(s *Stream, dl *deadline) error {
	w, err := s.writerWait(dl)
	if err != nil {
		return err
	}
	select {
	case <-c.settled:
	case <-w.ch:
	}
	return nil
}

// shared reports whether more than one stream is open.
func (c *Conn) shared() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > 1
}

// unopened is the error of a request of which nothing was written, because the
// connection takes no more streams.
func unopened(why error) error {
	return &wire.UnprocessedError{Err: fmt.Errorf("no new stream: %w", why), Shutdown: true}
}

// register gives s the next id. out.mu is held, so that ids go out in order.
func (c *Conn) register(s *Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return unopened(c.why)
	}
	s.window = c.windowLocked() // nobody else looks at it before s is known
	c.streams[s.id] = s
	c.lastOpened = s.id
	s.sendWindow = c.send.initial
	return nil
}

// forget takes s off the wire's streams: neither side sends on it any more.
func (c *Conn) forget(s *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s.id)
	c.grown -= s.grown
	s.grown = 0
}

// release gives an open slot back, with the waiters that belong to it. The last
// one closes a retired connection.
func (c *Conn) release(r, w *waiter) {
	c.mu.Lock()
	c.open--
	c.keepLocked(r)
	c.keepLocked(w)
	if c.open == 0 {
		c.waiters = c.waiters[:min(len(c.waiters), 2)]
	}
	last := c.open == 0 && c.why != nil
	why := c.why
	c.mu.Unlock()
	if last {
		c.fail(why)
		c.shut(xhttp2.ErrCodeNo)
	}
}

func (c *Conn) waiterLocked() *waiter {
	n := len(c.waiters)
	if n == 0 {
		return newWaiter()
	}
	w := c.waiters[n-1]
	c.waiters[n-1] = nil
	c.waiters = c.waiters[:n-1]
	return w
}

func (c *Conn) keepLocked(w *waiter) {
	if w == nil {
		return
	}
	w.quiet()
	if len(c.waiters) < keptWaiters {
		c.waiters = append(c.waiters, w)
	}
}
