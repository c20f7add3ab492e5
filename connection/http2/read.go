package http2

import (
	"bytes"
	"runtime"
	"time"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// leastRoom is the room below which a chunk is not read into any more: reads
// get slow when they are short.
const leastRoom = 8 << 10

// wakeAfter is how much is read before a reader is woken although there is more
// to read: it costs less to wake it once, for more.
const wakeAfter = 128 << 10

// aheadMost is how much of a body may lie unread before its reader is let run: what
// it reads soon is still in the cache.
const aheadMost = 128 << 10

// reader is a connection's way in. It belongs to the reading goroutine, which
// never waits for anything but the socket.
//
// Frames are parsed where they were read. What belongs to a body is handed over
// in place, as it comes, so a frame needs not be there as a whole; all others
// wait until they are.
type reader struct {
	c *Conn
	// buf holds what was read and not parsed, from r to w. It is nil while the
	// socket is waited for and there is nothing.
	buf  *chunk
	r, w int
	busy bool // the last read filled what it was given
	// sock is the connection as one that tells before it waits; nil: it is not one.
	sock *socket
	told bool // wakeTouched is called before a wait for the socket
	need int  // how much a read is for

	data dataFrame
	// touched is the stream that what came last was for. Its reader is woken when
	// something else comes, or before the next wait: once for a head and the
	// body that follows it.
	touched *Stream
	unseen  int  // bytes that were read since a reader was woken
	ahead   bool // too much of the body that came last is unread: see aheadMost
	block   headerBlock
	idle    budget
	lull    lull
}

func (in *reader) init(c *Conn) {
	in.c = c
	in.sock = newSocket(c.nc, in.room, in.rest)
	if g := gathererOf(c.nc); g != nil {
		in.told = g.tell(in.wakeTouched)
	} else {
		in.told = in.sock != nil
	}
	in.block.init(c)
}

// run reads until the connection ends.
func (in *reader) run() {
	in.parse(in.greet())
}

// parse reads and takes frames until err, or until another goroutine takes over.
func (in *reader) parse(err error) {
	for err == nil || in.doze(err) {
		if err != nil {
			go in.sleep() // ends with the connection
			return
		}
		if in.data.left > 0 {
			err = in.readData()
		} else {
			err = in.readFrame()
		}
	}
	in.wakeTouched()
	in.c.breakDown(err)
	in.dropBuffer()
}

// fill reads until n bytes are there to be parsed.
func (in *reader) fill(n int) error {
	for in.w-in.r < n {
		if err := in.read(n); err != nil {
			return err
		}
	}
	return nil
}

// read reads once, into a buffer with room for n bytes from r on.
func (in *reader) read(n int) error {
	var got int
	var err error
	in.need = n
	if !in.told || in.unseen >= wakeAfter {
		in.wakeTouched()
		in.letReaderRun()
	}
	if in.sock != nil {
		got, err = in.sock.read()
	} else {
		got, err = in.c.nc.Read(in.room())
	}
	in.w += got
	in.unseen += got
	if got > 0 {
		// The end of a frame may be short without a lull: over TLS it is, where frames
		// are as large as records.
		in.busy = got >= smallChunk || in.w == len(in.buf.b) || in.busy && in.data.left > 0
		if in.c.opts.PingInterval > 0 {
			in.c.lastRead.Store(int64(time.Since(in.c.start)))
		}
		return nil
	}
	return err
}

// letReaderRun makes way for the reader of a body, which was woken, where that is far
// behind. It is no wait: where the reader is busy with something else, it goes on.
func (in *reader) letReaderRun() {
	if in.ahead {
		in.ahead = false
		runtime.Gosched()
	}
}

// rest is called before a wait for the socket.
func (in *reader) rest() {
	in.wakeTouched()
	if in.r == in.w && in.buf.refs.Load() == 1 { // else a body holds it, and there may be room
		in.dropBuffer()
	}
	in.awaitLull()
}

func (in *reader) dropBuffer() {
	if in.buf != nil {
		in.buf.release()
		in.buf, in.r, in.w = nil, 0, 0
	}
}

// room is what to read into: the buffer as it is, the same from its beginning, or
// a new one where bodies hold the old one or its size is wrong.
func (in *reader) room() []byte {
	in.makeRoom(in.need)
	return in.buf.b[in.w:]
}

func (in *reader) makeRoom(n int) {
	large := n > smallChunk || in.expects() && (in.sock != nil || !in.c.quiet())
	if in.buf == nil {
		in.buf = newChunk(large)
		return
	}
	held := in.w - in.r
	alone := in.buf.refs.Load() == 1
	right := large == (len(in.buf.b) == largeChunk) || held > 0 && len(in.buf.b) == largeChunk
	switch {
	case alone && right:
		copy(in.buf.b, in.buf.b[in.r:in.w])
		in.r, in.w = 0, held
	case right && len(in.buf.b)-in.w >= max(n-held, leastRoom):
		// Bodies hold what is before w, not what is after it.
	default:
		next := newChunk(large)
		copy(next.b, in.buf.b[in.r:in.w])
		in.buf.release()
		in.buf, in.r, in.w = next, 0, held
	}
}

// expects reports whether much is to come at once. A wait for anything else is
// better done with a small buffer. A large one that bodies hold is used to its end,
// though: left half empty, it costs as much.
func (in *reader) expects() bool {
	held := in.buf != nil && len(in.buf.b) == largeChunk && in.buf.refs.Load() > 1
	return in.busy || held || in.data.left >= smallChunk
}

// quiet reports whether nothing is expected from the server.
func (c *Conn) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams) == 0
}

