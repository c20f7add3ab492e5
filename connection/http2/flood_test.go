package http2_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http2"
	xhttp2 "golang.org/x/net/http2"
)

// Floods of frames that carry nothing end the connection, after a number that
// no server at work sends.
func TestFloods(t *testing.T) {
	tests := map[string]func(p *peer, id uint32) []byte{
		"empty DATA":   func(p *peer, id uint32) []byte { return frame(xhttp2.FrameData, 0, id, "") },
		"padded DATA":  func(p *peer, id uint32) []byte { return frame(xhttp2.FrameData, xhttp2.FlagDataPadded, id, "\x01\x00") },
		"PING":         func(p *peer, id uint32) []byte { return frame(xhttp2.FramePing, 0, 0, "12345678") },
		"PING ACK":     func(p *peer, id uint32) []byte { return frame(xhttp2.FramePing, 1, 0, "12345678") },
		"SETTINGS":     func(p *peer, id uint32) []byte { return frame(xhttp2.FrameSettings, 0, 0, "") },
		"SETTINGS ACK": func(p *peer, id uint32) []byte { return frame(xhttp2.FrameSettings, 1, 0, "") },
		"updates":      func(p *peer, id uint32) []byte { return frame(xhttp2.FrameWindowUpdate, 0, 0, "\x00\x00\x00\x01") },
		"priorities":   func(p *peer, id uint32) []byte { return frame(xhttp2.FramePriority, 0, id, "12345") },
		"unknown":      func(p *peer, id uint32) []byte { return frame(0xfe, 0, id, "") },
		"closed, RST":  func(p *peer, id uint32) []byte { return frame(xhttp2.FrameRSTStream, 0, 1, "\x00\x00\x00\x08") },
		"closed, DATA": func(p *peer, id uint32) []byte { return frame(xhttp2.FrameData, 0, 1, "x") },
		"closed, HEAD": func(p *peer, id uint32) []byte { return frame(xhttp2.FrameHeaders, endHeaders, 1, "\x88") },
		"GOAWAY": func(p *peer, id uint32) []byte {
			return frame(xhttp2.FrameGoAway, 0, 0, "\x7f\xff\xff\xff\x00\x00\x00\x00")
		},
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			first, id := p.get()
			p.respond(id, true, ":status", "200")
			head(t, first)
			first.End()
			s, id := p.get()
			p.respond(id, false, ":status", "200")
			body := head(t, s).Body
			go func() { // ends with the connection
				flood := []byte(strings.Repeat(string(make(p, id)), 100))
				for range 200 {
					p.raw(flood)
				}
			}()
			var err error
			within(t, func() { _, err = io.ReadAll(body) })
			if kind(err) != "protocol" || !strings.Contains(err.Error(), "ENHANCE_YOUR_CALM") {
				t.Errorf("error %v, want ENHANCE_YOUR_CALM", err)
			}
			// Where answers are on their way, there may be no room for a GOAWAY.
			answered := name == "PING" || name == "SETTINGS"
			if f := p.lastFrame(); f.code != xhttp2.ErrCodeEnhanceYourCalm && !answered {
				t.Errorf("last came %+v, want GOAWAY", f)
			}
		})
	}
}

// The same frames at the rate of a server at work are no flood.
func TestSlowPingsAreNoFlood(t *testing.T) {
	bubble(t, "pings", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		for range 25000 {
			<-after(20 * time.Millisecond)
			p.write(func() error { return p.fr.WritePing(false, [8]byte{1}) })
		}
		p.works()
	})
}

// A server that asks for answers and reads none of them is given up, and costs
// little until then.
func TestNeverReads(t *testing.T) {
	ours, theirs := newStuckPair(t)
	c := connect(t, ours, http2.Options{})
	theirs.stop()
	var why error
	retired := make(chan struct{})
	c.OnRetire(func(err error) { why = err; close(retired) })
	go func() { // ends with the connection
		ping := []byte(strings.Repeat(string(frame(xhttp2.FramePing, 0, 0, "12345678")), 100))
		for {
			if _, err := theirs.nc.Write(ping); err != nil {
				return
			}
		}
	}()
	within(t, func() { <-retired })
	if why == nil || !strings.Contains(why.Error(), "ENHANCE_YOUR_CALM") {
		t.Errorf("retired for %v", why)
	}
}

// A field in the decoder's table that is named again and again costs its bytes
// on the wire and no more: the limits count it whole.
func TestHeaderBomb(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s, id := p.get()
	before := heap()
	value := strings.Repeat("v", 3900)
	bomb := string(p.block(":status", "200", "x-bomb", value))
	bomb += strings.Repeat("\xbe", 16<<10-len(bomb)) // the table's newest entry
	p.raw(frame(xhttp2.FrameHeaders, endHeaders, id, bomb))
	_, err := s.ReadResponseHeaders(nil)
	if kind(err) != "protocol" || !strings.Contains(err.Error(), "more than the 262144 allowed") {
		t.Errorf("error %v", err)
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	p.reset(id)
	s.End()
	p.works()
}

// A CONTINUATION that carries nothing is not free.
func TestEmptyContinuationFlood(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s, id := p.get()
	p.raw(frame(xhttp2.FrameHeaders, 0, id, "\x88"))
	go func() { // ends with the connection
		flood := []byte(strings.Repeat(string(frame(xhttp2.FrameContinuation, 0, id, "")), 100))
		for range 1000 {
			p.raw(flood)
		}
	}()
	var err error
	within(t, func() { _, err = s.ReadResponseHeaders(nil) })
	if kind(err) != "protocol" || !strings.Contains(err.Error(), "ENHANCE_YOUR_CALM") {
		t.Errorf("error %v", err)
	}
}
