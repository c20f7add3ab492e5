package catena_test

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"strings"
	"time"
)

func decimal(n int) string { return strconv.Itoa(n) }

// fault is one way in which a server misbehaves with one request.
type fault struct {
	name string
	do   func(c *peerConn)
	// frames is do for HTTP/2, after the request id was read.
	frames func(f *framedConn, id uint32)
	// early: do does not read the request first. On a reused connection it
	// happens before the next request is made.
	early bool
	whole bool // do reads the request to its end first
}

// after is a fault that comes when the request was read.
func after(name string, do func(c *peerConn)) fault {
	return fault{name: name, whole: true, do: func(c *peerConn) {
		if c.readRequest() {
			do(c)
		}
	}}
}

// says is a fault that sends text and closes.
func says(name, text string) fault {
	return after(name, func(c *peerConn) { c.send(text) })
}

// stalls is a fault that sends text and then nothing any more.
func stalls(name, text string) fault {
	return after(name, func(c *peerConn) { c.send(text); c.untilClosed() })
}

// resets is a fault that sends text and cuts the connection by RST.
func resets(name, text string) fault {
	return after(name, func(c *peerConn) { c.send(text); c.reset() })
}

// keeps is a fault that sends text and waits for the next request.
func keeps(name, text string) fault {
	return after(name, func(c *peerConn) {
		c.send(text)
		rawOK(c)
	})
}

const (
	okHead  = "HTTP/1.1 200 OK\r\n"
	sized   = okHead + "Content-Length: 20\r\n\r\n"
	chunked = okHead + "Transfer-Encoding: chunked\r\n\r\n"
)