// take returns the next n bytes, which are there, and moves past them.
func (in *reader) take(n int) []byte {
	p := in.buf.b[in.r : in.r+n]
	in.r += n
	return p
}

// touch is called when something came for s, which may be nil.
func (in *reader) touch(s *Stream) {
	if in.touched != s {
		in.wakeTouched()
		in.touched = s
	}
}

func (in *reader) wakeTouched() {
	in.unseen = 0
	if s := in.touched; s != nil {
		in.touched = nil
		s.r.wake()
	}
}

// greet reads the first bytes, until they can be told to be HTTP/2's.
func (in *reader) greet() error {
	for in.w < frameHeaderLen {
		err := in.read(frameHeaderLen)
		if in.buf != nil {
			if foreign := foreign(in.buf.b[:in.w]); foreign != nil {
				return foreign
			}
		}
		if err != nil {
			return err
		}
	}
	opening := in.buf.b[:min(in.w, 64)]
	if err := foreign(opening); err != nil {
		return err
	}
	h := parseFrameHeader(opening)
	if h.typ != xhttp2.FrameSettings || h.stream != 0 || h.flags.Has(xhttp2.FlagSettingsAck) {
		return &violationError{
			*wire.Protocolf("the server's first frame is not SETTINGS: it begins with %q", opening),
			xhttp2.ErrCodeProtocol,
		}
	}
	return nil
}

// foreign recognises two protocols that answer on a port where HTTP/2 was
// expected, from the connection's first bytes.
func foreign(p []byte) error {
	switch {
	case bytes.HasPrefix(p, []byte("HTTP/1.")):
		line, _, _ := bytes.Cut(p[:min(len(p), 64)], []byte("\r\n"))
		return &violationError{*wire.Protocolf("the server speaks HTTP/1.1, not HTTP/2: %q", line), xhttp2.ErrCodeProtocol}
	case len(p) >= 3 && (p[0] == 0x15 || p[0] == 0x16) && p[1] == 3 && p[2] <= 4:
		return &violationError{*wire.Protocolf("the server speaks TLS, not cleartext HTTP/2"), xhttp2.ErrCodeProtocol}
	}
	return nil
}

// readFrame reads a frame, of DATA its header only.
func (in *reader) readFrame() error {
	if err := in.fill(frameHeaderLen); err != nil {
		return err
	}
	h := parseFrameHeader(in.buf.b[in.r:])
	in.c.frames.Add(1)
	if h.length > maxFrameLen {
		return in.c.violation(xhttp2.ErrCodeFrameSize, "a frame of %d bytes, more than the %d allowed", h.length, maxFrameLen)
	}
	if err := in.block.admits(h); err != nil {
		return err
	}
	if h.typ == xhttp2.FrameData {
		return in.beginData(h)
	}
	if err := in.fill(frameHeaderLen + h.length); err != nil {
		return err
	}
	p := in.take(frameHeaderLen + h.length)[frameHeaderLen:]
	switch h.typ {
	case xhttp2.FrameHeaders:
		return in.headers(h, p)
	case xhttp2.FrameContinuation:
		return in.continuation(h, p)
	}
	if err := in.idle.spend(in.c); err != nil {
		return err
	}
	return in.c.control(h, p)
}
