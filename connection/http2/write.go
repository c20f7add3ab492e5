package http2

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// maxControl bounds the control frames that wait to be written, answers to
	// the server's above all. A peer that makes us write more than it reads has
	// no use for them.
	maxControl = 10000
	// fullBatch is from when on nothing joins a batch without waiting its turn.
	fullBatch = 64 << 10
	// keptBuffer is the largest buffer that is kept for another batch.
	keptBuffer = 16 << 10
	// writeStep is how much is written under one deadline; above TLS it is a
	// record, because that layer can not go on after a deadline.
	writeStep  = 128 << 10
	secureStep = 16 << 10
	// farewell bounds the write of the last GOAWAY: it is a courtesy.
	farewell = 50 * time.Millisecond
)

var errStuck = errors.New("the server took no data")

// writer is a connection's way out.
//
// Frames gather in a batch while another batch is being written. Whoever adds
// the first frame is the batch's leader: it waits until the socket is free and
// writes what the batch has become by then. The others have nothing to wait for.
// So callers that write at the same time share a write, and none of them writes
// for others for longer than one batch.
//
// A write under way can not be taken back, so a caller makes only those that will
// hardly block: of heads, and of the end of a request. Bodies, of which a socket
// takes no more than the network does, and what the reading goroutine and
// cancellations have to say, are written by a goroutine that ends with the write.
type writer struct {
	c *Conn
	// gather is below TLS; nil: it is not there.
	gather *gatherer
	// token is the right to write to the socket: who has put one in has it.
	token chan struct{}
	// torn is true once the output may end inside a frame.
	torn atomic.Bool
	// begun is the newest batch of which a write has begun.
	begun atomic.Uint64
	// progress counts the bytes that the socket took.
	progress atomic.Uint64
	// pace is how long the last large write took, for each largeBurst of it.
	pace atomic.Int64
	// sentData counts what was sent of bodies.
	sentData atomic.Uint64

	mu      sync.Mutex // guards what follows
	pending buffer
	memory  *buffer // where pending comes from; nil: it has none
	batch   uint64  // the number of the one that is pending
	led     bool    // it has a leader
	control int     // control frames in it
	closed  bool    // what is pending is not written any more
	parting buffer  // what was, then, and may be
	henc    *hpack.Encoder
	nextID  uint32
}

// A buffer is memory that can be written to. Connections share them: one that is
// idle has none.
type buffer []byte

var buffers = sync.Pool{New: func() any {
	b := make(buffer, 0, 1<<10)
	return &b
}}

func (b *buffer) free() {
	if b != nil && cap(*b) <= keptBuffer {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (w *writer) init(c *Conn) {
	w.c = c
	w.gather = gathererOf(c.nc)
	w.token = make(chan struct{}, 1)
	w.batch = 1
	w.nextID = 1
	w.henc = hpack.NewEncoder(&w.pending)
}

// open writes the opening of the connection.
func (w *writer) open(b []byte) error {
	w.token <- struct{}{}
	defer w.yield()
	return w.write(b)
}

// acquire waits for the token, as long as s may write. The write timeout counts
// from the last time that the socket took something.
func (w *writer) acquire(s *Stream) error {
	select {
	case w.token <- struct{}{}:
		return nil
	default:
	}
	wait := writeWait{progress: w.progress.Load()}
	for {
		park, err := s.writerWait(wait.again(w))
		if err != nil {
			return err
		}
		select {
		case w.token <- struct{}{}:
			return nil
		case <-park.ch:
		}
	}
}

// writeWait is a wait for the socket.
type writeWait struct {
	deadline
	progress uint64
}

// again returns the deadline, which begins anew if the socket has taken
// something meanwhile.
func (wait *writeWait) again(w *writer) *deadline {
	if now := w.progress.Load(); now != wait.progress {
		wait.progress, wait.deadline = now, deadline{}
	}
	return &wait.deadline
}

func (w *writer) yield() { <-w.token }

// joinLocked notes that a frame was added to the batch and reports whether that
// makes the caller its leader. It unlocks mu.
func (w *writer) joinLocked() (lead bool) {
	lead = !w.led && !w.closed
	w.led = true
	if w.closed {
		w.pending = w.pending[:0]
	}
	w.mu.Unlock()
	return lead
}

// lead writes the batch that s leads.
func (w *writer) lead(s *Stream) error {
	if w.c.shared() {
		// Whoever else is ready to write comes first, so that one write serves
		// them all: it costs far more than they do.
		runtime.Gosched()
	}
	if err := w.acquire(s); err != nil {
		go w.leadAlone() // somebody has to
		return err
	}
	defer w.yield()
	return w.writePending()
}

// leadAlone is lead without a caller. It ends when the batch is written or the
// socket is closed.
func (w *writer) leadAlone() {
	w.token <- struct{}{}
	defer w.yield()
	w.writePending()
}

// writePending writes the batch. The caller has the token.
func (w *writer) writePending() error {
	return w.writeBatch(w.takePending())
}

// writeBatch writes and frees what takePending returned.
func (w *writer) writeBatch(batch *buffer) error {
	if batch == nil {
		return nil
	}
	defer batch.free()
	return w.write(*batch)
}

// beginFrame is called before a frame is added to the batch. mu is held.
func (w *writer) beginFrame() {
	if w.memory == nil {
		w.memory = buffers.Get().(*buffer)
		w.pending = *w.memory
	}
}

// takePending begins a new batch and returns the old one; nil: it is empty. The
// caller has the token.
func (w *writer) takePending() *buffer {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.led, w.control = false, 0
	if w.closed || len(w.pending) == 0 {
		return nil
	}
	batch := w.memory
	*batch = w.pending
	w.pending, w.memory = nil, nil
	w.begun.Store(w.batch)
	w.batch++
	return batch
}

// write writes b. The caller has the token. After an error nothing is written any
// more.
func (w *writer) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if w.torn.Load() {
		return w.c.reason()
	}
	defer w.paced(len(b))()
	if w.c.opts.Secure {
		// TLS writes by itself too, at any time: an answer to a change of keys.
		defer w.c.nc.SetWriteDeadline(time.Time{})
	}
	step := writeStep
	switch {
	case w.gather != nil && len(b) > secureStep:
		return w.writeGathered(b)
	case w.c.opts.Secure:
		step = secureStep
	case w.largest() == hugeBurst:
		step = hugeBurst
	}
	return w.push(w.c.nc, b, step, !w.c.opts.Secure)
}

// writeGathered is write over TLS, with several records at a time.
func (w *writer) writeGathered(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), gathered)
		w.gather.hold()
		w.limit(w.c.nc, 1) // it may wait for what TLS writes by itself
		if _, err := w.c.nc.Write(b[:n]); err != nil {
			return w.tear(err)
		}
		if err := w.gather.release(w.pushRecords); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (w *writer) pushRecords(b []byte) error { return w.push(w.gather.Conn, b, gathered, true) }

