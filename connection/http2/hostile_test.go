package http2_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/catena-http/catena/connection/http2"
	xhttp2 "golang.org/x/net/http2"
)

// Input that is not HTTP/2 is named for what it is, at once.
func TestForeignInput(t *testing.T) {
	tests := map[string]struct{ input, words string }{
		"HTTP/1.1":      {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", `speaks HTTP/1.1, not HTTP/2: "HTTP/1.1 400 Bad Request"`},
		"HTTP/1.0":      {"HTTP/1.0 400 Bad\r\n", "speaks HTTP/1.1"},
		"TLS alert":     {"\x15\x03\x01\x00\x02\x02\x16", "speaks TLS"},
		"TLS handshake": {"\x16\x03\x03\x00\x7a", "speaks TLS"},
		"SSH":           {"SSH-2.0-OpenSSH_9.6\r\n", `begins with "SSH-2.0-OpenSSH_9.6`},
		"ping first":    {"\x00\x00\x08\x06\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08", "first frame is not SETTINGS"},
		"ack first":     {"\x00\x00\x00\x04\x01\x00\x00\x00\x00", "first frame is not SETTINGS"},
		"random":        {"\x8f\x11\x02\x55\x9a\xcc\x10\x00\x01\x7f\x00\x00", "first frame is not SETTINGS"},
	}
	for name, tt := range tests {
		for _, split := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/split=%t", name, split), func(t *testing.T) {
				p := newSilentPeer(t, http2.Options{})
				s, _ := p.get()
				if split {
					for i := range tt.input {
						p.raw([]byte(tt.input[i : i+1]))
					}
				} else {
					p.raw([]byte(tt.input))
				}
				var err error
				within(t, func() { _, err = s.ReadResponseHeaders(nil) })
				if kind(err) != "protocol" || !strings.Contains(err.Error(), tt.words) {
					if !(split && kind(err) == "protocol") {
						t.Errorf("error %v, want a ProtocolError with %q", err, tt.words)
					}
				}
				if f := p.next(); f.typ != xhttp2.FrameGoAway || f.code != xhttp2.ErrCodeProtocol {
					t.Errorf("got %+v, want GOAWAY(PROTOCOL_ERROR)", f)
				}
			})
		}
	}
}

// What was good before the garbage is delivered.
func TestGarbageAfterResponse(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s, id := p.get()
	p.write(func() error {
		var b strings.Builder
		fr := xhttp2.NewFramer(&b, nil)
		fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, BlockFragment: p.block(":status", "200"), EndHeaders: true})
		fr.WriteData(id, true, []byte("fine"))
		b.WriteString("\xff\xff\xff\x00\x00\x00\x00\x00\x00 garbage")
		_, err := io.WriteString(p.nc, b.String())
		return err
	})
	got, err := io.ReadAll(head(t, s).Body)
	if string(got) != "fine" || err != nil {
		t.Errorf("body %q, %v", got, err)
	}
}

// Heads within the limits pass, others fail alone, whatever they are made of.
func TestHeaderLimits(t *testing.T) {
	many := func(n int) (fields []string) {
		for i := range n {
			fields = append(fields, fmt.Sprintf("x-%d", i), "")
		}
		return fields
	}
	// Equal fields take one byte each on the wire.
	same := func(n int) (fields []string) {
		for range n {
			fields = append(fields, "a", "")
		}
		return fields
	}
	tests := map[string]struct {
		fields []string
		words  string // "": it passes
	}{
		"100 KB":       {[]string{"x-a", strings.Repeat("x", 100<<10)}, ""},
		"250 KB":       {[]string{"x-a", strings.Repeat("x", 250<<10)}, ""},
		"257 KB":       {[]string{"x-a", strings.Repeat("x", 257<<10)}, "more than the 262144 allowed"},
		"600 KB":       {[]string{"x-a", strings.Repeat("x", 600<<10)}, ""},
		"1000 fields":  {many(1000), ""},
		"1001 fields":  {many(1001), "1001 fields, more than the 1000 allowed"},
		"15000 fields": {same(15000), "1001 fields, more than the 1000 allowed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.get()
			go p.write(func() error { return p.inFrames(id, p.block(append([]string{":status", "200"}, tt.fields...)...)) })
			var err error
			within(t, func() { _, err = s.ReadResponseHeaders(nil) })
			switch {
			case name == "600 KB":
				if kind(err) != "protocol" { // the whole connection: the field is not even decoded
					t.Errorf("error %v, want a ProtocolError", err)
				}
			case tt.words == "" && err != nil:
				t.Errorf("error %v", err)
			case tt.words != "" && (kind(err) != "protocol" || !strings.Contains(err.Error(), tt.words)):
				t.Errorf("error %v, want a ProtocolError with %q", err, tt.words)
			case tt.words != "" && !p.client.Healthy():
				t.Error("the connection is gone")
			}
		})
	}
}

// inFrames sends a header block in as many frames as it needs. p.mu is held.
func (p *peer) inFrames(stream uint32, block []byte) error {
	const frame = 16 << 10
	first := block[:min(len(block), frame)]
	block = block[len(first):]
	err := p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: len(block) == 0})
	for err == nil && len(block) > 0 {
		next := block[:min(len(block), frame)]
		block = block[len(next):]
		err = p.fr.WriteContinuation(stream, len(block) == 0, next)
	}
	return err
}

