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

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

// post writes the head of a POST whose body has the size.
func post(t testing.TB, nc *script, size int64) *http1.Conn {
	t.Helper()
	c := http1.NewConn(nc, false)
	c.Begin(wire.Exchange{})
	if err := c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), size); err != nil {
		t.Fatal(err)
	}
	return c
}

// bodyOf returns what follows the head in what was written.
func bodyOf(nc *script) string {
	_, body, _ := strings.Cut(nc.out.String(), "\r\n\r\n")
	return body
}

// unchunk decodes with the oracle.
func unchunk(t *testing.T, nc *script) (string, http.Header) {
	t.Helper()
	resp, err := http.ReadResponse(newReader("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+bodyOf(nc)), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: %v", bodyOf(nc), err)
	}
	return string(body), resp.Trailer
}

var readers = map[string]func(io.Reader) io.Reader{
	"plain":       func(r io.Reader) io.Reader { return r },
	"byte a time": iotest.OneByteReader,
	"half":        iotest.HalfReader,
	"EOF early":   iotest.DataErrReader,
	"stutter":     func(r io.Reader) io.Reader { return &stutter{r: r} },
}

// stutter returns nothing every other time.
type stutter struct {
	r    io.Reader
	odd  bool
	stop bool
}

func (s *stutter) Read(p []byte) (int, error) {
	if s.odd = !s.odd; s.odd || s.stop {
		return 0, nil
	}
	return s.r.Read(p)
}

func TestBodyFromReader(t *testing.T) {
	for _, size := range []int{0, 1, 15, 16, 5000, 8192, 9000, 32 << 10, 100_000} {
		content := strings.Repeat("0123456789abcdef!", size/17+1)[:size]
		for name, wrap := range readers {
			if name == "byte a time" && size > 10_000 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				nc := answering("")
				c := post(t, nc, int64(size))
				n, err := c.ReadFrom(wrap(strings.NewReader(content)))
				if n != int64(size) || err != nil {
					t.Fatalf("got %d, %v", n, err)
				}
				if err := c.FinishRequest(nil); err != nil {
					t.Fatal(err)
				}
				if got := bodyOf(nc); got != content {
					t.Errorf("sized: got %d bytes", len(got))
				}
				c.End()

				nc = answering("")
				c = post(t, nc, -1)
				n, err = c.ReadFrom(wrap(strings.NewReader(content)))
				if n != int64(size) || err != nil {
					t.Fatalf("got %d, %v", n, err)
				}
				if err := c.FinishRequest(http.Header{"X-Sum": {"1"}, "Content-Length": {"2"}}); err != nil {
					t.Fatal(err)
				}
				got, trailer := unchunk(t, nc)
				if got != content {
					t.Errorf("chunked: got %d bytes", len(got))
				}
				if diff := cmp.Diff(http.Header{"X-Sum": {"1"}}, trailer); diff != "" {
					t.Errorf("trailer (-want +got)\n%s", diff)
				}
				c.End()
			})
		}
	}
}

func TestBodyByWrite(t *testing.T) {
	pieces := []string{"a", "", strings.Repeat("b", 100), strings.Repeat("c", 8192), strings.Repeat("d", 50_000), "e"}
	content := strings.Join(pieces, "")
	for _, size := range []int64{int64(len(content)), -1} {
		nc := answering("")
		c := post(t, nc, size)
		for _, piece := range pieces {
			if n, err := c.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("got %d, %v", n, err)
			}
		}
		if err := c.FinishRequest(nil); err != nil {
			t.Fatal(err)
		}
		got := bodyOf(nc)
		if size < 0 {
			got, _ = unchunk(t, nc)
		}
		if got != content {
			t.Errorf("size %d: got %d bytes of %d", size, len(got), len(content))
		}
	}
}

