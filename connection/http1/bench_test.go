package http1_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

// loop is a connection in memory whose peer repeats one answer and counts
// nothing.
type loop struct {
	script
	answer string
	at     int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.answer[l.at:])
	l.at = (l.at + n) % len(l.answer)
	return n, nil
}

func (l *loop) Write(p []byte) (int, error)        { return len(p), nil }
func (l *loop) SetReadDeadline(t time.Time) error  { return nil }
func (l *loop) SetWriteDeadline(t time.Time) error { return nil }

const usualHead = "HTTP/1.1 200 OK\r\n" +
	"Date: Sun, 29 Nov 2026 20:00:00 GMT\r\n" +
	"Content-Type: application/json; charset=utf-8\r\n" +
	"Server: example\r\n" +
	"Cache-Control: private, max-age=0\r\n" +
	"Vary: Accept-Encoding\r\n" +
	"X-Request-Id: 0123456789abcdef\r\n" +
	"Content-Length: 13\r\n\r\n"

func usualRequest(b testing.TB) *http.Request {
	req := newRequest(b, "GET", "http://example.com/api/items?limit=10")
	req.Header.Set("User-Agent", "catena/1.0")
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("Accept", "application/json")
	return req
}

var terms = wire.Exchange{ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}

func BenchmarkWriteHead(b *testing.B) {
	c := http1.NewConn(&loop{}, false)
	req := usualRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		writeHead(b, c, req)
		c.End()
	}
}

func writeHead(t testing.TB, c *http1.Conn, req *http.Request) {
	c.Begin(terms)
	if err := c.WriteRequestHeaders(req, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.FinishRequest(nil); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkReadHead includes writing the request, which a head answers.
func BenchmarkReadHead(b *testing.B) {
	c := http1.NewConn(&loop{answer: strings.Replace(usualHead, "200 OK", "304 Not Modified", 1)}, false)
	req := usualRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		writeHead(b, c, req)
		if _, err := c.ReadResponseHeaders(nil); err != nil {
			b.Fatal(err)
		}
		c.End()
	}
}

func smallGet(t testing.TB, c *http1.Conn, req *http.Request, body []byte) {
	writeHead(t, c, req)
	resp, err := c.ReadResponseHeaders(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, body); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	c.End()
	if !c.Reusable() {
		t.Fatal("not reusable")
	}
}

func BenchmarkSmallGet(b *testing.B) {
	c := http1.NewConn(&loop{answer: usualHead + `{"ok": "yes"}`}, false)
	req := usualRequest(b)
	body := make([]byte, 13)
	b.ReportAllocs()
	for b.Loop() {
		smallGet(b, c, req, body)
	}
}

func BenchmarkSmallGetChunked(b *testing.B) {
	head := strings.Replace(usualHead, "Content-Length: 13", "Transfer-Encoding: chunked", 1)
	c := http1.NewConn(&loop{answer: head + "d\r\n{\"ok\": \"yes\"}\r\n0\r\n\r\n"}, false)
	req := usualRequest(b)
	body := make([]byte, 13)
	b.ReportAllocs()
	for b.Loop() {
		smallGet(b, c, req, body)
	}
}

// BenchmarkSmallGetTCP is a round trip over loopback, deadlines and system calls
// included. The peer is as cheap as it can be.
func BenchmarkSmallGetTCP(b *testing.B) {
	client, server := tcpPair(b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer := []byte(usualHead + `{"ok": "yes"}`)
		buffer := make([]byte, 4096)
		for {
			if _, err := server.Read(buffer); err != nil {
				return
			}
			server.Write(answer)
		}
	}()
	c := http1.NewConn(client, false)
	req := usualRequest(b)
	body := make([]byte, 13)
	b.ReportAllocs()
	for b.Loop() {
		smallGet(b, c, req, body)
	}
	client.Close()
	<-done
}

func BenchmarkLargeBody(b *testing.B) {
	const size = 1 << 20
	content := strings.Repeat("x", size)
	texts := map[string]string{
		"sized":   "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + content,
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks([]byte(content), 16<<10),
	}
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			c := http1.NewConn(&loop{answer: text}, false)
			req := usualRequest(b)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				writeHead(b, c, req)
				resp, err := c.ReadResponseHeaders(nil)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := resp.Body.(io.WriterTo).WriteTo(io.Discard); n != size || err != nil {
					b.Fatal(n, err)
				}
				c.End()
			}
		})
	}
}

func BenchmarkUpload(b *testing.B) {
	const size = 1 << 20
	content := strings.Repeat("x", size)
	for name, declared := range map[string]int64{"sized": size, "chunked": -1} {
		b.Run(name, func(b *testing.B) {
			c := http1.NewConn(&loop{}, false)
			req := usualRequest(b)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				c.Begin(terms)
				if err := c.WriteRequestHeaders(req, declared); err != nil {
					b.Fatal(err)
				}
				if _, err := c.ReadFrom(strings.NewReader(content)); err != nil {
					b.Fatal(err)
				}
				if err := c.FinishRequest(nil); err != nil {
					b.Fatal(err)
				}
				c.End()
			}
		})
	}
}

// The hot path's allocations are a promise, so that they do not creep in.
func TestAllocations(t *testing.T) {
	req := usualRequest(t)
	write := http1.NewConn(&loop{}, false)
	get := http1.NewConn(&loop{answer: usualHead + `{"ok": "yes"}`}, false)
	body := make([]byte, 13)
	tests := []struct {
		name string
		most float64
		run  func()
	}{
		{"write a head", 0, func() { writeHead(t, write, req); write.End() }},
		// Text of the head, values, map and its table, response with body.
		{"small GET", 5, func() { smallGet(t, get, req, body) }},
	}
	for _, test := range tests {
		if got := testing.AllocsPerRun(500, test.run); got > test.most {
			t.Errorf("%s: %v allocations, want at most %v", test.name, got, test.most)
		}
	}
}
