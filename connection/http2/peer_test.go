package http2_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http2"
	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// patience is how long a test waits for what has to come. It is a limit for
// broken code, never part of what is tested.
const patience = 10 * time.Second

// A seen is a frame that the peer read.
type seen struct {
	typ    xhttp2.FrameType
	stream uint32
	end    bool // END_STREAM
	data   string
	fields map[string]string // of HEADERS; several values are joined by "|"
	code   xhttp2.ErrCode    // of RST_STREAM and GOAWAY
}

// peer is a server of raw frames over an in-memory connection. A goroutine
// reads for it, so that the client never waits to write, and answers PINGs.
type peer struct {
	t      *testing.T
	nc     net.Conn
	client *http2.Conn
	frames chan seen // without SETTINGS, WINDOW_UPDATE and PING
	pings  chan struct{}
	credit atomic.Int64 // what the client gave to the connection's window
	flow   flowLog
	// settled is closed when the client has acknowledged SETTINGS.
	settled chan struct{}

	mu   sync.Mutex // guards fr's writing half and henc
	fr   *xhttp2.Framer
	hbuf bytes.Buffer
	henc *hpack.Encoder
	mute bool // PINGs stay unanswered
}

// newPeer connects a client to a peer that has sent its SETTINGS, and seen them
// acknowledged: the client has nothing more to write.
func newPeer(t *testing.T, opts http2.Options, settings ...xhttp2.Setting) *peer {
	t.Helper()
	p := newSilentPeer(t, opts)
	p.write(func() error { return p.fr.WriteSettings(settings...) })
	select {
	case <-p.settled:
	case <-time.After(patience):
		t.Fatal("the SETTINGS are not acknowledged")
	}
	return p
}

// newSilentPeer is newPeer before the SETTINGS.
func newSilentPeer(t *testing.T, opts http2.Options) *peer {
	t.Helper()
	ours, theirs := net.Pipe()
	return newPeerOver(t, ours, theirs, opts)
}

// newPeerOver is newSilentPeer over another connection than one in memory.
func newPeerOver(t *testing.T, ours, theirs net.Conn, opts http2.Options) *peer {
	t.Helper()
	p := &peer{t: t, nc: theirs, frames: make(chan seen, 4096), pings: make(chan struct{}, 4096), settled: make(chan struct{})}
	p.henc = hpack.NewEncoder(&p.hbuf)
	p.fr = xhttp2.NewFramer(theirs, theirs)
	p.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.fr.SetMaxReadFrameSize(1 << 20)
	done := make(chan struct{})
	go func() { defer close(done); p.run() }() // ends with the connection
	p.client = connect(t, ours, opts)
	t.Cleanup(func() {
		p.client.Close()
		theirs.Close()
		<-done
	})
	return p
}

func (p *peer) run() {
	defer close(p.frames)
	// The pipe holds nothing: a reader that waited to write would keep the
	// client from reading on.
	acks := make(chan [8]byte, 4096)
	defer close(acks)
	go p.answerPings(acks)
	preface := make([]byte, len(xhttp2.ClientPreface))
	if _, err := io.ReadFull(p.nc, preface); err != nil || string(preface) != xhttp2.ClientPreface {
		p.t.Errorf("preface %q, %v", preface, err)
		return
	}
	var settle sync.Once
	for {
		f, err := p.fr.ReadFrame()
		if err != nil {
			return
		}
		s := seen{typ: f.Header().Type, stream: f.Header().StreamID}
		switch f := f.(type) {
		case *xhttp2.MetaHeadersFrame:
			s.end, s.fields = f.StreamEnded(), map[string]string{}
			for _, hf := range f.Fields {
				if old, ok := s.fields[hf.Name]; ok {
					hf.Value = old + "|" + hf.Value
				}
				s.fields[hf.Name] = hf.Value
			}
		case *xhttp2.DataFrame:
			s.end, s.data = f.StreamEnded(), string(f.Data())
		case *xhttp2.RSTStreamFrame:
			s.code = f.ErrCode
		case *xhttp2.GoAwayFrame:
			s.code = f.ErrCode
		case *xhttp2.WindowUpdateFrame:
			if f.StreamID == 0 {
				p.credit.Add(int64(f.Increment))
			}
			p.flow.add("window %d +%d", f.StreamID, f.Increment)
			continue
		case *xhttp2.SettingsFrame:
			if f.IsAck() {
				settle.Do(func() { close(p.settled) })
			} else if v, ok := f.Value(xhttp2.SettingInitialWindowSize); ok {
				p.flow.add("windows %d", v)
			}
			continue
		case *xhttp2.PingFrame:
			if f.IsAck() {
				continue
			}
			p.pings <- struct{}{}
			acks <- f.Data
			continue
		default:
			continue
		}
		p.frames <- s
	}
}

