package http2_test

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// frame is a raw frame.
func frame(typ xhttp2.FrameType, flags xhttp2.Flags, stream uint32, payload string) []byte {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), byte(typ), byte(flags)}
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

func setting(id xhttp2.SettingID, v uint32) string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, uint16(id)), v))
}

const (
	endHeaders = xhttp2.FlagHeadersEndHeaders
	endStream  = xhttp2.FlagDataEndStream
)

// Breaches of HTTP/2 that leave nothing to trust: the connection ends with the
// code, the call's error and the GOAWAY say so, at once.
func TestBreachOfConnection(t *testing.T) {
	word := func(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }
	tests := map[string]struct {
		frames [][]byte
		code   xhttp2.ErrCode
		words  string
	}{
		"SETTINGS on a stream":       {[][]byte{frame(xhttp2.FrameSettings, 0, 1, "")}, xhttp2.ErrCodeProtocol, "SETTINGS on stream 1"},
		"SETTINGS of 5 bytes":        {[][]byte{frame(xhttp2.FrameSettings, 0, 0, "12345")}, xhttp2.ErrCodeFrameSize, "SETTINGS of 5 bytes"},
		"SETTINGS ACK with payload":  {[][]byte{frame(xhttp2.FrameSettings, 1, 0, "123456")}, xhttp2.ErrCodeFrameSize, "acknowledgement"},
		"ENABLE_PUSH":                {[][]byte{frame(xhttp2.FrameSettings, 0, 0, setting(xhttp2.SettingEnablePush, 1))}, xhttp2.ErrCodeProtocol, "ENABLE_PUSH"},
		"INITIAL_WINDOW_SIZE":        {[][]byte{frame(xhttp2.FrameSettings, 0, 0, setting(xhttp2.SettingInitialWindowSize, 1<<31))}, xhttp2.ErrCodeFlowControl, "INITIAL_WINDOW_SIZE"},
		"INITIAL_WINDOW_SIZE, open":  {[][]byte{frame(xhttp2.FrameWindowUpdate, 0, 1, word(1<<31-1-65535)), frame(xhttp2.FrameSettings, 0, 0, setting(xhttp2.SettingInitialWindowSize, 65536))}, xhttp2.ErrCodeFlowControl, "INITIAL_WINDOW_SIZE"},
		"MAX_FRAME_SIZE, small":      {[][]byte{frame(xhttp2.FrameSettings, 0, 0, setting(xhttp2.SettingMaxFrameSize, 16383))}, xhttp2.ErrCodeProtocol, "MAX_FRAME_SIZE 16383"},
		"MAX_FRAME_SIZE, large":      {[][]byte{frame(xhttp2.FrameSettings, 0, 0, setting(xhttp2.SettingMaxFrameSize, 1<<24))}, xhttp2.ErrCodeProtocol, "MAX_FRAME_SIZE"},
		"ENABLE_CONNECT of 2":        {[][]byte{frame(xhttp2.FrameSettings, 0, 0, setting(8, 2))}, xhttp2.ErrCodeProtocol, "CONNECT_PROTOCOL 2"},
		"ENABLE_CONNECT taken back":  {[][]byte{frame(xhttp2.FrameSettings, 0, 0, setting(8, 1)+setting(8, 0))}, xhttp2.ErrCodeProtocol, "CONNECT_PROTOCOL 0"},
		"PING on a stream":           {[][]byte{frame(xhttp2.FramePing, 0, 1, "12345678")}, xhttp2.ErrCodeProtocol, "PING on stream 1"},
		"PING of 7 bytes":            {[][]byte{frame(xhttp2.FramePing, 0, 0, "1234567")}, xhttp2.ErrCodeFrameSize, "PING of 7 bytes"},
		"GOAWAY on a stream":         {[][]byte{frame(xhttp2.FrameGoAway, 0, 1, "12345678")}, xhttp2.ErrCodeProtocol, "GOAWAY on stream 1"},
		"GOAWAY of 7 bytes":          {[][]byte{frame(xhttp2.FrameGoAway, 0, 0, "1234567")}, xhttp2.ErrCodeFrameSize, "GOAWAY of 7 bytes"},
		"RST_STREAM of 3 bytes":      {[][]byte{frame(xhttp2.FrameRSTStream, 0, 1, "123")}, xhttp2.ErrCodeFrameSize, "RST_STREAM of 3 bytes"},
		"RST_STREAM on 0":            {[][]byte{frame(xhttp2.FrameRSTStream, 0, 0, word(8))}, xhttp2.ErrCodeProtocol, "stream 0"},
		"RST_STREAM, never opened":   {[][]byte{frame(xhttp2.FrameRSTStream, 0, 3, word(8))}, xhttp2.ErrCodeProtocol, "stream 3, which was never opened"},
		"RST_STREAM, the server's":   {[][]byte{frame(xhttp2.FrameRSTStream, 0, 2, word(8))}, xhttp2.ErrCodeProtocol, "stream 2"},
		"WINDOW_UPDATE of 3 bytes":   {[][]byte{frame(xhttp2.FrameWindowUpdate, 0, 1, "123")}, xhttp2.ErrCodeFrameSize, "WINDOW_UPDATE of 3 bytes"},
		"WINDOW_UPDATE never opened": {[][]byte{frame(xhttp2.FrameWindowUpdate, 0, 3, word(8))}, xhttp2.ErrCodeProtocol, "stream 3, which was never opened"},
		"HEADERS never opened":       {[][]byte{frame(xhttp2.FrameHeaders, endHeaders, 3, "\x88")}, xhttp2.ErrCodeProtocol, "HEADERS on stream 3"},
		"HEADERS of the server":      {[][]byte{frame(xhttp2.FrameHeaders, endHeaders, 2, "\x88")}, xhttp2.ErrCodeProtocol, "HEADERS on stream 2"},
		"HEADERS, padding":           {[][]byte{frame(xhttp2.FrameHeaders, endHeaders|xhttp2.FlagHeadersPadded, 1, "\x09\x88")}, xhttp2.ErrCodeProtocol, "padding"},
		"HEADERS, padding missing":   {[][]byte{frame(xhttp2.FrameHeaders, endHeaders|xhttp2.FlagHeadersPadded, 1, "")}, xhttp2.ErrCodeFrameSize, "padding"},
		"HEADERS, priority":          {[][]byte{frame(xhttp2.FrameHeaders, endHeaders|xhttp2.FlagHeadersPriority, 1, "\x88")}, xhttp2.ErrCodeFrameSize, "priority"},
		"DATA on 0":                  {[][]byte{frame(xhttp2.FrameData, 0, 0, "x")}, xhttp2.ErrCodeProtocol, "stream 0"},
		"DATA never opened":          {[][]byte{frame(xhttp2.FrameData, 0, 3, "x")}, xhttp2.ErrCodeProtocol, "DATA on stream 3"},
		"DATA, padding":              {[][]byte{frame(xhttp2.FrameData, xhttp2.FlagDataPadded, 1, "\x05xxxx")}, xhttp2.ErrCodeProtocol, "padding"},
		"CONTINUATION alone":         {[][]byte{frame(xhttp2.FrameContinuation, endHeaders, 1, "\x88")}, xhttp2.ErrCodeProtocol, "CONTINUATION without HEADERS"},
		"HEADERS within HEADERS":     {[][]byte{frame(xhttp2.FrameHeaders, 0, 1, "\x88"), frame(xhttp2.FrameHeaders, endHeaders, 1, "\x88")}, xhttp2.ErrCodeProtocol, "within the header block of stream 1"},
		"DATA within HEADERS":        {[][]byte{frame(xhttp2.FrameHeaders, 0, 1, "\x88"), frame(xhttp2.FrameData, 0, 1, "x")}, xhttp2.ErrCodeProtocol, "within the header block"},
		"PING within HEADERS":        {[][]byte{frame(xhttp2.FrameHeaders, 0, 1, "\x88"), frame(xhttp2.FramePing, 0, 0, "12345678")}, xhttp2.ErrCodeProtocol, "within the header block"},
		"another's CONTINUATION":     {[][]byte{frame(xhttp2.FrameHeaders, 0, 1, "\x88"), frame(xhttp2.FrameContinuation, endHeaders, 3, "")}, xhttp2.ErrCodeProtocol, "within the header block"},
		"HPACK, index":               {[][]byte{frame(xhttp2.FrameHeaders, endHeaders, 1, "\xff\x80\x01")}, xhttp2.ErrCodeCompression, "COMPRESSION_ERROR"},
		"HPACK, index 0":             {[][]byte{frame(xhttp2.FrameHeaders, endHeaders, 1, "\x80")}, xhttp2.ErrCodeCompression, "COMPRESSION_ERROR"},
		"HPACK, table size":          {[][]byte{frame(xhttp2.FrameHeaders, endHeaders, 1, "\x3f\xff\xff\x7f")}, xhttp2.ErrCodeCompression, "COMPRESSION_ERROR"},
		"HPACK, endless number":      {[][]byte{frame(xhttp2.FrameHeaders, endHeaders, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f")}, xhttp2.ErrCodeCompression, "COMPRESSION_ERROR"},
		"HPACK, truncated":           {[][]byte{frame(xhttp2.FrameHeaders, endHeaders, 1, "\x40\x01")}, xhttp2.ErrCodeCompression, "COMPRESSION_ERROR"},
		"PUSH_PROMISE":               {[][]byte{frame(xhttp2.FramePushPromise, endHeaders, 1, "\x00\x00\x00\x02\x82")}, xhttp2.ErrCodeProtocol, "PUSH_PROMISE"},
		"long frame":                 {[][]byte{{0, 64, 1, 0, 0, 0, 0, 0, 1}}, xhttp2.ErrCodeFrameSize, "16385 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, _ := p.get()
			for _, f := range tt.frames {
				p.raw(f)
			}
			var err error
			within(t, func() { _, err = s.ReadResponseHeaders(nil) })
			if kind(err) != "protocol" || !strings.Contains(err.Error(), tt.code.String()) || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("error %v, want a ProtocolError with %v and %q", err, tt.code, tt.words)
			}
			if f := p.lastFrame(); f.typ != xhttp2.FrameGoAway || f.code != tt.code {
				t.Errorf("last came %+v, want GOAWAY(%v)", f, tt.code)
			}
			if p.client.Healthy() {
				t.Error("the connection is healthy")
			}
		})
	}
}

// lastFrame returns the last frame before the connection's end.
func (p *peer) lastFrame() (last seen) {
	p.t.Helper()
	for {
		f := p.next()
		if f.typ == 0 && f.stream == 0 {
			return last
		}
		last = f
	}
}

// Breaches that hurt one exchange: it is reset with the code, the connection
// lives on.
func TestBreachOfStream(t *testing.T) {
	tests := map[string]struct {
		do    func(p *peer, id uint32)
		code  xhttp2.ErrCode
		words string
	}{
		"zero update":      {func(p *peer, id uint32) { p.raw(frame(xhttp2.FrameWindowUpdate, 0, id, "\x00\x00\x00\x00")) }, xhttp2.ErrCodeProtocol, "WINDOW_UPDATE of 0"},
		"window overflow":  {func(p *peer, id uint32) { p.grant(id, 1<<31-1) }, xhttp2.ErrCodeFlowControl, "2^31-1"},
		"DATA before HEAD": {func(p *peer, id uint32) { p.data(id, false, "x") }, xhttp2.ErrCodeProtocol, "before the response's head"},
		"upper case":       {func(p *peer, id uint32) { p.respond(id, true, ":status", "200", "X-A", "1") }, xhttp2.ErrCodeProtocol, `"X-A"`},
		"status twice":     {func(p *peer, id uint32) { p.respond(id, true, ":status", "200", ":status", "200") }, xhttp2.ErrCodeProtocol, `":status"`},
		"late status":      {func(p *peer, id uint32) { p.respond(id, true, "x-a", "1", ":status", "200") }, xhttp2.ErrCodeProtocol, `":status"`},
		"request's pseudo": {func(p *peer, id uint32) { p.respond(id, true, ":status", "200", ":path", "/") }, xhttp2.ErrCodeProtocol, `":path"`},
		"empty name":       {func(p *peer, id uint32) { p.respond(id, true, ":status", "200", "", "1") }, xhttp2.ErrCodeProtocol, `""`},
		"NUL in a value":   {func(p *peer, id uint32) { p.respond(id, true, ":status", "200", "x-a", "a\x00") }, xhttp2.ErrCodeProtocol, `"x-a"`},
		"length, differing": {func(p *peer, id uint32) {
			p.respond(id, true, ":status", "200", "content-length", "1", "content-length", "2")
		}, xhttp2.ErrCodeProtocol, `content-length "2"`},
		"length, signed": {func(p *peer, id uint32) { p.respond(id, true, ":status", "200", "content-length", "+1") }, xhttp2.ErrCodeProtocol, `content-length "+1"`},
		"length, huge": {func(p *peer, id uint32) {
			p.respond(id, true, ":status", "200", "content-length", "99999999999999999999")
		}, xhttp2.ErrCodeProtocol, "content-length"},
		"length, list": {func(p *peer, id uint32) { p.respond(id, true, ":status", "200", "content-length", "1, 1") }, xhttp2.ErrCodeProtocol, "content-length"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.post(-1)
			tt.do(p, id)
			var err error
			within(t, func() { _, err = s.ReadResponseHeaders(nil) })
			if kind(err) != "protocol" || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("error %v, want a ProtocolError with %q", err, tt.words)
			}
			if code := p.reset(id); code != tt.code {
				t.Errorf("reset with %v, want %v", code, tt.code)
			}
			if _, err := io.WriteString(s, "more"); err == nil {
				t.Error("the request can still be written")
			}
			s.End()
			p.works()
		})
	}
}

