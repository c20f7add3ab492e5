package client

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
)

// socket is no client but the bound of all that are written in Go: each caller
// writes the same HTTP/1.1 request to a connection of its own and reads what
// comes, looking only for its length. No deadline, no pool, no header.
type socket struct {
	unopened
	cfg     Config
	callers []*socketCaller
}

func newSocket(cfg Config) (Client, error) {
	if IsHTTP2(cfg.Proto) {
		return &socketHTTP2{cfg: cfg}, nil
	}
	return &socket{cfg: cfg}, nil
}

// unopened is Client.Open of one that has no bodies.
type unopened struct{}

func (unopened) Open(Op) (io.ReadCloser, error) {
	return nil, errors.New("socket has no bodies that can be left unread")
}

// Caller is not safe for concurrent use.
func (s *socket) Caller(op Op) (Do, error) {
	u, err := url.Parse(op.URL)
	if err != nil {
		return nil, err
	}
	head := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: socket\r\nAccept-Encoding: gzip\r\n",
		op.Method, u.RequestURI(), u.Host)
	if op.Method != "GET" {
		head = fmt.Appendf(head, "Content-Length: %d\r\n", op.length())
	}
	if op.Close {
		head = append(head, "Connection: close\r\n"...)
	}
	head = append(append(head, "\r\n"...), op.Body...)
	c := &socketCaller{cfg: s.cfg, host: u.Host, op: op, head: head}
	s.callers = append(s.callers, c)
	return c.do, nil
}

// length is that of the request's body.
func (op Op) length() int64 { return max(op.Size, int64(len(op.Body))) }

func (s *socket) Close() {
	for _, c := range s.callers {
		if c.conn != nil {
			c.conn.Close()
		}
	}
}

type socketCaller struct {
	cfg  Config
	host string
	op   Op
	head []byte   // and the body where it is in memory
	conn net.Conn // nil before the first request, and after each with op.Close
}

func (c *socketCaller) do(buf []byte) (size int64, err error) {
	if c.conn == nil {
		if c.conn, err = dialSocket(c.cfg, c.host); err != nil {
			return 0, err
		}
	}
	if c.op.Close {
		defer func() {
			err = errors.Join(err, c.conn.Close())
			c.conn = nil
		}()
	}
	if _, err := c.conn.Write(c.head); err != nil {
		return 0, err
	}
	if c.op.File != "" {
		if err := c.upload(); err != nil {
			return 0, err
		}
	}
	n, size, err := c.readHead(buf)
	for got := int64(n); err == nil && got < size; got += int64(n) {
		n, err = c.conn.Read(buf)
	}
	return size, err
}

// upload sends the file; the kernel does where nothing is encrypted.
func (c *socketCaller) upload() error {
	f, err := os.Open(c.op.File)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(c.conn, f)
	return err
}

var (
	headEnd     = []byte("\r\n\r\n")
	lengthField = []byte("Content-Length: ")
)

// readHead reads to the end of the response's head. It returns how much of the body
// came along and how long that is.
func (c *socketCaller) readHead(buf []byte) (n int, size int64, err error) {
	for {
		k, err := c.conn.Read(buf[n:])
		if err != nil {
			return 0, 0, err
		}
		n += k
		head, body, ok := bytes.Cut(buf[:n], headEnd)
		if !ok {
			continue
		}
		if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
			return 0, 0, fmt.Errorf("the server answered %q", head)
		}
		_, field, _ := bytes.Cut(head, lengthField)
		field, _, _ = bytes.Cut(field, []byte("\r\n"))
		size, err = strconv.ParseInt(string(field), 10, 64)
		return len(body), size, err
	}
}

// dialSocket dials host, an address with a port, and does the handshake where the
// protocol has one.
func dialSocket(cfg Config, host string) (net.Conn, error) {
	nc, err := net.Dial("tcp", host)
	if err != nil || cfg.Proto == H1 || cfg.Proto == H2C {
		return nc, err
	}
	t := cfg.TLS.Clone()
	t.ServerName, _, _ = net.SplitHostPort(host)
	if cfg.Proto == H2TLS {
		t.NextProtos = []string{"h2"}
	}
	raw := &gatherer{Conn: nc}
	tc := tls.Client(raw, t)
	if err := tc.Handshake(); err != nil {
		nc.Close()
		return nil, err
	}
	raw.holding = true
	return &tlsSocket{Conn: tc, raw: raw}, nil
}

// tlsSocket writes several records of a Write by one system call, where crypto/tls makes
// one for each. One goroutine may write at a time, and the peer may not ask for new
// keys: TLS would answer by itself.
type tlsSocket struct {
	*tls.Conn
	raw *gatherer
	buf []byte // for ReadFrom
}

func (s *tlsSocket) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		k := min(len(p)-n, gathered)
		s.Conn.Write(p[n : n+k]) // to raw.held, so without an error
		_, err = s.raw.Conn.Write(s.raw.held)
		s.raw.held = s.raw.held[:0]
		n += k
	}
	return n, err
}

// gathered is how much is encrypted before it is written: the rest meanwhile reaches
// the peer.
const gathered = 128 << 10

// ReadFrom is what io.Copy calls.
func (s *tlsSocket) ReadFrom(r io.Reader) (int64, error) {
	if s.buf == nil {
		s.buf = make([]byte, burst)
	}
	return io.CopyBuffer(struct{ io.Writer }{s}, r, s.buf)
}

// gatherer is the connection below TLS. After the handshake it keeps what is written.
type gatherer struct {
	net.Conn
	holding bool
	held    []byte
}

func (g *gatherer) Write(p []byte) (int, error) {
	if !g.holding {
		return g.Conn.Write(p)
	}
	g.held = append(g.held, p...)
	return len(p), nil
}
