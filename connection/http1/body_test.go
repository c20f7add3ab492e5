package http1_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

func TestShortBody(t *testing.T) {
	got := exchange(ending("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n12345"), "GET")
	if got.body != "12345" || !errors.Is(got.err, io.ErrUnexpectedEOF) || got.reusable {
		t.Errorf("body %q, error %v, reusable %v", got.body, got.err, got.reusable)
	}
	if !strings.Contains(got.err.Error(), "5 of 20 bytes") {
		t.Errorf("error %q does not count", got.err)
	}
}

// A reset is told from the end.
func TestResetBody(t *testing.T) {
	reset := errors.New("connection reset")
	nc := answering("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n12345")
	nc.end = reset
	got := exchange(nc, "GET")
	if got.body != "12345" || got.err != reset || got.reusable {
		t.Errorf("body %q, error %v, reusable %v", got.body, got.err, got.reusable)
	}
}

func TestTruncatedCloseDelimitedBody(t *testing.T) {
	nc := answering("HTTP/1.1 200 OK\r\n\r\n12345")
	nc.end = io.ErrUnexpectedEOF // no close_notify
	got := exchange(nc, "GET")
	if got.body != "12345" || !errors.Is(got.err, io.ErrUnexpectedEOF) {
		t.Errorf("body %q, error %v", got.body, got.err)
	}
}

// The reader contract holds for all framings, however the bytes arrive.
func TestBodyIsAReader(t *testing.T) {
	content := []byte(strings.Repeat("0123456789", 5000))
	texts := map[string]string{
		"sized":    fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(content), content),
		"chunked":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(content, 1, 10, 5000, 100, 20000),
		"to close": "HTTP/1.1 200 OK\r\n\r\n" + string(content),
	}
	for name, text := range texts {
		for _, step := range []int{0, 1000, 8191} {
			t.Run(fmt.Sprintf("%s/%d", name, step), func(t *testing.T) {
				nc := ending(text)
				nc.step = step
				resp := get(t, http1.NewConn(nc, false))
				if err := iotest.TestReader(resp.Body, content); err != nil {
					t.Error(err)
				}
				for range 2 {
					if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
						t.Errorf("after the end: %d, %v", n, err)
					}
				}

				nc = ending(text)
				nc.step = step
				resp = get(t, http1.NewConn(nc, false))
				var out bytes.Buffer
				n, err := resp.Body.(io.WriterTo).WriteTo(&out)
				if n != int64(len(content)) || err != nil || !bytes.Equal(out.Bytes(), content) {
					t.Errorf("WriteTo: %d, %v", n, err)
				}
			})
		}
	}
}

// chunks cuts content into chunks of the sizes, over and over.
func chunks(content []byte, sizes ...int) string {
	var b strings.Builder
	for i := 0; len(content) > 0; i++ {
		n := min(sizes[i%len(sizes)], len(content))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, content[:n])
		content = content[n:]
	}
	return b.String() + "0\r\n\r\n"
}

func TestWriteToFails(t *testing.T) {
	boom := errors.New("boom")
	resp := get(t, http1.NewConn(answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), false))
	if _, err := resp.Body.(io.WriterTo).WriteTo(iotest.TruncateWriter(failing{boom}, 0)); err != nil {
		t.Errorf("error is %v", err)
	}
	resp = get(t, http1.NewConn(answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), false))
	if _, err := resp.Body.(io.WriterTo).WriteTo(failing{boom}); err != boom {
		t.Errorf("error is %v", err)
	}
	resp = get(t, http1.NewConn(ending("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"), false))
	if n, err := resp.Body.(io.WriterTo).WriteTo(io.Discard); n != 2 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %d, %v", n, err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// The last bytes bring the end along, so that the connection is free at once.
func TestEOFWithTheLastBytes(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n",
	} {
		c := http1.NewConn(answering(text), false)
		resp := get(t, c)
		p := make([]byte, 5)
		if n, err := resp.Body.Read(p); n != 5 || err != io.EOF {
			t.Errorf("got %d, %v", n, err)
		}
		if !c.Reusable() {
			t.Error("not reusable")
		}
		if n, err := resp.Body.Read(nil); n != 0 || err != io.EOF {
			t.Errorf("empty read after the end: %d, %v", n, err)
		}
	}
}