// What comes after the end of the response, while the request goes on, resets
// the stream and leaves the response whole.
func TestFramesAfterEnd(t *testing.T) {
	tests := map[string]func(p *peer, id uint32){
		"data":    func(p *peer, id uint32) { p.data(id, false, "more") },
		"headers": func(p *peer, id uint32) { p.respond(id, true, "x-t", "1") },
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.post(-1)
			p.respond(id, false, ":status", "200")
			p.data(id, true, "fine")
			do(p, id)
			p.reset(id)
			if got, err := io.ReadAll(head(t, s).Body); string(got) != "fine" || err != nil {
				t.Errorf("body %q, %v", got, err)
			}
			if _, err := io.WriteString(s, "more"); kind(err) != "protocol" {
				t.Errorf("Write: %v, want a ProtocolError", err)
			}
			s.End()
			p.works()
		})
	}
}

// Frames for streams that are over are passed over; the windows do not suffer.
func TestFramesOnClosedStreams(t *testing.T) {
	p := newPeer(t, http2.Options{ConnWindow: 1 << 20})
	canceled, id := p.get()
	canceled.Cancel()
	p.reset(id)
	done, doneID := p.get()
	p.respond(doneID, true, ":status", "200")
	head(t, done)
	chunk := strings.Repeat("x", 16<<10)
	for range 200 { // three times the connection's window
		p.data(id, false, chunk)
	}
	for _, over := range []uint32{id, doneID} {
		p.respond(over, false, ":status", "200", "x-indexed", "value")
		p.data(over, true, "late")
		p.rst(over, xhttp2.ErrCodeInternal)
		p.grant(over, 1)
		p.rst(over, xhttp2.ErrCodeNo)
	}
	// The decoder's table has what came for the others.
	s, id := p.get()
	p.respond(id, true, ":status", "200", "x-indexed", "value")
	if got := head(t, s).Header.Get("X-Indexed"); got != "value" {
		t.Errorf("x-indexed is %q", got)
	}
}

