package http2_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/internal/wire"
	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"
)

// Every way in which an exchange fails before its final head, by the server's
// doing: the error's type, its words, and what becomes of the connection.
func TestFailureBeforeHead(t *testing.T) {
	type verdict struct {
		Kind     string // of the error
		Shutdown bool
		Lives    bool // the connection
		Written  bool
	}
	reset := verdict{Kind: "reset", Lives: true, Written: true}
	protocol := verdict{Kind: "protocol", Lives: true, Written: true}
	fatal := verdict{Kind: "protocol", Written: true}
	tests := map[string]struct {
		do    func(p *peer, id uint32)
		want  verdict
		words string
	}{
		"refused": {func(p *peer, id uint32) { p.rst(id, xhttp2.ErrCodeRefusedStream) },
			verdict{Kind: "unprocessed", Lives: true, Written: true}, "stream was reset: REFUSED_STREAM"},
		"reset, internal": {func(p *peer, id uint32) { p.rst(id, xhttp2.ErrCodeInternal) }, reset, "INTERNAL_ERROR"},
		"reset, cancel":   {func(p *peer, id uint32) { p.rst(id, xhttp2.ErrCodeCancel) }, reset, "CANCEL"},
		"reset, no error": {func(p *peer, id uint32) { p.rst(id, xhttp2.ErrCodeNo) }, reset, "NO_ERROR"},
		"reset, unknown":  {func(p *peer, id uint32) { p.rst(id, 0x99) }, reset, "0x99"},
		"reset, blaming us": {func(p *peer, id uint32) { p.rst(id, xhttp2.ErrCodeProtocol) },
			verdict{Kind: "reset", Written: true}, "PROTOCOL_ERROR"},
		"goaway below": {func(p *peer, id uint32) { p.goAway(0, xhttp2.ErrCodeNo, "") },
			verdict{Kind: "unprocessed", Shutdown: true, Written: true}, "did not process the request: it sent GOAWAY NO_ERROR"},
		"goaway below, with a code": {func(p *peer, id uint32) { p.goAway(0, xhttp2.ErrCodeEnhanceYourCalm, "too many pings") },
			verdict{Kind: "unprocessed", Shutdown: true, Written: true}, `GOAWAY ENHANCE_YOUR_CALM "too many pings"`},
		"goaway below, then above": {func(p *peer, id uint32) { p.goAway(0, xhttp2.ErrCodeNo, ""); p.goAway(9, xhttp2.ErrCodeNo, "") },
			verdict{Kind: "unprocessed", Shutdown: true, Written: true}, "did not process"},
		"goaway above, then close": {func(p *peer, id uint32) { p.goAway(id, xhttp2.ErrCodeInternal, "oops"); p.nc.Close() },
			verdict{Kind: "unexpected EOF", Written: true}, `closed the connection after GOAWAY INTERNAL_ERROR "oops"`},
		"close": {func(p *peer, id uint32) { p.nc.Close() },
			verdict{Kind: "unexpected EOF", Written: true}, "the server closed the connection"},
		"no status":        {func(p *peer, id uint32) { p.respond(id, true, "x-a", "1") }, protocol, "status"},
		"odd status":       {func(p *peer, id uint32) { p.respond(id, true, ":status", "+200") }, protocol, `:status "+200`},
		"long status":      {func(p *peer, id uint32) { p.respond(id, true, ":status", "2000") }, protocol, `:status "2000`},
		"wordy status":     {func(p *peer, id uint32) { p.respond(id, true, ":status", "fine") }, protocol, "status"},
		"low status":       {func(p *peer, id uint32) { p.respond(id, true, ":status", "099") }, protocol, `:status "099`},
		"switching":        {func(p *peer, id uint32) { p.respond(id, false, ":status", "101") }, protocol, "101"},
		"interim at end":   {func(p *peer, id uint32) { p.respond(id, true, ":status", "103") }, protocol, "END_STREAM"},
		"value with LF":    {func(p *peer, id uint32) { p.respond(id, true, ":status", "200", "x-a", "a\nb") }, protocol, "x-a"},
		"upper case":       {func(p *peer, id uint32) { p.respond(id, true, ":status", "200", "X-A", "1") }, protocol, "X-A"},
		"unknown pseudo":   {func(p *peer, id uint32) { p.respond(id, true, ":status", "200", ":x", "1") }, protocol, ":x"},
		"data before head": {func(p *peer, id uint32) { p.data(id, false, "early") }, protocol, "PROTOCOL_ERROR"},
		"204 with length":  {func(p *peer, id uint32) { p.respond(id, true, ":status", "204", "content-length", "5") }, protocol, "204"},
		"204 with content": {func(p *peer, id uint32) { p.respond(id, false, ":status", "204"); p.data(id, true, "hello") }, protocol, "204"},
		"304 with content": {func(p *peer, id uint32) { p.respond(id, false, ":status", "304"); p.data(id, true, "hello") }, protocol, "304"},
		"push": {func(p *peer, id uint32) {
			p.write(func() error {
				return p.fr.WritePushPromise(xhttp2.PushPromiseParam{StreamID: id, PromiseID: 2, BlockFragment: p.block(":method", "GET"), EndHeaders: true})
			})
		}, fatal, "PROTOCOL_ERROR"},
		"long frame":      {func(p *peer, id uint32) { p.raw([]byte{1, 0, 0, 0, 0, 0, 0, 0, byte(id)}) }, fatal, "65536 bytes"},
		"zero update":     {func(p *peer, id uint32) { p.raw([]byte{0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0}) }, fatal, "PROTOCOL_ERROR"},
		"window overflow": {func(p *peer, id uint32) { p.grant(0, 1<<31-1) }, fatal, "FLOW_CONTROL_ERROR"},
		"broken hpack":    {func(p *peer, id uint32) { p.raw([]byte{0, 0, 1, 1, 4, 0, 0, 0, byte(id), 0xff}) }, fatal, "COMPRESSION_ERROR"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.get()
			var err error
			within(t, func() {
				go tt.do(p, id)
				_, err = s.ReadResponseHeaders(nil)
			})
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tt.words) {
				t.Errorf("error %q does not say %q", err, tt.words)
			}
			got := verdict{Kind: kind(err), Written: s.Written(), Lives: p.client.Healthy()}
			if u := (*wire.UnprocessedError)(nil); errors.As(err, &u) {
				got.Shutdown = u.Shutdown
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if s.End(); got.Lives {
				for len(p.frames) > 0 {
					p.next()
				}
				if s := p.client; !s.Reserve() {
					t.Error("the slot is gone")
				}
			}
		})
	}
}

