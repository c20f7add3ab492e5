package http2_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

var errBoom = errors.New("boom")

// A body that is not what was declared, or that fails: the error says so, the
// server sees a reset and never an end, nothing past the declared length is on
// the wire, and the connection lives.
func TestBadRequestBody(t *testing.T) {
	tests := map[string]struct {
		size int64
		send func(s *http2.Stream) error
		data int // the most that may be on the wire
		boom bool
	}{
		"longer, in one write": {5, func(s *http2.Stream) error { _, err := io.WriteString(s, "0123456789"); return err }, 0, false},
		"longer, in two writes": {5, func(s *http2.Stream) error {
			io.WriteString(s, "01234")
			_, err := io.WriteString(s, "56789")
			return err
		}, 5, false},
		"longer, from a reader": {5, func(s *http2.Stream) error {
			_, err := s.ReadFrom(iotest.OneByteReader(strings.NewReader("0123456789")))
			return err
		}, 5, false},
		"shorter": {5, func(s *http2.Stream) error {
			io.WriteString(s, "012")
			return s.FinishRequest(nil)
		}, 3, false},
		"failing": {-1, func(s *http2.Stream) error {
			_, err := s.ReadFrom(io.MultiReader(strings.NewReader("012"), iotest.ErrReader(errBoom)))
			s.AbortRequest()
			return err
		}, 3, true},
		"failing, known length": {5, func(s *http2.Stream) error {
			_, err := s.ReadFrom(io.MultiReader(strings.NewReader("012"), iotest.ErrReader(errBoom)))
			s.AbortRequest()
			return err
		}, 3, true},
		"failing with the last byte": {3, func(s *http2.Stream) error {
			_, err := s.ReadFrom(io.MultiReader(strings.NewReader("012"), iotest.ErrReader(errBoom)))
			s.AbortRequest()
			return err
		}, 3, true},
		"undeclared": {0, func(s *http2.Stream) error { _, err := io.WriteString(s, "x"); return err }, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.post(tt.size)
			var err error
			within(t, func() { err = tt.send(s) })
			if own := (*wire.RequestBodyError)(nil); !errors.As(err, &own) {
				t.Errorf("error %v, want a RequestBodyError", err)
			}
			if errors.Is(err, errBoom) != tt.boom {
				t.Errorf("error %v is the reader's: %t, want %t", err, !tt.boom, tt.boom)
			}
			sent := 0
			for done := false; !done; {
				switch f := p.next(); {
				case f.typ == xhttp2.FrameData && !f.end:
					sent += len(f.data)
				case f.typ == xhttp2.FrameRSTStream && f.code == xhttp2.ErrCodeCancel:
					done = true
				default:
					t.Fatalf("got %+v, want DATA or RST_STREAM(CANCEL)", f)
				}
			}
			if sent > tt.data {
				t.Errorf("%d bytes of body on the wire, want at most %d", sent, tt.data)
			}
			if _, err := s.ReadResponseHeaders(nil); kind(err) != "request body" {
				t.Errorf("the response fails with %v, want the body's error", err)
			}
			s.End()
			if id != 1 {
				t.Errorf("stream %d", id)
			}
			p.works()
		})
	}
}

// Streams that end in a failure of their body do not use up the limit.
func TestBadRequestBodiesLeaveSlots(t *testing.T) {
	p := newPeer(t, http2.Options{}, xhttp2.Setting{ID: xhttp2.SettingMaxConcurrentStreams, Val: 3})
	for range 50 {
		s, id := p.post(-1)
		s.ReadFrom(iotest.ErrReader(errBoom))
		s.AbortRequest()
		if code := p.reset(id); code != xhttp2.ErrCodeCancel {
			t.Fatalf("reset with %v", code)
		}
		s.End()
	}
}

// A server that answers before it has the whole body, with or without a reset:
// the upload ends, the response is delivered, the connection is used again.
func TestEarlyResponse(t *testing.T) {
	tests := map[string]struct {
		status string
		body   string
		reset  bool
	}{
		"413 and reset":          {"413", "big", true},
		"413 without body":       {"413", "", true},
		"413, no reset":          {"413", "big", false},
		"200 and reset":          {"200", "fine", true},
		"200, no body, reset":    {"200", "", true},
		"401 for another answer": {"401", "who", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			for range 10 {
				s := open(t, p.client, terms, request(t, "POST", "http://x.test/"), int64(len(large)))
				id := p.headersPast()
				go func() {
					p.respond(id, tt.body == "", ":status", tt.status)
					if tt.body != "" {
						p.data(id, true, tt.body)
					}
					if tt.reset {
						p.rst(id, xhttp2.ErrCodeNo)
					}
				}()
				var werr error
				within(t, func() { _, werr = s.ReadFrom(strings.NewReader(large)) })
				var reset *wire.StreamResetError
				if !errors.As(werr, &reset) || reset.Name != "NO_ERROR" {
					t.Fatalf("upload: %v, want a reset with NO_ERROR", werr)
				}
				s.AbortRequest()
				resp := head(t, s)
				got, err := io.ReadAll(resp.Body)
				if resp.Status[:3] != tt.status || string(got) != tt.body || err != nil {
					t.Fatalf("response %s %q, %v", resp.Status, got, err)
				}
				s.End()
				if !tt.reset {
					p.reset(id)
				}
			}
			s := open(t, p.client, terms, request(t, "GET", "http://x.test/"), 0)
			p.respond(p.headersPast(), true, ":status", "200")
			head(t, s)
		})
	}
}