// faults are grouped as the page of results is.
var faults = []fault{
	// Before the response.
	{name: "closes at once", do: func(*peerConn) {}, early: true},
	{name: "resets at once", do: func(c *peerConn) { c.reset() }, early: true},
	{name: "never reads", do: func(c *peerConn) { time.Sleep(time.Minute) }},
	{name: "reads 10 bytes, closes", do: func(c *peerConn) { c.readSome(10) }},
	{name: "reads 10 bytes, resets", do: func(c *peerConn) { c.readSome(10); c.reset() }},
	{name: "reads the head, closes", do: func(c *peerConn) { c.readHead() }},
	{name: "reads the head, resets", do: func(c *peerConn) { c.readHead(); c.reset() }},
	says("reads all, closes", ""),
	resets("reads all, resets", ""),
	stalls("reads all, stalls", ""),
	after("reads all, closes its half", func(c *peerConn) { c.closeWrite(); c.untilClosed() }),

	// In the head.
	says("closes in the version", "HTTP/1."),
	says("closes in the status line", "HTTP/1.1 200 O"),
	says("closes after the status line", okHead),
	says("closes in a field's name", okHead+"Conte"),
	says("closes in a field's value", okHead+"X-A: b"),
	says("closes after a field", okHead+"X-A: b\r\n"),
	says("closes in the empty line", okHead+"X-A: b\r\n\r"),
	resets("resets in the head", okHead+"X-A"),
	stalls("stalls in the status line", "HTTP/1.1 2"),
	stalls("stalls after the fields", okHead+"X-A: b\r\n"),
	after("drips the head", func(c *peerConn) { c.drip(okHead+strings.Repeat("X-A: b\r\n", 100), 100*time.Millisecond) }),
	says("garbage line", "lorem ipsum\r\n\r\n"),
	stalls("garbage without end", strings.Repeat("lorem", 60<<10)),
	says("TLS alert", "\x15\x03\x01\x00\x02\x02\x46"),
	says("HTTP/2 settings", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"),
	says("HTTP/0.9 body", "<html><body>hello</body></html>\n"),
	says("ICY status line", "ICY 200 OK\r\n\r\n"),
	says("HTTP/2 status line", "HTTP/2 200 OK\r\n\r\n"),
	says("status 099", "HTTP/1.1 099 X\r\n\r\n"),
	says("status 204x", "HTTP/1.1 204x\r\n\r\n"),
	says("field without colon", okHead+"user\"\r\n\r\n"),
	says("space before a colon", okHead+"X-A : b\r\n\r\n"),
	says("NUL in a value", okHead+"X-A: b\x00\r\n\r\n"),
	says("a field of 300 KiB", okHead+"X-A: "+strings.Repeat("b", 300<<10)+"\r\n\r\n"),
	says("1001 fields", okHead+strings.Repeat("a:\r\n", 1001)+"\r\n"),
	says("two lengths", okHead+"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
	says("length +5", okHead+"Content-Length: +5\r\n\r\nhello"),
	says("unknown transfer coding", okHead+"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
	stalls("interim flood", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 200)),
	says("interim, closes", "HTTP/1.1 103 Early Hints\r\n\r\n"),
	stalls("interim, stalls", "HTTP/1.1 103 Early Hints\r\n\r\n"),
	says("unrequested 101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),

	// In a body of known length.
	says("closes before the body", sized),
	says("closes in the body", sized+"12345"),
	resets("resets in the body", sized+"12345"),
	stalls("stalls in the body", sized+"12345"),
	after("closes its half in the body", func(c *peerConn) { c.send(sized + "12345"); c.closeWrite(); c.untilClosed() }),
	after("drips the body", func(c *peerConn) { c.send(sized); c.drip("12345678901234567890", 500*time.Millisecond) }),

	// In a chunked body.
	says("closes in a chunk's size", chunked+"5"),
	says("closes after a chunk's size", chunked+"5\r\n"),
	says("closes in a chunk", chunked+"5\r\nhel"),
	says("closes after a chunk's data", chunked+"5\r\nhello"),
	says("closes between chunks", chunked+"5\r\nhello\r\n"),
	says("closes in the last chunk", chunked+"5\r\nhello\r\n0"),
	says("closes after the last chunk", chunked+"5\r\nhello\r\n0\r\n"),
	says("closes in the trailers", chunked+"5\r\nhello\r\n0\r\nX-T: 1\r\n"),
	resets("resets in a chunk", chunked+"5\r\nhel"),
	stalls("stalls in a chunk's size", chunked+"5\r\nhello\r\n5"),
	stalls("stalls in the trailers", chunked+"5\r\nhello\r\n0\r\n"),
	says("chunk size zz", chunked+"5\r\nhello\r\nzz\r\n"),
	says("chunk size of 2^68", chunked+"fffffffffffffffff\r\nhello"),
	says("chunk longer than its size", chunked+"2\r\nhello\r\n0\r\n\r\n"),
	says("bare LF after a size", chunked+"5\nhello\r\n0\r\n\r\n"),
	says("5 KiB of chunk extension", chunked+"5;a="+strings.Repeat("b", 5<<10)+"\r\nhello\r\n0\r\n\r\n"),
	says("trailer without colon", chunked+"5\r\nhello\r\n0\r\nX\r\n\r\n"),
	says("300 KiB of trailers", chunked+"5\r\nhello\r\n0\r\nX: "+strings.Repeat("b", 300<<10)+"\r\n\r\n"),
	says("gzip cut", okHead+"Content-Encoding: gzip\r\nContent-Length: "+decimal(len(halfGzip))+"\r\n\r\n"+halfGzip),

	// Bodies that end with the connection.
	says("body up to the close", okHead+"\r\nhello"),
	resets("body up to a reset", okHead+"\r\nhello"),

	// Odd, but an answer.
	keeps("bytes after the response", rawAnswer("200 OK", "hello")+"and more"),
	keeps("another response after the response", rawAnswer("200 OK", "hello")+rawAnswer("200 OK", "not asked for")),
	keeps("204 with a body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
	keeps("equal lengths", okHead+"Content-Length: 5, 5\r\n\r\nhello"),
	keeps("50 interim responses", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 50)+rawAnswer("200 OK", "hello")),
	{name: "answers unread, closes", do: func(c *peerConn) {
		c.readHead()
		c.send(rawAnswer("413 Content Too Large", "big", "Connection: close"))
		c.closeWrite()
		c.untilClosed()
	}},
	{name: "answers before the request", do: func(c *peerConn) {
		c.send(rawAnswer("200 OK", "early"))
		rawOK(c)
	}, early: true},
	keeps("status 408 and a close", rawAnswer("408 Request Timeout", "", "Connection: close")),
}

// halfGzip is the first half of a compressed text.
var halfGzip = func() string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(bytes.Repeat([]byte("0123456789abcdef"), 64))
	w.Close()
	return b.String()[:b.Len()/2]
}()
