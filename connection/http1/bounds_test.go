package http1_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

func TestHeadBounds(t *testing.T) {
	const maxBytes, maxFields = 2000, 10
	long := strings.Repeat("x", maxBytes)
	fields := func(n int) string { return strings.Repeat("A: b\r\n", n) }
	pad := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: "
	exact := pad + strings.Repeat("x", maxBytes-len(pad)-len("\r\n\r\n")) + "\r\n\r\n"
	tests := []struct{ name, text, reason string }{
		{"as long as allowed", exact, ""},
		{"one byte longer", strings.Replace(exact, "X: ", "X: x", 1), "longer than 2000 bytes"},
		{"endless status line", "HTTP/1.1 200 " + long + long, "longer than 2000 bytes"},
		{"endless line", "HTTP/1.1 200 OK\r\nX: " + long + long, "longer than 2000 bytes"},
		{"as many fields as allowed", "HTTP/1.1 204 OK\r\n" + fields(maxFields) + "\r\n", ""},
		{"and each of them folded", "HTTP/1.1 204 OK\r\n" + strings.Repeat("A: b\r\n c\r\n", maxFields) + "\r\n", ""},
		{"one field more", "HTTP/1.1 204 OK\r\n" + fields(maxFields+1) + "\r\n", "more than 10 header fields"},
		{"fields without an end", "HTTP/1.1 204 OK\r\n" + fields(maxFields+1), "more than 10 header fields"},
		{"trailer as long as allowed", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + long[:maxBytes-7] + "\r\n\r\n", ""},
		{"trailer too long", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + long[:maxBytes-6] + "\r\n\r\n", "trailer section is longer than 2000 bytes"},
		{"trailer with too many fields", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + fields(maxFields+1) + "\r\n", "more than 10 header fields"},
	}
	for _, test := range tests {
		for _, step := range []int{0, 7} {
			t.Run(fmt.Sprintf("%s/%d", test.name, step), func(t *testing.T) {
				nc := answering(test.text)
				nc.step = step
				c := http1.NewConn(nc, false)
				c.Begin(wire.Exchange{MaxHeaderBytes: maxBytes, MaxHeaderFields: maxFields})
				defer c.End()
				if err := c.WriteRequestHeaders(newRequest(t, "GET", "http://example.com/"), 0); err != nil {
					t.Fatal(err)
				}
				if err := c.FinishRequest(nil); err != nil {
					t.Fatal(err)
				}
				resp, err := c.ReadResponseHeaders(nil)
				if err == nil {
					_, err = io.ReadAll(resp.Body)
				}
				if test.reason == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantProtocolError(t, err, test.reason)
			})
		}
	}
}

// A head far larger than the buffer is fine within the default bounds, and a
// huge one is refused after reading little more than the bound.
func TestLargeHead(t *testing.T) {
	big := strings.Repeat("x", 100<<10)
	got := exchange(answering("HTTP/1.1 200 OK\r\nX: "+big+"\r\nContent-Length: 2\r\n\r\nok"), "GET")
	if got.err != nil || got.resp.Header.Get("X") != big || got.body != "ok" || !got.reusable {
		t.Errorf("error %v, body %q, reusable %v", got.err, got.body, got.reusable)
	}
	nc := answering("HTTP/1.1 200 OK\r\n" + strings.Repeat("a:\r\n", 1e6))
	got = exchange(nc, "GET")
	wantProtocolError(t, got.err, "more than 1000 header fields")
	if read := 4_000_017 - len(nc.in); read > 1<<20 {
		t.Errorf("%d bytes were read", read)
	}
}