func kind(err error) string {
	var (
		unprocessed *wire.UnprocessedError
		reset       *wire.StreamResetError
		protocol    *wire.ProtocolError
		body        *wire.RequestBodyError
	)
	switch {
	case errors.As(err, &unprocessed):
		return "unprocessed"
	case errors.As(err, &reset):
		return "reset"
	case errors.As(err, &protocol):
		return "protocol"
	case errors.As(err, &body):
		return "request body"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "unexpected EOF"
	}
	return "other"
}

// Failures after the head: what came before is delivered, then the
// error, again and again.
func TestFailureInBody(t *testing.T) {
	tests := map[string]struct {
		length string // content-length; "": none
		do     func(p *peer, id uint32)
		body   string
		want   string // kind, "": a good end
		words  string
	}{
		"reset":       {"", func(p *peer, id uint32) { p.data(id, false, "data"); p.rst(id, xhttp2.ErrCodeInternal) }, "data", "reset", "INTERNAL_ERROR"},
		"refused":     {"", func(p *peer, id uint32) { p.data(id, false, "data"); p.rst(id, xhttp2.ErrCodeRefusedStream) }, "data", "reset", "REFUSED_STREAM"},
		"close":       {"", func(p *peer, id uint32) { p.data(id, false, "data"); p.nc.Close() }, "data", "unexpected EOF", "closed the connection"},
		"short":       {"10", func(p *peer, id uint32) { p.data(id, true, "data") }, "data", "protocol", "6 bytes short"},
		"none":        {"10", func(p *peer, id uint32) { p.data(id, true, "") }, "", "protocol", "10 bytes short"},
		"long":        {"4", func(p *peer, id uint32) { p.data(id, false, "data"); p.data(id, true, "more") }, "data", "protocol", "longer than its content-length"},
		"exact":       {"4", func(p *peer, id uint32) { p.data(id, false, "data"); p.data(id, true, "") }, "data", "", ""},
		"after end":   {"", func(p *peer, id uint32) { p.data(id, true, "data"); p.rst(id, xhttp2.ErrCodeNo) }, "data", "", ""},
		"two heads":   {"", func(p *peer, id uint32) { p.respond(id, false, "x-t", "1") }, "", "protocol", "PROTOCOL_ERROR"},
		"pseudo":      {"", func(p *peer, id uint32) { p.respond(id, true, ":status", "200") }, "", "protocol", "PROTOCOL_ERROR"},
		"fat trailer": {"", func(p *peer, id uint32) { p.respond(id, true, "x-t", strings.Repeat("x", 2000)) }, "", "protocol", "trailer section of 2003 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			x := terms
			x.MaxHeaderBytes = 1000
			s := open(t, p.client, x, request(t, "GET", "http://x.test/"), 0)
			id := p.headers().stream
			fields := []string{":status", "200"}
			if tt.length != "" {
				fields = append(fields, "content-length", tt.length)
			}
			p.respond(id, false, fields...)
			resp := head(t, s)
			go tt.do(p, id)
			var got []byte
			var err error
			within(t, func() { got, err = io.ReadAll(resp.Body) })
			if string(got) != tt.body {
				t.Errorf("body %q, want %q", got, tt.body)
			}
			if tt.want == "" {
				if err != nil {
					t.Errorf("error %v", err)
				}
				return
			}
			if err == nil || kind(err) != tt.want || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("error %v, want kind %q with %q", err, tt.want, tt.words)
			}
			if _, again := resp.Body.Read(make([]byte, 1)); again == nil || again.Error() != err.Error() {
				t.Errorf("second error %v, want %v", again, err)
			}
		})
	}
}

