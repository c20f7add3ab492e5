package http2_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// benchServer is the environment variable that makes the test binary a server: a
// process of its own, so that a client's allocations and CPU are its own. It
// does as little as a server can, so that what is measured is the client.
const benchServer = "CATENA_BENCH_HTTP2_SERVER"

// What the server's ports do: answer with a small body, with a large one, or
// with a small one after a large request.
const (
	benchSmall = iota
	benchDown
	benchUp
	benchPorts
)

const benchLarge = 100 << 20

const benchBody = "a small body, such as an API answers with in JSON..."

func init() {
	if os.Getenv(benchServer) != "" {
		serveBench()
	}
}

// serveBench serves until its standard input ends.
func serveBench() {
	config := benchCertificate()
	for i := range 2 * benchPorts {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(l.Addr())
		go func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				if i >= benchPorts {
					nc = tls.Server(nc, config)
				}
				go newBenchConn(nc, i%benchPorts).serve()
			}
		}()
	}
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func benchCertificate() *tls.Config {
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	config := &tls.Config{Certificates: srv.TLS.Certificates, NextProtos: []string{"h2"}}
	srv.Close()
	return config
}

// startBenchServer starts the server process and returns its addresses.
func startBenchServer(tb testing.TB) (addrs [2 * benchPorts]string) {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchServer+"=1", "GOMAXPROCS=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { stdin.Close(); cmd.Wait() })
	lines := bufio.NewReader(stdout)
	for i := range addrs {
		line, err := lines.ReadString('\n')
		if err != nil {
			tb.Fatal(err)
		}
		addrs[i] = strings.TrimSpace(line)
	}
	return addrs
}

// benchConn is a connection of the server.
type benchConn struct {
	nc   net.Conn
	in   *bufio.Reader
	mode int
	head []byte

	mu      sync.Mutex // guards what follows
	opened  *sync.Cond
	windows map[uint32]int
	initial int
	window  int
	unsent  int
	out     []byte
}

func newBenchConn(nc net.Conn, mode int) *benchConn {
	c := &benchConn{nc: nc, in: bufio.NewReaderSize(nc, 64<<10), mode: mode, windows: make(map[uint32]int), initial: 65535, window: 65535}
	c.opened = sync.NewCond(&c.mu)
	length := len(benchBody)
	if mode == benchDown {
		length = benchLarge
	}
	var b strings.Builder
	enc := hpack.NewEncoder(&b)
	enc.SetMaxDynamicTableSize(0) // as nginx does
	for _, f := range [...][2]string{
		{":status", "200"}, {"server", "bench"}, {"date", "Sun, 01 Nov 2026 10:00:00 GMT"},
		{"content-type", "text/plain"}, {"content-length", fmt.Sprint(length)},
	} {
		enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	c.head = []byte(b.String())
	return c
}

func benchFrame(b []byte, typ xhttp2.FrameType, flags byte, stream uint32, payload string) []byte {
	b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), byte(typ), flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

func benchWord(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func (c *benchConn) serve() {
	defer c.nc.Close()
	io.CopyN(io.Discard, c.in, int64(len(xhttp2.ClientPreface)))
	settings := "\x00\x03\x00\x00\x03\xe8" + "\x00\x04\x00\x20\x00\x00" // 1000 streams, windows of 2 MiB
	if c.mode == benchUp {
		settings += "\x00\x05\x00\x10\x00\x00" // frames of 1 MiB, as net/http's server
	}
	c.send(benchFrame(benchFrame(nil, xhttp2.FrameSettings, 0, 0, settings), xhttp2.FrameWindowUpdate, 0, 0, benchWord(2<<20-65535)))
	buf := make([]byte, 1<<20)
	for {
		if _, err := io.ReadFull(c.in, buf[:9]); err != nil {
			return
		}
		n := int(buf[0])<<16 | int(buf[1])<<8 | int(buf[2])
		typ, flags, stream := xhttp2.FrameType(buf[3]), buf[4], binary.BigEndian.Uint32(buf[5:])
		if _, err := io.ReadFull(c.in, buf[:n]); err != nil {
			return
		}
		c.frame(typ, flags, stream, buf[:n])
		if c.in.Buffered() == 0 {
			c.flush()
		}
	}
}

func (c *benchConn) frame(typ xhttp2.FrameType, flags byte, stream uint32, p []byte) {
	switch typ {
	case xhttp2.FrameHeaders:
		c.windows[stream] = c.initial
		if flags&1 != 0 {
			c.answer(stream)
		}
	case xhttp2.FrameData:
		c.mu.Lock()
		if c.unsent += len(p); c.unsent >= 1<<20 {
			for _, id := range [...]uint32{0, stream} {
				c.out = benchFrame(c.out, xhttp2.FrameWindowUpdate, 0, id, benchWord(uint32(c.unsent)))
			}
			c.unsent = 0
		}
		c.mu.Unlock()
		if flags&1 != 0 {
			c.answer(stream)
		}
	case xhttp2.FrameSettings:
		if flags&1 != 0 {
			return
		}
		c.mu.Lock()
		for ; len(p) > 0; p = p[6:] {
			if binary.BigEndian.Uint16(p) == 4 {
				c.initial = int(binary.BigEndian.Uint32(p[2:]))
			}
		}
		c.out = benchFrame(c.out, xhttp2.FrameSettings, 1, 0, "")
		c.mu.Unlock()
	case xhttp2.FramePing:
		if flags&1 == 0 {
			c.mu.Lock()
			c.out = benchFrame(c.out, xhttp2.FramePing, 1, 0, string(p))
			c.mu.Unlock()
		}
	case xhttp2.FrameWindowUpdate:
		c.mu.Lock()
		n := int(binary.BigEndian.Uint32(p))
		if stream == 0 {
			c.window += n
		} else if w, ok := c.windows[stream]; ok {
			c.windows[stream] = w + n
		}
		c.opened.Broadcast()
		c.mu.Unlock()
	}
}

func (c *benchConn) answer(stream uint32) {
	c.mu.Lock()
	c.out = benchFrame(c.out, xhttp2.FrameHeaders, 4, stream, string(c.head))
	if c.mode == benchDown {
		c.mu.Unlock()
		go c.download(stream)
		return
	}
	c.out = benchFrame(c.out, xhttp2.FrameData, 1, stream, benchBody)
	delete(c.windows, stream)
	c.mu.Unlock()
}

func (c *benchConn) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.out) > 0 {
		c.nc.Write(c.out)
		c.out = c.out[:0]
	}
}

func (c *benchConn) send(b []byte) {
	c.mu.Lock()
	c.out = append(c.out, b...)
	c.mu.Unlock()
	c.flush()
}

// download sends the large body.
func (c *benchConn) download(stream uint32) {
	const frame = 16 << 10
	buf := make([]byte, 0, 4*(frame+9))
	payload := strings.Repeat("x", frame)
	for left := benchLarge; left > 0; {
		buf = buf[:0]
		c.mu.Lock()
		for min(c.window, c.windows[stream]) < frame {
			c.opened.Wait()
		}
		for n := 0; n < 4 && left > 0 && min(c.window, c.windows[stream]) >= frame; n++ {
			left -= frame
			c.window -= frame
			c.windows[stream] -= frame
			flags := byte(0)
			if left == 0 {
				flags = 1
			}
			buf = benchFrame(buf, xhttp2.FrameData, flags, stream, payload)
		}
		c.out = append(c.out, buf...)
		_, err := c.nc.Write(c.out)
		c.out = c.out[:0]
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}