func (p *peer) answerPings(acks <-chan [8]byte) {
	for data := range acks {
		p.write(func() error {
			if p.mute {
				return nil
			}
			return p.fr.WritePing(true, data)
		})
	}
}

func (p *peer) write(f func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f() // a client that has gone is the test's to notice
}

func (p *peer) raw(b []byte) { p.write(func() error { _, err := p.nc.Write(b); return err }) }

// next returns the next frame; a zero one: the connection is closed.
func (p *peer) next() seen {
	p.t.Helper()
	select {
	case s := <-p.frames:
		return s
	case <-time.After(patience):
		p.t.Fatal("no frame came")
		return seen{}
	}
}

// headers returns the next frame, which has to be HEADERS.
func (p *peer) headers() seen {
	p.t.Helper()
	s := p.next()
	if s.typ != xhttp2.FrameHeaders || s.stream == 0 {
		p.t.Fatalf("got %+v, want HEADERS", s)
	}
	return s
}

// headersPast returns the stream of the next HEADERS, past what is left of the
// streams before, which must not have been ended.
func (p *peer) headersPast() uint32 {
	p.t.Helper()
	for {
		switch f := p.next(); {
		case f.typ == xhttp2.FrameHeaders:
			return f.stream
		case f.typ == xhttp2.FrameData && !f.end, f.typ == xhttp2.FrameRSTStream:
		default:
			p.t.Fatalf("got %+v, want HEADERS", f)
		}
	}
}

// reset returns the code of the first RST_STREAM that comes, past DATA.
func (p *peer) reset(stream uint32) xhttp2.ErrCode {
	p.t.Helper()
	for {
		switch s := p.next(); {
		case s.typ == xhttp2.FrameRSTStream && s.stream == stream:
			return s.code
		case s.end && s.stream == stream:
			p.t.Fatalf("stream %d was ended, want a reset", stream)
		case s.stream == 0:
			p.t.Fatalf("got %+v, want RST_STREAM", s)
		}
	}
}

// block encodes fields: name, value, name, value ...
func (p *peer) block(fields ...string) []byte {
	p.hbuf.Reset()
	for i := 0; i < len(fields); i += 2 {
		p.henc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return p.hbuf.Bytes()
}

// respond sends a head.
func (p *peer) respond(stream uint32, end bool, fields ...string) {
	p.write(func() error {
		return p.fr.WriteHeaders(xhttp2.HeadersFrameParam{
			StreamID: stream, BlockFragment: p.block(fields...), EndHeaders: true, EndStream: end,
		})
	})
}

func (p *peer) data(stream uint32, end bool, data string) {
	p.write(func() error { return p.fr.WriteData(stream, end, []byte(data)) })
}

func (p *peer) rst(stream uint32, code xhttp2.ErrCode) {
	p.write(func() error { return p.fr.WriteRSTStream(stream, code) })
}

func (p *peer) goAway(last uint32, code xhttp2.ErrCode, debug string) {
	p.write(func() error { return p.fr.WriteGoAway(last, code, []byte(debug)) })
}

func (p *peer) grant(stream uint32, n uint32) {
	p.write(func() error { return p.fr.WriteWindowUpdate(stream, n) })
}

// get opens a stream without a body and returns it and its id.
func (p *peer) get() (*http2.Stream, uint32) {
	p.t.Helper()
	s := open(p.t, p.client, terms, request(p.t, "GET", "http://x.test/"), 0)
	return s, p.headers().stream
}

// post opens a stream with a body of size bytes.
func (p *peer) post(size int64) (*http2.Stream, uint32) {
	p.t.Helper()
	s := open(p.t, p.client, terms, request(p.t, "POST", "http://x.test/"), size)
	return s, p.headers().stream
}

// works proves that the connection still carries exchanges.
func (p *peer) works() {
	p.t.Helper()
	s, id := p.get()
	p.respond(id, true, ":status", "204")
	if resp := head(p.t, s); resp.StatusCode != 204 || resp.Body != http.NoBody {
		p.t.Errorf("afterwards: %s, body %T", resp.Status, resp.Body)
	}
	s.End()
}

// within runs f and fails the test if it does not return.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("does not return")
	}
}

var large = strings.Repeat("x", 1<<20)