// Endless CONTINUATION frames end the connection after a bounded excess.
func TestContinuationFlood(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s, id := p.get()
	sent := make(chan int, 1)
	go p.write(func() error {
		// A literal field of one letter, without a value, again and again.
		block := []byte(strings.Repeat("\x00\x01a\x00", 4<<10))
		err := p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, BlockFragment: p.block(":status", "200")})
		n := 0
		for ; err == nil && n < 10000; n++ {
			err = p.fr.WriteContinuation(id, false, block)
		}
		sent <- n
		return err
	})
	var err error
	within(t, func() { _, err = s.ReadResponseHeaders(nil) })
	if kind(err) != "protocol" || p.client.Healthy() {
		t.Errorf("error %v, healthy %t", err, p.client.Healthy())
	}
	if n := <-sent; n > 1000 {
		t.Errorf("%d frames were taken", n)
	}
}

// Interim heads come out one by one, with what they carry; a moderate
// number is nothing to fail over, an endless one is.
func TestInterimHeads(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s, id := p.get()
	for _, f := range [][]string{
		{":status", "100"}, {":status", "103", "link", "</a>"}, {":status", "103", "link", "</b>"}, {":status", "199"},
	} {
		p.respond(id, false, f...)
	}
	for range 20 {
		p.respond(id, false, ":status", "103")
	}
	p.respond(id, false, ":status", "200")
	p.data(id, true, "ok")
	var got []string
	for range 4 {
		resp := head(t, s)
		if resp.Body != http.NoBody || resp.ProtoMajor != 2 {
			t.Errorf("%s: body %T, %s", resp.Status, resp.Body, resp.Proto)
		}
		got = append(got, resp.Status[:3]+resp.Header.Get("Link"))
	}
	if want := "100 103</a> 103</b> 199"; strings.Join(got, " ") != want {
		t.Errorf("interim heads %q, want %q", got, want)
	}
	for range 20 {
		if resp := head(t, s); resp.StatusCode != 103 {
			t.Fatalf("got %s", resp.Status)
		}
	}
	resp := head(t, s)
	if body, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(body) != "ok" || err != nil {
		t.Errorf("final: %s %q, %v", resp.Status, body, err)
	}
}

func TestInterimFlood(t *testing.T) {
	tests := map[string]struct {
		heads  int
		fields []string
	}{
		"many":  {101, []string{":status", "103"}},
		"large": {3, []string{":status", "103", "x-a", strings.Repeat("x", 100<<10)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.get()
			for range tt.heads {
				p.write(func() error { return p.inFrames(id, p.block(tt.fields...)) })
			}
			p.reset(id)
			_, err := s.ReadResponseHeaders(nil)
			for err == nil {
				_, err = s.ReadResponseHeaders(nil)
			}
			if kind(err) != "protocol" || !strings.Contains(err.Error(), "interim") {
				t.Errorf("error %v, want a ProtocolError about interim responses", err)
			}
			s.End()
			p.works()
		})
	}
}

// Padding and frames of unknown types are no content.
func TestPaddingAndUnknownFrames(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s, id := p.get()
	p.write(func() error { return p.fr.WriteRawFrame(0xbb, 0xff, id, []byte("unknown")) })
	p.write(func() error {
		return p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, BlockFragment: p.block(":status", "200"), EndHeaders: true, PadLength: 200})
	})
	p.write(func() error { return p.fr.WriteDataPadded(id, true, []byte("fine"), make([]byte, 255)) })
	if got, err := io.ReadAll(head(t, s).Body); string(got) != "fine" || err != nil {
		t.Errorf("body %q, %v", got, err)
	}
}

// A body that nobody reads holds back none but itself.
func TestSlowReader(t *testing.T) {
	c := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/big" {
			for chunk, n := make([]byte, 64<<10), 0; n < 32<<20; n += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
		io.WriteString(w, "small")
	})
	s := open(t, c, terms, request(t, "GET", "https://x.test/big"), 0)
	resp := head(t, s)
	within(t, func() {
		for range 20 {
			if _, got := exchange(t, c, request(t, "GET", "https://x.test/small"), nil, 0); got != "small" {
				t.Errorf("got %q", got)
			}
		}
	})
	if n, err := io.Copy(io.Discard, resp.Body); n != 32<<20+5 || err != nil {
		t.Errorf("afterwards %d bytes, %v", n, err)
	}
}

// SETTINGS and PING floods are answered one by one, so their sender waits.
func TestControlFrameFlood(t *testing.T) {
	p := newPeer(t, http2.Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 5000 {
		p.write(func() error {
			if i%2 == 0 {
				return p.fr.WriteSettings(limit(100))
			}
			var data [8]byte
			binary.BigEndian.PutUint64(data[:], uint64(i))
			return p.fr.WritePing(false, data)
		})
	}
	p.works()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// A connection whose opening can not be written is an error of NewConn, and
// closed.
func TestNewConnFails(t *testing.T) {
	ours, theirs := net.Pipe()
	theirs.Close()
	c, err := http2.NewConn(ours, http2.Options{})
	if err == nil {
		c.Close()
		t.Fatal("no error")
	}
	if _, err := ours.Write([]byte("x")); err == nil {
		t.Error("the socket is open")
	}
}
