package http1_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/catena-http/catena/connection/http1"
)

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

// Every place at which a chunked body can be cut off is an error.
func TestChunkedCutAtEveryByte(t *testing.T) {
	for _, body := range []string{"5\r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n2\r\n!!\r\n0\r\nX: y\r\nZ:\r\n\r\n"} {
		for cut := range len(body) {
			for _, step := range []int{0, 1} {
				nc := ending(chunkedHead + body[:cut])
				nc.step = step
				got := exchange(nc, "GET")
				if !errors.Is(got.err, io.ErrUnexpectedEOF) || got.reusable {
					t.Errorf("cut after %q: body %q, error %v, reusable %v", body[:cut], got.body, got.err, got.reusable)
				}
			}
		}
		if got := exchange(ending(chunkedHead+body), "GET"); got.err != nil || !got.reusable {
			t.Errorf("whole: error %v, reusable %v", got.err, got.reusable)
		}
	}
}

func TestChunkLines(t *testing.T) {
	ext := func(n int) string { return ";" + strings.Repeat("x", n-len("5;\r\n")) }
	tests := []struct{ name, body, want, reason string }{
		{"plain", "5\r\nhello\r\n0\r\n\r\n", "hello", ""},
		{"upper and lower case", "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", ""},
		{"leading zeros", "0005\r\nhello\r\n0000\r\n\r\n", "hello", ""},
		{"extension", "5;a=b\r\nhello\r\n0;c\r\n\r\n", "hello", ""},
		{"space around the extension", "5 ; a=b\r\nhello\r\n0\r\n\r\n", "hello", ""},
		{"quoted extension", "5;a=\"b;\tc\"\r\nhello\r\n0\r\n\r\n", "hello", ""},
		{"trailing space", "5 \t\r\nhello\r\n0\r\n\r\n", "hello", ""},
		{"as long as allowed", "5" + ext(4096) + "\r\nhello\r\n0\r\n\r\n", "hello", ""},

		{"one byte longer", "5" + ext(4097) + "\r\nhello\r\n0\r\n\r\n", "", "longer than 4096 bytes"},
		{"1 MB of extensions", "5;" + strings.Repeat("x", 1<<20) + "\r\nhello\r\n0\r\n\r\n", "", "longer than 4096 bytes"},
		{"bare LF", "5\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"bare LF in an extension", "5;\n\r\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"CR in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"NUL in an extension", "5;\x00\r\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"something else than an extension", "5 a\r\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"no size", ";a\r\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"empty line", "\r\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"not a number", "x\r\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"no line at all", "garbage", "", "malformed chunk line"},
		{"prefix", "0x5\r\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"sign", "+5\r\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"space first", " 5\r\nhello\r\n0\r\n\r\n", "", "malformed chunk line"},
		{"17 digits", "FFFFFFFFFFFFFFFFF\r\n", "", "too large"},
		{"17 digits of little", "00000000000000005\r\nhello\r\n0\r\n\r\n", "", "too large"},
		{"2^63", "8000000000000000\r\n", "", "too large"},
		{"no line end after the content", "5\r\nhello0\r\n\r\n", "hello", "longer than its size"},
		{"LF after the content", "5\r\nhello\n0\r\n\r\n", "hello", "longer than its size"},

		{"LF after the last chunk", "0\n\r\n", "", "malformed chunk line"},
		{"LF for the end", "0\r\n\n", "", "does not end in CRLF"},
		{"LF in the trailer", "0\r\nX: y\n\r\n", "", "does not end in CRLF"},
		{"trailer without a colon", "0\r\nX\r\n\r\n", "", "without a colon"},
		{"trailer with a space", "0\r\nX : y\r\n\r\n", "", "invalid name"},
		{"trailer that begins with white space", "0\r\n X: y\r\n\r\n", "", "white space"},
	}
	for _, test := range tests {
		for _, step := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s/%d", test.name, step), func(t *testing.T) {
				nc := answering(chunkedHead + test.body)
				nc.step = step
				got := exchange(nc, "GET")
				if got.body != test.want {
					t.Errorf("body is %q", got.body)
				}
				if test.reason == "" {
					if got.err != nil || !got.reusable {
						t.Errorf("error %v, reusable %v", got.err, got.reusable)
					}
					return
				}
				wantProtocolError(t, got.err, test.reason)
				if got.reusable {
					t.Error("reusable")
				}
			})
		}
	}
}

// 2^63-1 is a size like any other; the body then is cut off.
func TestLargestChunk(t *testing.T) {
	got := exchange(ending(chunkedHead+"7FFFFFFFFFFFFFFF\r\nhello"), "GET")
	if got.body != "hello" || !errors.Is(got.err, io.ErrUnexpectedEOF) {
		t.Errorf("body %q, error %v", got.body, got.err)
	}
}

// Many long extensions cost what a header may cost, and no more; those that go
// with content are free.
func TestChunkExtensionsInAll(t *testing.T) {
	line := "1;" + strings.Repeat("x", 4000) + "\r\n.\r\n"
	got := exchange(answering(chunkedHead+strings.Repeat(line, 100)+"0\r\n\r\n"), "GET")
	wantProtocolError(t, got.err, "chunk lines carry more than 262144 bytes")

	signed := "400;chunk-signature=" + strings.Repeat("0", 64) + "\r\n" + strings.Repeat(".", 1024) + "\r\n"
	got = exchange(answering(chunkedHead+strings.Repeat(signed, 10_000)+"0\r\n\r\n"), "GET")
	if got.err != nil || len(got.body) != 10_000*1024 {
		t.Errorf("%d bytes, error %v", len(got.body), got.err)
	}
}

// Trailers are there after the end, in the response itself.
func TestTrailerAfterTheEnd(t *testing.T) {
	resp := get(t, http1.NewConn(answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A, Content-Length,x-b\r\n\r\n1\r\n.\r\n0\r\nX-B: 2\r\nTransfer-Encoding: gzip\r\nTrailer: X\r\n\r\n"), false))
	names := fmt.Sprint(resp.Trailer)
	if names != "map[X-A:[] X-B:[]]" {
		t.Errorf("before the end: %v", names)
	}
	resp.Body.Close() // drains, and so reaches them
	if got := fmt.Sprint(resp.Trailer); got != "map[X-A:[] X-B:[2]]" {
		t.Errorf("after the end: %v", got)
	}
}