// A Write that waits for a window returns when the stream ends, whoever ends
// it, and when it is interrupted.
func TestBlockedWrite(t *testing.T) {
	tests := map[string]struct {
		end   func(p *peer, s *http2.Stream, id uint32)
		words string
	}{
		"reset":       {func(p *peer, s *http2.Stream, id uint32) { p.rst(id, xhttp2.ErrCodeCancel) }, "stream was reset: CANCEL"},
		"refused":     {func(p *peer, s *http2.Stream, id uint32) { p.rst(id, xhttp2.ErrCodeRefusedStream) }, "REFUSED_STREAM"},
		"goaway":      {func(p *peer, s *http2.Stream, id uint32) { p.goAway(0, xhttp2.ErrCodeNo, "") }, "did not process"},
		"close":       {func(p *peer, s *http2.Stream, id uint32) { p.nc.Close() }, "closed the connection"},
		"cancel":      {func(p *peer, s *http2.Stream, id uint32) { s.Cancel() }, "canceled"},
		"interrupt":   {func(p *peer, s *http2.Stream, id uint32) { s.InterruptWrite() }, "interrupted"},
		"our close":   {func(p *peer, s *http2.Stream, id uint32) { p.client.Close() }, "was closed"},
		"final error": {func(p *peer, s *http2.Stream, id uint32) { p.respond(id, false, ":status", "500") }, "NO_ERROR"},
		"final 200": {func(p *peer, s *http2.Stream, id uint32) {
			p.respond(id, true, ":status", "200")
			head(p.t, s)
			s.InterruptWrite() // as the room above does
		}, "interrupted"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.post(-1)
			got := make(chan error, 1)
			go func() {
				_, err := io.WriteString(s, large)
				got <- err
			}()
			for n := 0; n < 65535; n += len(p.next().data) {
			}
			within(t, func() {
				tt.end(p, s, id)
				if err := <-got; err == nil || !strings.Contains(err.Error(), tt.words) {
					t.Errorf("error %v, want one with %q", err, tt.words)
				}
				if _, err := io.WriteString(s, "more"); err == nil {
					t.Error("a later Write does not fail")
				}
			})
		})
	}
}

// The write timeout bounds a wait for the window. Only the stream is lost.
func TestWriteTimeout(t *testing.T) {
	for name, send := range map[string]func(s *http2.Stream) error{
		"in Write": func(s *http2.Stream) error { _, err := io.WriteString(s, large); return err },
		"in FinishRequest": func(s *http2.Stream) error {
			if _, err := io.WriteString(s, strings.Repeat("x", 65535+100)); err != nil {
				return err
			}
			return s.FinishRequest(nil)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.post(-1)
			spent := stopwatch()
			if err := send(s); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("error %v, want os.ErrDeadlineExceeded", err)
			}
			if d := spent(); d != terms.WriteTimeout {
				t.Errorf("after %v, want %v", d, terms.WriteTimeout)
			}
			if code := p.reset(id); code != xhttp2.ErrCodeCancel {
				t.Errorf("reset with %v, want CANCEL", code)
			}
			s.End()
			p.grant(0, 1<<20)
			p.works()
		})
	}
}

// A slow server is no dead one: each wait is bounded anew.
func TestSlowWindowsAreNoTimeout(t *testing.T) {
	bubble(t, "slow", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		s, id := p.post(int64(len(large)))
		go func() {
			for n := 65535; n < len(large); n += 65535 {
				<-after(terms.WriteTimeout * 9 / 10)
				p.grant(0, 65535)
				p.grant(id, 65535)
			}
		}()
		if _, err := io.WriteString(s, large); err != nil {
			t.Fatal(err)
		}
		if err := s.FinishRequest(nil); err != nil {
			t.Fatal(err)
		}
	})
}

// An upload that is given up once the response is there leaves the response
// readable; the stream is reset when the exchange ends.
func TestAbortAfterResponse(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s, id := p.post(-1)
	p.respond(id, false, ":status", "200")
	resp := head(t, s)
	s.InterruptWrite()
	s.AbortRequest()
	if _, err := io.WriteString(s, "more"); err == nil {
		t.Error("a Write after AbortRequest does not fail")
	}
	p.data(id, true, "fine")
	if got, err := io.ReadAll(resp.Body); string(got) != "fine" || err != nil {
		t.Errorf("body %q, %v", got, err)
	}
	if len(p.frames) > 0 {
		t.Errorf("the client sent %+v while the response was read", p.next())
	}
	s.End()
	p.reset(id)
	p.works()
}

// Without a response the server is told at once.
func TestAbortBeforeResponse(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s, id := p.post(-1)
	s.AbortRequest()
	if code := p.reset(id); code != xhttp2.ErrCodeCancel {
		t.Errorf("reset with %v, want CANCEL", code)
	}
	if _, err := s.ReadResponseHeaders(nil); err == nil {
		t.Error("the response does not fail")
	}
}

// The body's end comes with the trailers that are known by then.
func TestRequestTrailers(t *testing.T) {
	p := newPeer(t, http2.Options{})
	req := request(t, "POST", "http://x.test/")
	req.Trailer = http.Header{"X-Sum": nil, "X-Gone": nil, "Content-Length": nil}
	s := open(t, p.client, terms, req, 2)
	if got := p.headers().fields["trailer"]; got != "X-Gone,X-Sum" {
		t.Errorf("declared %q", got)
	}
	io.WriteString(s, "hi")
	if err := s.FinishRequest(http.Header{"X-Sum": {"1"}, "Te": {"trailers"}}); err != nil {
		t.Fatal(err)
	}
	for f := p.next(); ; f = p.next() {
		if f.typ == xhttp2.FrameHeaders {
			if len(f.fields) != 1 || f.fields["x-sum"] != "1" || !f.end {
				t.Errorf("trailers %+v", f)
			}
			break
		}
		if f.end {
			t.Fatal("DATA ended the stream")
		}
	}
}