// Chunks that have arrived are not held back by those that have not.
func TestChunksAreNotHeldBack(t *testing.T) {
	for _, text := range []string{"3\r\nhe", "2\r\nhe", "2\r\nhe\r\n", "2\r\nhe\r\n3", "1\r\nh\r\n1\r\ne\r\n0\r\n", "2\r\nhe\r\n0\r\nX: y\r\n"} {
		resp := get(t, http1.NewConn(answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+text), false))
		p := make([]byte, 10)
		if n, err := resp.Body.Read(p); string(p[:n]) != "he" || err != nil {
			t.Errorf("after %q: got %q, %v", text, p[:n], err)
		}
	}
}

func TestReadAfterClose(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nhello",
	} {
		for _, read := range []bool{false, true} {
			resp := get(t, http1.NewConn(ending(text), false))
			if read {
				io.ReadAll(resp.Body)
			}
			for range 2 {
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
			}
			if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
				t.Errorf("got %d, %v", n, err)
			}
		}
	}
}

// Errors stay: what comes later on the connection is not the body's.
func TestErrorIsSticky(t *testing.T) {
	nc := answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n")
	resp := get(t, http1.NewConn(nc, false))
	_, first := resp.Body.Read(make([]byte, 10))
	_, second := resp.Body.Read(make([]byte, 10))
	if first == nil || first != second {
		t.Errorf("first %v, then %v", first, second)
	}
}

// A body that is over does not touch the connection, on which the next exchange
// may run already.
func TestBodyLetsGo(t *testing.T) {
	one := "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
	nc := answering(one + "one")
	c := http1.NewConn(nc, false)
	first := get(t, c)
	io.ReadAll(first.Body)
	c.End()
	nc.in = []byte(one + "two")
	second := get(t, c)
	if n, err := first.Body.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("the first body read %d, %v", n, err)
	}
	first.Body.Close()
	if got, err := io.ReadAll(second.Body); string(got) != "two" || err != nil {
		t.Errorf("the second body is %q, %v", got, err)
	}
	c.End()

	// A body left open by End is cut off from it.
	nc.in = []byte(one + "thr")
	third := get(t, c)
	c.End()
	nc.in = []byte("another's")
	if n, err := third.Body.Read(make([]byte, 10)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("the third body read %d, %v", n, err)
	}
	if string(nc.in) != "another's" {
		t.Error("the third body read from the connection")
	}
	third.Body.Close()
	if c.Reusable() {
		t.Error("reusable after a body was left open")
	}
}

func TestCloseDrains(t *testing.T) {
	big := strings.Repeat("x", 70<<10)
	tests := []struct {
		name, text string
		want       bool
	}{
		{"rest is here", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true},
		{"64 KiB", "HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n" + big[:65536], true},
		{"more than 64 KiB", "HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n" + big[:65537], false},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", true},
		{"chunked, long", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks([]byte(big), 1000), false},
		{"chunked, broken", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n", false},
		{"cut off", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", false},
		{"to the close", "HTTP/1.1 200 OK\r\n\r\nhello", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			nc := ending(test.text)
			c := http1.NewConn(nc, false)
			resp := get(t, c)
			resp.Body.Close()
			c.End()
			if c.Reusable() != test.want {
				t.Errorf("reusable %v", c.Reusable())
			}
		})
	}
}

// No reading where the connection could not be used again anyway.
func TestCloseDrainsOnlyForReuse(t *testing.T) {
	tests := map[string]func(c *http1.Conn, nc *script){
		"server closes": func(c *http1.Conn, nc *script) {
			send(t, c, "GET")
			nc.in = []byte("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\n")
		},
		"request closes": func(c *http1.Conn, nc *script) {
			r := newRequest(t, "GET", "http://h/")
			r.Close = true
			sendRequest(t, c, r)
		},
		"request aborted": func(c *http1.Conn, nc *script) {
			c.Begin(wire.Exchange{})
			c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), 9)
			c.AbortRequest()
		},
	}
	for name, begin := range tests {
		nc := answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
		c := http1.NewConn(nc, false)
		begin(c, nc)
		resp := final(t, c)
		reads := nc.reads
		resp.Body.Close()
		if nc.reads != reads || c.Reusable() {
			t.Errorf("%s: %d reads, reusable %v", name, nc.reads-reads, c.Reusable())
		}
	}
}

// A server that drips cannot make Close take long.
func TestCloseGivesUpOnADrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t)
		p.peer.Go(func() {
			p.answer("HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
			for {
				time.Sleep(30 * time.Millisecond)
				if _, err := p.server.Write([]byte("x")); err != nil {
					return
				}
			}
		})
		send(t, p.c, "GET")
		resp := final(t, p.c)
		begin := time.Now()
		resp.Body.Close()
		if took := time.Since(begin); took != 100*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
		if p.c.Reusable() {
			t.Error("reusable")
		}
	})
}