// push writes b to nc, at most step at a time. Each has the write timeout; where it
// can go on after a part, in two halves, so that who waits for the socket sees in
// time that it takes something.
func (w *writer) push(nc net.Conn, b []byte, step int, goesOn bool) error {
	share := time.Duration(1)
	if goesOn {
		share = 2
	}
	stalled := false
	for len(b) > 0 {
		w.limit(nc, share)
		n, err := nc.Write(b[:min(len(b), step)])
		w.progress.Add(uint64(n))
		if err != nil && goesOn && (n > 0 || !stalled) && errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil // if slowly
		}
		if err != nil {
			return w.tear(err)
		}
		stalled = n == 0
		b = b[n:]
	}
	return nil
}

// limit gives the next write of nc its share of the write timeout.
func (w *writer) limit(nc net.Conn, share time.Duration) {
	if timeout := w.c.opts.WriteTimeout; timeout > 0 {
		nc.SetWriteDeadline(time.Now().Add(timeout / share))
	}
}

// tear ends writing for an error of the socket's.
func (w *writer) tear(err error) error {
	w.torn.Store(true)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return w.c.breakDown(fmt.Errorf("%w for %v", errStuck, w.c.opts.WriteTimeout))
	}
	return w.c.muted(err)
}

// paced begins a write of n bytes; what it returns ends it.
func (w *writer) paced(n int) func() {
	if n < joined {
		return func() {}
	}
	began := time.Now()
	return func() { w.pace.Store(max(1, int64(time.Since(began))*largeBurst/int64(n))) }
}

// sendControl adds a frame that nobody waits for.
func (w *writer) sendControl(frame []byte) {
	w.mu.Lock()
	w.sendControlLocked(frame)
}

// sendControlLocked unlocks mu.
func (w *writer) sendControlLocked(frame []byte) {
	w.beginFrame()
	w.pending = append(w.pending, frame...)
	w.control++
	flood := w.control > maxControl
	if w.joinLocked() {
		go w.leadAlone()
	}
	if flood {
		w.c.violate(xhttp2.ErrCodeEnhanceYourCalm, "%d control frames wait for the server to read them", maxControl)
	}
}

func (w *writer) reset(stream uint32, code xhttp2.ErrCode) {
	var b [frameHeaderLen + 4]byte
	w.sendControl(appendWord(b[:0], xhttp2.FrameRSTStream, stream, uint32(code)))
}

func (w *writer) windowUpdate(stream uint32, n int64) {
	var b [frameHeaderLen + 4]byte
	w.sendControl(appendWord(b[:0], xhttp2.FrameWindowUpdate, stream, uint32(n)))
}

func (w *writer) ping(ack bool, data [8]byte) {
	var b [frameHeaderLen + 8]byte
	w.sendControl(appendPing(b[:0], ack, data))
}

// close lets no more batches out. One that waits is dropped where a stream is on
// the wire: a request in it is not Written, is called unprocessed for that and may
// be sent elsewhere. Otherwise goodbye writes it.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed && w.c.quiet() {
		w.parting = w.pending
	}
	w.closed = true
	w.pending, w.memory = nil, nil
}

// goodbye writes what close has left and a GOAWAY with code, if the socket takes
// it at once. Nothing is written afterwards.
func (w *writer) goodbye(code xhttp2.ErrCode) {
	if w.torn.Load() {
		return
	}
	late := time.NewTimer(farewell)
	defer late.Stop()
	select {
	case w.token <- struct{}{}:
	case <-late.C:
		return
	}
	defer w.yield()
	if w.torn.Swap(true) {
		return
	}
	w.mu.Lock()
	b := appendGoAway(w.parting, code)
	w.parting = nil
	w.mu.Unlock()
	w.c.nc.SetWriteDeadline(time.Now().Add(farewell))
	w.c.nc.Write(b)
}