// Responses that have no content, however their end comes.
func TestNoContent(t *testing.T) {
	tests := map[string]struct {
		method string
		end    bool // with the head
		fields []string
		length int64
	}{
		"204":                      {"GET", true, []string{":status", "204"}, 0},
		"204, end later":           {"GET", false, []string{":status", "204"}, -1},
		"304 with length":          {"GET", true, []string{":status", "304", "content-length", "9"}, 9},
		"304 with length, later":   {"GET", false, []string{":status", "304", "content-length", "9"}, 9},
		"head":                     {"HEAD", true, []string{":status", "200", "content-length", "9"}, 9},
		"head, later":              {"HEAD", false, []string{":status", "200", "content-length", "9"}, 9},
		"200 without content":      {"GET", true, []string{":status", "200"}, 0},
		"200 of 0 bytes, later":    {"GET", false, []string{":status", "200", "content-length", "0"}, 0},
		"205":                      {"GET", true, []string{":status", "205"}, 0},
		"equal lengths are one":    {"GET", false, []string{":status", "200", "content-length", "0", "content-length", "0"}, 0},
		"connection fields are no": {"GET", true, []string{":status", "200", "connection", "close", "keep-alive", "1"}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s := open(t, p.client, terms, request(t, tt.method, "http://x.test/"), 0)
			id := p.headers().stream
			p.respond(id, tt.end, tt.fields...)
			if !tt.end {
				p.data(id, true, "")
			}
			resp := head(t, s)
			if resp.Body != http.NoBody || resp.ContentLength != tt.length {
				t.Errorf("body %T of %d bytes, want http.NoBody and %d", resp.Body, resp.ContentLength, tt.length)
			}
			if resp.Header.Get("Connection") != "" {
				t.Error("a connection field came through")
			}
			s.End()
			p.works()
			if len(p.frames) > 0 {
				t.Errorf("the client sent %+v", p.next())
			}
		})
	}
}

// An end of the stream where content was announced.
func TestMissingContent(t *testing.T) {
	p := newPeer(t, http2.Options{})
	s, id := p.get()
	p.respond(id, true, ":status", "200", "content-length", "9")
	resp := head(t, s)
	_, err := io.ReadAll(resp.Body)
	if kind(err) != "protocol" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want a ProtocolError over io.ErrUnexpectedEOF", err)
	}
}
