package connection

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/route"
)

// What goes wrong after a CONNECT: the right error in time, and nothing left open.
func TestMalformedAnswersToConnect(t *testing.T) {
	const (
		stays  = time.Duration(-1)            // the proxy keeps the connection open
		closes = time.Duration(0)             // it closes after the answer
		drips  = 2500 * time.Millisecond      // it says one byte so often
		limit  = 10*time.Second + time.Second // the connect timeout, and what it may be late
	)
	many := func(text string, n int) string { return strings.Repeat(text, n) }
	type kind int
	const (
		refused  kind = iota // a *route.ProxyError
		protocol             // a *wire.ProtocolError
		cut                  // io.EOF or io.ErrUnexpectedEOF
		timeout              // of step proxy
		tls                  // the handshake in the tunnel failed
	)
	for _, tc := range []struct {
		name   string
		answer string
		then   time.Duration
		kind   kind
		says   string
	}{
		{"silence", "", stays, timeout, "proxy timeout after 10s"},
		{"closed at once", "", closes, cut, "closed the connection before a response"},
		{"one byte and closed", "H", closes, cut, "ended inside the response head"},
		{"half a status line", "HTTP/1.1 2", closes, cut, "ended inside the response head"},
		{"half a status line and silence", "HTTP/1.1 2", stays, timeout, "proxy timeout"},
		{"a head without an end, closed", "HTTP/1.1 200 OK\r\nVia: x\r\n", closes, cut, "ended inside the response head"},
		{"a head without an end, silence", "HTTP/1.1 200 OK\r\nVia: x\r\n", stays, timeout, "proxy timeout"},
		{"a head byte by byte", "HTTP/1.1 200 OK\r\n\r\n", drips, timeout, "proxy timeout"},
		{"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n", stays, protocol, "malformed status line"},
		{"HTTP/2", "\x00\x00\x00\x04\x00\x00\x00\x00\x00", stays, protocol, "speaks HTTP/2"},
		{"TLS", "\x15\x03\x01\x00\x02\x02\x46", stays, protocol, "speaks TLS"},
		{"HTTP/2 in text", "HTTP/2 200\r\n\r\n", stays, protocol, "malformed status line"},
		{"HTTP/0.9", "<html>no</html>", stays, protocol, "malformed status line"},
		{"ICY", "ICY 200 OK\r\n\r\n", stays, protocol, "malformed status line"},
		{"a code of two digits", "HTTP/1.1 20 OK\r\n\r\n", stays, protocol, "malformed status line"},
		{"a code of letters", "HTTP/1.1 OK OK\r\n\r\n", stays, protocol, "malformed status line"},
		{"a code below 100", "HTTP/1.1 099 X\r\n\r\n", stays, protocol, "malformed status line"},
		{"no code", "HTTP/1.1\r\n\r\n", stays, protocol, "malformed status line"},
		{"a field without a colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", stays, protocol, ""},
		{"a space before the colon", "HTTP/1.1 200 OK\r\nVia : x\r\n\r\n", stays, protocol, ""},
		{"an empty name", "HTTP/1.1 200 OK\r\n: x\r\n\r\n", stays, protocol, ""},
		{"NUL in a field", "HTTP/1.1 200 OK\r\nVia: \x00\r\n\r\n", stays, protocol, ""},
		{"too large a head", "HTTP/1.1 200 OK\r\nVia: " + many("x", 1<<19), stays, protocol, "longer than"},
		{"too many fields", "HTTP/1.1 200 OK\r\n" + many("Via: x\r\n", 2000) + "\r\n", stays, protocol, "more than 1000 header fields"},
		{"endless interim responses", many("HTTP/1.1 103 Early Hints\r\n\r\n", 50), stays, protocol, "no final response"},
		{"an interim response and silence", "HTTP/1.1 102 Processing\r\n\r\n", stays, timeout, "proxy timeout"},
		{"switches protocols", "HTTP/1.1 101 Switching Protocols\r\n\r\n", stays, protocol, "switches protocols"},
		{"bytes after the head", opened + "SSH-2.0-OpenSSH_9.2\r\n", stays, protocol, "21 bytes after it had opened the tunnel, before TLS"},
		{"a body although it opens", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", stays, protocol, "5 bytes after it had opened"},
		{"a chunked body although it opens", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", stays, protocol, "bytes after it had opened"},
		{"opens and closes", opened, closes, tls, ""},
		{"opens and is silent", opened, stays, tls, "tls timeout after 10s"},
		{"redirects", "HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n", stays, refused, "302 Found"},
		{"not modified", "HTTP/1.1 304 Not Modified\r\n\r\n", stays, refused, "304 Not Modified"},
		{"asks for the origin's credentials", "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n", stays, refused, "401 Unauthorized"},
		{"forbids", "HTTP/1.1 403 Forbidden\r\nSet-Cookie: a=b\r\nContent-Length: 7\r\n\r\nblocked", stays, refused, "403 Forbidden"},
		{"forbids in HTTP/1.0", "HTTP/1.0 403 Forbidden\r\n\r\nblocked", closes, refused, "403 Forbidden"},
		{"an unknown code", "HTTP/1.1 777\r\nContent-Length: 0\r\n\r\n", stays, refused, ": 777"},
		{"a refusal with an endless body", "HTTP/1.1 503 No\r\n\r\n" + many("no ", 1<<16), stays, refused, "503 Service Unavailable"},
		{"a refusal with half a body", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 100\r\n\r\nhalf", closes, refused, "502 Bad Gateway"},
		{"a refusal whose body never comes", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 100\r\n\r\n", stays, refused, "502 Bad Gateway"},
		{"a refusal with a broken chunk", "HTTP/1.1 504 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", stays, refused, "504 Gateway Timeout"},
		{"a refusal with two lengths", "HTTP/1.1 502 X\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", stays, protocol, "Content-Length"},
		{"a challenge that nobody answers", challenge, stays, refused, "407 Proxy Authentication Required"},
		{"a challenge without a challenge", "HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n", stays, refused, "407 Proxy Authentication Required"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				done := make(chan struct{})
				w.raw("q.test", "192.0.2.10", func(_ int, c net.Conn) {
					defer close(done)
					c.Read(make([]byte, 4096))
					say(c, tc.answer, tc.then)
					if tc.then != closes {
						io.Copy(io.Discard, c) // until the client closes
					}
				})
				w.through(proxyNamed("q.test"))
				start := time.Now()
				_, c, err := w.do(t.Context(), "https://a.test/")
				took := time.Since(start)
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Fatalf("got %v, want %q", err, tc.says)
				}
				var (
					isRefused  *route.ProxyError
					isProtocol *wire.ProtocolError
					isTimeout  *event.TimeoutError
				)
				step := event.StepProxy
				ok := false
				switch tc.kind {
				case refused:
					ok = errors.As(err, &isRefused) && isRefused.Head.StatusCode == isRefused.StatusCode
				case protocol:
					ok = errors.As(err, &isProtocol)
				case cut:
					ok = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
				case timeout:
					ok = errors.As(err, &isTimeout) && isTimeout.Step == event.StepProxy
				case tls:
					ok, step = true, event.StepTLS
				}
				if !ok {
					t.Errorf("the error is a %T: %v", err, err)
				}
				if took > limit {
					t.Errorf("it took %v", took)
				}
				if tc.kind == refused && took > time.Second {
					t.Errorf("a refusal took %v", took)
				}
				if a := c.a.Attempts(); len(a) != 1 || a[0].Step != step || a[0].Written {
					t.Errorf("the attempts are %+v", a)
				}
				if w.database.Len() != 1 {
					t.Error("the route is not remembered as failed")
				}
				<-done // the client has closed
				w.expect(0, 0)
			})
		})
	}
}

// say writes text, a byte at a time where it drips.
func say(c net.Conn, text string, drips time.Duration) {
	if drips <= 0 {
		io.WriteString(c, text)
		return
	}
	for i := range text {
		time.Sleep(drips)
		if _, err := io.WriteString(c, text[i:i+1]); err != nil {
			return
		}
	}
}
