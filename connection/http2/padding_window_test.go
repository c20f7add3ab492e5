package http2_test

import (
	"io"
	"testing"

	"github.com/catena-http/catena/connection/http2"
)

// pad sends frames without content that use up n bytes of window, 256 bytes each.
func (p *peer) pad(id uint32, n int) {
	padding := make([]byte, 255)
	for ; n >= 256; n -= 256 {
		p.write(func() error { return p.fr.WriteDataPadded(id, false, nil, padding) })
	}
}

// Padding comes off the window as content does. Where nothing else comes, nobody
// reads, and the server is granted more all the same.
func TestPaddingAloneLeavesAWindow(t *testing.T) {
	for name, shrunk := range map[string]bool{"at first": false, "shrunk": true} {
		bubble(t, name, func(t *testing.T) {
			p := newPeer(t, http2.Options{StreamWindow: 256 << 10, ConnWindow: 2 << 20})
			windows := serverWindows{initial: 65535, conn: 65535, streams: map[uint32]int{}}
			windows.hear(t, p.heard())
			body, id := p.body(0)
			windows.streams[id] = windows.initial
			if shrunk {
				for range 3 {
					p.body(256 << 10)
				}
				if windows.hear(t, p.heard()); !p.client.Shrunk() {
					t.Fatal("it is not shrunk")
				}
			}
			for range 10 {
				n := windows.streams[id] / 2
				p.pad(id, n)
				windows.streams[id] -= n &^ 255
				windows.hear(t, p.heard())
			}
			if got := windows.streams[id]; got < 4<<10 {
				t.Errorf("the server may send %d bytes", got)
			}
			p.more(id, 1)
			if _, err := io.ReadFull(body, make([]byte, 1)); err != nil {
				t.Error(err)
			}
		})
	}
}
