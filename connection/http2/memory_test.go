package http2_test

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/catena-http/catena/connection/http2"
	xhttp2 "golang.org/x/net/http2"
)

func heap() int64 {
	var m runtime.MemStats
	for range 2 { // pools keep their memory for one more
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A body in tiny pieces, between frames that are passed over, takes memory of
// the order of its size, though pieces lie in the memory that they were read into.
func TestTinyPieces(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s, id := p.get()
	p.respond(id, false, ":status", "200")
	body := head(t, s).Body
	before := heap()
	piece := string(frame(xhttp2.FrameData, 0, id, "x")) + string(frame(0xfe, 0, id, strings.Repeat("y", 16000)))
	const pieces = 2000
	for range pieces {
		p.raw([]byte(piece))
	}
	within(t, func() { p.ping() })
	if grown := heap() - before; grown > 3<<20 {
		t.Errorf("the heap grew by %d bytes for a body of %d", grown, pieces)
	}
	p.data(id, true, "")
	if got, err := io.ReadAll(body); len(got) != pieces || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// ping returns when the client has read everything so far.
func (p *peer) ping() {
	p.write(func() error { return p.fr.WriteSettings() })
	s, id := p.get()
	p.respond(id, true, ":status", "204")
	head(p.t, s)
	s.End()
}

// A body that nobody reads takes memory of about its size, however it comes.
func TestUnreadMemory(t *testing.T) {
	const size = 10 << 20
	for name, send := range map[string]func(p *peer, id uint32){ // 16 KiB
		"frames": func(p *peer, id uint32) { p.data(id, false, large[:16<<10]) },
		// As TLS makes them of frames that are as large.
		"frames in two records": func(p *peer, id uint32) {
			b := frame(xhttp2.FrameData, 0, id, large[:16<<10])
			p.raw(b[:16<<10])
			p.raw(b[16<<10:])
		},
		"small and large": func(p *peer, id uint32) {
			p.data(id, false, large[:1<<10])
			p.data(id, false, large[:15<<10])
		},
		"between others": func(p *peer, id uint32) {
			p.data(id, false, large[:8<<10])
			p.ping()
			p.data(id, false, large[:8<<10])
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			before := heap()
			for range 20 {
				s, id := p.get()
				p.respond(id, false, ":status", "200")
				head(t, s)
				for range size / 20 >> 14 {
					send(p, id)
				}
			}
			p.ping()
			if grown := heap() - before; grown > size*13/10 {
				t.Errorf("the heap grew by %d bytes for %d", grown, size)
			}
		})
	}
}