func TestChunksOnTheWire(t *testing.T) {
	nc := answering("")
	c := post(t, nc, -1)
	c.Write([]byte("hello"))
	c.ReadFrom(strings.NewReader(" beautiful world!"))
	c.FinishRequest(http.Header{"B": {"2"}, "A": {"1", "1"}})
	want := "5\r\nhello\r\n11\r\n beautiful world!\r\n0\r\nA: 1\r\nA: 1\r\nB: 2\r\n\r\n"
	if diff := cmp.Diff(want, bodyOf(nc)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	nc = answering("")
	c = post(t, nc, -1)
	c.FinishRequest(nil)
	if got := bodyOf(nc); got != "0\r\n\r\n" {
		t.Errorf("empty body is %q", got)
	}
}

func TestSmallRequestIsOneWrite(t *testing.T) {
	nc := answering("")
	c := post(t, nc, 5)
	c.ReadFrom(strings.NewReader("hello"))
	c.FinishRequest(nil)
	if nc.writes != 1 {
		t.Errorf("%d writes", nc.writes)
	}
}

// A streamed body is not held back.
func TestStreamedBodyIsWrittenAsItComes(t *testing.T) {
	for _, size := range []int64{-1, 1 << 20} {
		nc := answering("")
		c := post(t, nc, size)
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, err := c.ReadFrom(r)
			done <- err
		}()
		for _, piece := range []string{"first", "second"} {
			w.Write([]byte(piece))
			w.Write(nil) // returns when ReadFrom is back for more
			nc.mu.Lock()
			if !strings.Contains(nc.out.String(), piece) {
				t.Errorf("size %d: %q was held back", size, piece)
			}
			nc.mu.Unlock()
		}
		w.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.AbortRequest()
	}
}

func TestBodyLengthMismatch(t *testing.T) {
	isBodyError := func(err error) bool {
		var e *wire.RequestBodyError
		return errors.As(err, &e)
	}
	nc := answering("")
	c := post(t, nc, 5)
	if _, err := c.ReadFrom(strings.NewReader("0123456789")); !isBodyError(err) || !strings.Contains(err.Error(), "longer") {
		t.Errorf("too long: error is %v", err)
	}
	c.AbortRequest()
	c.End()
	if nc.out.Len() > 0 || c.Reusable() {
		t.Errorf("too long: %q was written, reusable %v", nc.out.String(), c.Reusable())
	}

	nc = answering("")
	c = post(t, nc, 100_000)
	if _, err := c.ReadFrom(strings.NewReader(strings.Repeat("x", 100_010))); !isBodyError(err) {
		t.Errorf("too long: error is %v", err)
	}
	c.AbortRequest()
	if n := len(bodyOf(nc)); n > 100_000 {
		t.Errorf("too long: %d bytes were written", n)
	}

	nc = answering("")
	c = post(t, nc, 5)
	if n, err := c.Write([]byte("012")); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := c.Write([]byte("345")); n != 0 || !isBodyError(err) {
		t.Errorf("write too much: got %d, %v", n, err)
	}
	c.Flush()
	if got := bodyOf(nc); got != "012" {
		t.Errorf("write too much: %q was written", got)
	}

	nc = answering("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n")
	c = post(t, nc, 5)
	if _, err := c.ReadFrom(strings.NewReader("012")); err != nil {
		t.Fatal(err)
	}
	if err := c.FinishRequest(nil); !isBodyError(err) || !strings.Contains(err.Error(), "2 bytes shorter") {
		t.Errorf("too short: error is %v", err)
	}
	if n, err := c.Write([]byte("34")); n != 0 || err == nil {
		t.Errorf("too short: it goes on: %d, %v", n, err)
	}
	final(t, c)
	if c.Reusable() {
		t.Error("too short: the connection is reusable")
	}

	c = post(t, answering(""), 0)
	if _, err := c.Write([]byte("x")); !isBodyError(err) {
		t.Errorf("no body: error is %v", err)
	}
}

