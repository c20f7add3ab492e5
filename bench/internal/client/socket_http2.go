package client

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
)

const (
	frameHead   = 9
	leastFrame  = 16 << 10   // what every peer takes of a frame (RFC 9113 4.2)
	firstWindow = 64<<10 - 1 // of connections, and of streams unless SETTINGS say more (6.9.2)
	mostWindow  = 1<<31 - 1
	ourWindow   = 16 << 20  // of a stream that is read
	readBuffer  = 128 << 10 // frames are parsed in it
	burst       = 512 << 10 // of a file that is written at a time
	cacheLine   = 64        // of most processors
)

// socketHTTP2 is socket by HTTP/2: one connection, to which callers write frames made
// before, and one goroutine that looks for the ends of their streams. It trusts the
// peer: no padding, one SETTINGS, a head that is one frame and begins with its status.
type socketHTTP2 struct {
	unopened
	cfg Config

	mu   sync.Mutex // guards conn
	conn *socketConn
}

func (s *socketHTTP2) Caller(op Op) (Do, error) {
	u, err := url.Parse(op.URL)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		if s.conn, err = dialSocketHTTP2(s.cfg, u.Host); err != nil {
			return nil, err
		}
	}
	stream := &socketStream{conn: s.conn, op: op, request: op.requestFrames(u), done: make(chan error, 1)}
	if op.File != "" {
		stream.buf = make([]byte, cacheLine+burst+burst/leastFrame*frameHead)
	}
	return stream.do, nil
}

func (s *socketHTTP2) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.fail(net.ErrClosed)
		<-s.conn.ended
	}
}

// requestFrames are op's request but for its stream's number: fields that no table
// keeps, so that they can be sent again and again, and the body if it is in memory.
func (op Op) requestFrames(u *url.URL) []byte {
	method, scheme := byte(0x82), byte(0x86) // GET, http
	if op.Method == "POST" {
		method = 0x83
	}
	if u.Scheme == "https" {
		scheme = 0x87
	}
	fields := []byte{method, scheme}
	fields = appendField(fields, 1, u.Host)
	fields = appendField(fields, 4, u.RequestURI())
	fields = appendField(fields, 58, "socket") // user-agent
	fields = appendField(fields, 16, "gzip")   // accept-encoding
	if op.Method == "POST" {
		fields = appendField(fields, 28, strconv.FormatInt(op.length(), 10)) // content-length
	}
	flags := http2.FlagHeadersEndHeaders
	if op.length() == 0 {
		flags |= http2.FlagHeadersEndStream
	}
	frames := appendFrame(nil, http2.FrameHeaders, flags, 0, fields)
	if op.Body != nil {
		frames = appendFrame(frames, http2.FrameData, http2.FlagDataEndStream, 0, op.Body)
	}
	return frames
}

// appendField appends a literal without indexing, its name one of the static table
// (RFC 7541 6.2.2). Lengths over 126 would need another form.
func appendField(b []byte, name byte, value string) []byte {
	if name < 15 {
		b = append(b, name)
	} else {
		b = append(b, 15, name-15)
	}
	return append(append(b, byte(len(value))), value...)
}

// socketStream is a caller's stream: another one for each request.
type socketStream struct {
	conn    *socketConn
	op      Op
	request []byte
	done    chan error // the end of the stream; has room for it
	buf     []byte     // for frames of the file

	// The connection's mu guards what follows.
	id     uint32
	window int64  // what may be sent
	got    int64  // of the body
	credit uint32 // of got, what the peer was not given back
}

func (s *socketStream) do([]byte) (int64, error) {
	err := s.start()
	if err == nil && s.op.File != "" {
		err = s.upload()
	}
	if err == nil {
		err = <-s.done
	}
	return s.got, err
}

func (s *socketStream) start() error {
	c, body := s.conn, int64(len(s.op.Body))
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && c.window < body {
		c.changed.Wait()
	}
	if c.err != nil {
		return c.err
	}
	s.id, s.window, s.got, s.credit = c.nextID, c.streamWindow-body, 0, 0
	c.nextID += 2
	c.window -= body
	c.streams[s.id] = s
	for frame := s.request; len(frame) > 0; frame = frame[frameLen(frame):] {
		binary.BigEndian.PutUint32(frame[5:], s.id)
	}
	c.pending = append(c.pending, s.request...)
	return c.flush()
}

// upload sends the file. After an error the connection is of no use.
func (s *socketStream) upload() error {
	f, err := os.Open(s.op.File)
	if err != nil {
		return s.conn.fail(err)
	}
	defer f.Close()
	for left := s.op.Size; left > 0; {
		n, err := s.conn.take(s, min(left, burst))
		if err != nil {
			return err
		}
		left -= n
		frames, err := s.read(f, int(n), left == 0)
		if err != nil {
			return s.conn.fail(err)
		}
		if err := s.conn.write(frames); err != nil {
			return err
		}
	}
	return nil
}

// read reads n bytes of f into frames as large as the peer takes them. The first body
// begins where a cache line does: the kernel may copy the file there twice as
// fast as to where it does not.
func (s *socketStream) read(f io.Reader, n int, last bool) ([]byte, error) {
	b := s.buf[cacheLine-frameHead : cacheLine-frameHead]
	for n > 0 {
		size := min(n, s.conn.maxFrame)
		n -= size
		var flags http2.Flags
		if last && n == 0 {
			flags = http2.FlagDataEndStream
		}
		b = appendHead(b, size, http2.FrameData, flags, s.id)
		b = b[:len(b)+size]
		if _, err := io.ReadFull(f, b[len(b)-size:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}
