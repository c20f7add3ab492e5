package http2_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/catena-http/catena/connection/http2"
	"github.com/google/go-cmp/cmp"
)

// What a reader took, and the server was not granted again because its window was
// large, is granted when that becomes small: the reader may have nothing else.
func TestShrinkLeavesDryReadersAWindow(t *testing.T) {
	bubble(t, "one", func(t *testing.T) {
		p := newPeer(t, http2.Options{StreamWindow: 4 << 20, ConnWindow: 8 << 20})
		read, id := p.body(512 << 10)
		io.ReadFull(read, make([]byte, 512<<10))
		p.heard()
		p.body(2<<20 + 1)
		want := []string{"windows 32768", fmt.Sprintf("window 0 +%d", 4<<20+512<<10), fmt.Sprintf("window %d +%d", id, 512<<10)}
		if diff := cmp.Diff(want, p.heard()); diff != "" {
			t.Error(diff)
		}
	})
}

// serverWindows is what a server may send, by the letter of RFC 9113 6.9.
type serverWindows struct {
	initial, conn int
	streams       map[uint32]int
}

// hear takes what the client said.
func (w *serverWindows) hear(t *testing.T, lines []string) {
	for _, line := range lines {
		var id uint32
		var n int
		if _, err := fmt.Sscanf(line, "windows %d", &n); err == nil {
			for id := range w.streams {
				w.streams[id] += n - w.initial
			}
			w.initial = n
			continue
		}
		if _, err := fmt.Sscanf(line, "window %d +%d", &id, &n); err != nil {
			t.Fatal(line, err)
		}
		at := w.conn
		if id == 0 {
			w.conn += n
		} else {
			w.streams[id] += n
			at = w.streams[id]
		}
		if n < 1 || at > 1<<31-1 {
			t.Fatalf("%s makes a window of %d", line, at)
		}
	}
}

// However bodies come and are read, whoever has read all that came can get more.
func TestDryReadersCanGetMore(t *testing.T) {
	type download struct {
		io.Reader
		id     uint32
		unread int
	}
	for seed := range uint64(40) {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			opts := http2.Options{StreamWindow: 64 << 10 << rng.IntN(5)}
			opts.ConnWindow = opts.StreamWindow * (2 + rng.IntN(7))
			p := newPeer(t, opts)
			windows := serverWindows{initial: 65535, conn: 65535, streams: map[uint32]int{}}
			var all []*download
			for step := range 360 {
				windows.hear(t, p.heard())
				if step%20 == 0 {
					body, id := p.body(0)
					all = append(all, &download{body, id, 0})
					windows.streams[id] = windows.initial
				}
				if p.client.Shrunk() && step%3 == 0 {
					p.write(p.fr.WriteSettingsAck)
				}
				d := all[rng.IntN(len(all))]
				if n := min(rng.IntN(opts.StreamWindow)>>rng.IntN(6), windows.conn, windows.streams[d.id]); n > 0 {
					p.more(d.id, n)
					d.unread += n
					windows.conn -= n
					windows.streams[d.id] -= n
				}
				if n := min(4<<10, windows.conn, windows.streams[d.id]) &^ 255; step%5 == 0 && n > 0 {
					p.pad(d.id, n)
					windows.conn -= n
					windows.streams[d.id] -= n
				}
				if i := rng.IntN(len(all)); i%2 == 0 || step > 300 { // the others are read late
					d = all[i]
					n := d.unread >> rng.IntN(2)
					io.ReadFull(d, make([]byte, n))
					d.unread -= n
				}
				windows.hear(t, p.heard())
				for _, d := range all {
					if d.unread == 0 && windows.streams[d.id] <= 0 {
						t.Fatalf("step %d: the window of stream %d is %d, and all is read", step, d.id, windows.streams[d.id])
					}
				}
				if windows.conn <= 0 && p.client.Unread() < int64(opts.ConnWindow)/2 {
					t.Fatalf("step %d: nothing may be sent, and %d bytes are unread", step, p.client.Unread())
				}
			}
		})
	}
}