func TestBodyReaderFails(t *testing.T) {
	boom := errors.New("boom")
	for _, size := range []int64{-1, 11, 100_001} {
		nc := answering("")
		c := post(t, nc, size)
		n, err := c.ReadFrom(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(boom)))
		var bodyErr *wire.RequestBodyError
		if n != 3 || !errors.As(err, &bodyErr) || !errors.Is(err, boom) {
			t.Errorf("size %d: got %d, %v", size, n, err)
		}
		c.AbortRequest()
		c.End()
		if strings.Contains(nc.out.String(), "0\r\n\r\n") || c.Reusable() {
			t.Errorf("size %d: %q was written, reusable %v", size, nc.out.String(), c.Reusable())
		}
	}
}

// A reader that never gives anything, or lies about what it gave, is an error of
// the body and no endless loop.
func TestBodyReaderMisbehaves(t *testing.T) {
	liar := readerFunc(func(p []byte) (int, error) { return len(p) + 1, nil })
	for name, r := range map[string]io.Reader{"silent": &stutter{stop: true}, "liar": liar} {
		for _, size := range []int64{-1, 10} {
			_, err := post(t, answering(""), size).ReadFrom(r)
			var bodyErr *wire.RequestBodyError
			if !errors.As(err, &bodyErr) {
				t.Errorf("%s, size %d: error is %v", name, size, err)
			}
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestWriteFails(t *testing.T) {
	boom := errors.New("boom")
	steps := map[string]func(*http1.Conn) error{
		"flush":  func(c *http1.Conn) error { return c.Flush() },
		"finish": func(c *http1.Conn) error { return c.FinishRequest(nil) },
		"write": func(c *http1.Conn) error {
			_, err := c.Write(make([]byte, 100_000))
			return err
		},
		"read from": func(c *http1.Conn) error {
			_, err := c.ReadFrom(bytes.NewReader(make([]byte, 100_000)))
			return err
		},
	}
	for name, step := range steps {
		nc := answering("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		nc.writeErr = boom
		c := post(t, nc, -1)
		if err := step(c); err != boom {
			t.Errorf("%s: error is %v", name, err)
		}
		writes := nc.writes
		if err := c.Flush(); err != boom || nc.writes != writes {
			t.Errorf("%s: after the error: %v, %d more writes", name, err, nc.writes-writes)
		}
		// The server may have said why.
		c.AbortRequest()
		if resp := final(t, c); resp.StatusCode != 413 || c.Reusable() {
			t.Errorf("%s: status %d, reusable %v", name, resp.StatusCode, c.Reusable())
		}
		c.End()
	}
}

func TestTrailerInjection(t *testing.T) {
	for _, trailer := range []http.Header{{"X": {"a\r\nb"}}, {"X:": {"a"}}, {"X": {"a\x00"}}} {
		nc := answering("")
		c := post(t, nc, -1)
		c.Write([]byte("x"))
		var bodyErr *wire.RequestBodyError
		if err := c.FinishRequest(trailer); !errors.As(err, &bodyErr) {
			t.Errorf("%v: error is %v", trailer, err)
		}
		c.End()
		if strings.Contains(nc.out.String(), "0\r\n") || c.Reusable() {
			t.Errorf("%v: %q was written", trailer, nc.out.String())
		}
	}
}

func TestWritten(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name    string
		secure  bool
		partial int
		flush   bool
		want    bool
	}{
		{"buffered only", true, 0, false, false},
		{"cleartext, nothing taken", false, 0, true, false},
		{"cleartext, a byte taken", false, 1, true, true},
		{"secure, nothing taken", true, 0, true, true},
	}
	for _, test := range tests {
		nc := answering("")
		nc.writeErr, nc.partial = boom, test.partial
		c := http1.NewConn(nc, test.secure)
		c.Begin(wire.Exchange{})
		c.WriteRequestHeaders(newRequest(t, "GET", "http://h/"), 0)
		if test.flush {
			c.Flush()
		}
		if c.Written() != test.want {
			t.Errorf("%s: got %v", test.name, c.Written())
		}
		c.End()
		if c.Written() != test.want {
			t.Errorf("%s: End changed it", test.name)
		}
		c.Begin(wire.Exchange{})
		if c.Written() {
			t.Errorf("%s: Begin kept it", test.name)
		}
	}
}