// More than the windows allow is refused, at the stream or at the connection.
func TestWindowExceeded(t *testing.T) {
	chunk := strings.Repeat("x", 16<<10)
	t.Run("stream", func(t *testing.T) {
		p := newPeer(t, http2.Options{StreamWindow: 512 << 10})
		s, id := p.get()
		p.respond(id, false, ":status", "200")
		body := head(t, s).Body
		for range 512>>4 + 1 {
			p.data(id, false, chunk)
		}
		if code := p.reset(id); code != xhttp2.ErrCodeFlowControl {
			t.Errorf("reset with %v", code)
		}
		if got, err := io.ReadAll(body); len(got) != 512<<10 || kind(err) != "protocol" {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		s.End()
		p.works()
	})
	t.Run("connection", func(t *testing.T) {
		p := newPeer(t, http2.Options{StreamWindow: 512 << 10, ConnWindow: 1 << 20})
		var ids []uint32
		for range 3 {
			_, id := p.get()
			ids = append(ids, id)
		}
		for _, id := range ids {
			p.respond(id, false, ":status", "200")
			for range 512 >> 4 {
				p.data(id, false, chunk)
			}
		}
		if f := p.lastFrame(); f.typ != xhttp2.FrameGoAway || f.code != xhttp2.ErrCodeFlowControl {
			t.Errorf("last came %+v", f)
		}
	})
}

// A server that shrinks its windows under a body, to below zero, is obeyed.
func TestShrinkingWindow(t *testing.T) {
	p := newPeer(t, http2.Options{}, xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 1000})
	s, id := p.post(-1)
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(s, strings.Repeat("x", 1500))
		sent <- errors.Join(err, s.FinishRequest(nil))
	}()
	if f := p.next(); len(f.data) != 1000 {
		t.Fatalf("got %d bytes, want the window of 1000", len(f.data))
	}
	p.write(func() error {
		return p.fr.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 100}) // now it is -900
	})
	p.grant(id, 900)
	p.grant(id, 200)
	if f := p.next(); len(f.data) != 200 {
		t.Fatalf("got %d bytes, want 200", len(f.data))
	}
	p.write(func() error {
		return p.fr.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 400})
	})
	last := p.next()
	if len(last.data) != 300 {
		t.Fatalf("got %d bytes, want 300", len(last.data))
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if !last.end && !p.next().end {
		t.Error("the end did not come")
	}
}

// With a window of zero only the head goes out, and an empty body.
func TestZeroWindow(t *testing.T) {
	p := newPeer(t, http2.Options{}, xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 0})
	s, _ := p.post(-1)
	if err := s.FinishRequest(nil); err != nil {
		t.Fatal(err)
	}
	if f := p.next(); !f.end || f.data != "" {
		t.Errorf("got %+v", f)
	}
}

// GOAWAY frames whose last stream goes up again change nothing.
func TestGoAwayGoesDownOnly(t *testing.T) {
	p := newPeer(t, http2.Options{})
	below, id := p.get()
	above, _ := p.get()
	p.goAway(id, xhttp2.ErrCodeNo, "")
	p.goAway(1<<31-1, xhttp2.ErrCodeEnhanceYourCalm, "more")
	_, err := above.ReadResponseHeaders(nil)
	var u *wire.UnprocessedError
	if !errors.As(err, &u) || !u.Shutdown {
		t.Errorf("above: %v", err)
	}
	p.respond(id, true, ":status", "200")
	head(t, below)
}
