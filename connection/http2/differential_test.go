package http2_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/connection/http2/internal/oracle"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// An outcome is what a caller sees of an exchange.
type outcome struct {
	Interim         []int
	Status          int
	Length          int64
	Header, Trailer http.Header
	Body            string
	HeadErr         string // kind; "": none
	BodyErr         string
}

// An implementation opens a stream on nc.
type implementation func(nc net.Conn) (s codec, end func(), err error)

func openMux(nc net.Conn) (codec, func(), error) {
	c, err := http2.NewConn(nc, http2.Options{})
	if err != nil {
		return nil, nil, err
	}
	c.Reserve()
	return c.NewStream(terms), func() { c.Close() }, nil
}

func openOracle(nc net.Conn) (codec, func(), error) {
	c, err := oracle.NewConn(nc, oracle.Options{})
	if err != nil {
		return nil, nil, err
	}
	c.Reserve()
	return c.NewStream(terms), func() { c.Close() }, nil
}

// play runs a GET against a server that answers with script, whatever it is, and
// closes when the client is done or, where it waits for more, after grace.
func play(t *testing.T, open implementation, script []byte, grace time.Duration) (got outcome) {
	t.Helper()
	ours, theirs := net.Pipe()
	opened, done := make(chan struct{}), make(chan struct{})
	read, wrote := make(chan struct{}), make(chan struct{})
	go func() { // ends with the connection
		defer close(read)
		io.CopyN(io.Discard, theirs, int64(len(xhttp2.ClientPreface)))
		fr := xhttp2.NewFramer(nil, theirs)
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				return
			}
			if f.Header().Type == xhttp2.FrameHeaders {
				close(opened)
				io.Copy(io.Discard, theirs)
				return
			}
		}
	}()
	go func() { // ends with the script, or with the connection
		defer close(wrote)
		theirs.Write(frame(xhttp2.FrameSettings, 0, 0, ""))
		select {
		case <-opened:
			theirs.Write(script)
			select {
			case <-done:
			case <-read:
			case <-time.After(grace): // it waits for more
			}
		case <-read:
		}
		theirs.Close()
	}()
	s, end, err := open(ours)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { close(done); s.End(); end(); <-read; <-wrote }()
	req := request(t, "GET", "http://x.test/")
	if err := s.WriteRequestHeaders(req, 0); err != nil {
		got.HeadErr = kind(err)
		return got
	}
	s.FinishRequest(nil)
	for {
		resp, err := s.ReadResponseHeaders(nil)
		if err != nil {
			got.HeadErr = kind(err)
			return got
		}
		if resp.StatusCode < 200 {
			got.Interim = append(got.Interim, resp.StatusCode)
			continue
		}
		got.Status, got.Header, got.Length = resp.StatusCode, resp.Header, resp.ContentLength
		body, err := io.ReadAll(resp.Body)
		got.Body, got.Trailer = string(body), resp.Trailer
		if err != nil {
			got.BodyErr = kind(err)
		}
		return got
	}
}

// hblock encodes fields without the dynamic table: name, value ...
func hblock(fields ...string) string {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	enc.SetMaxDynamicTableSize(0)
	b.Reset()
	for i := 0; i < len(fields); i += 2 {
		enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return b.String()
}

func scriptOf(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

// headFrame is a HEADERS frame on stream 1.
func headFrame(flags xhttp2.Flags, fields ...string) []byte {
	return frame(xhttp2.FrameHeaders, flags|endHeaders, 1, hblock(fields...))
}

func dataOf(flags xhttp2.Flags, payload string) []byte {
	return frame(xhttp2.FrameData, flags, 1, payload)
}

func word(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// atTimes stands for an error that the oracle names in one of two ways.
const atTimes = "*"

// scripts are what servers answer a GET with. A text says in which way, and why,
// our outcome differs from the oracle's; it is empty where they are the same.
var scripts = map[string]struct {
	script    []byte
	different string
}{
	"200":               {scriptOf(headFrame(0, ":status", "200"), dataOf(endStream, "fine")), ""},
	"200, one frame":    {scriptOf(headFrame(endStream, ":status", "200")), ""},
	"200, in pieces":    {scriptOf(headFrame(0, ":status", "200"), dataOf(0, "fi"), dataOf(0, ""), dataOf(0, "ne"), dataOf(endStream, "")), ""},
	"length":            {scriptOf(headFrame(0, ":status", "200", "content-length", "4"), dataOf(endStream, "fine")), ""},
	"length, short":     {scriptOf(headFrame(0, ":status", "200", "content-length", "5"), dataOf(endStream, "fine")), ""},
	"length, long":      {scriptOf(headFrame(0, ":status", "200", "content-length", "2"), dataOf(0, "fi"), dataOf(endStream, "ne")), atTimes},
	"length of nothing": {scriptOf(headFrame(endStream, ":status", "200", "content-length", "5")), ""},
	"lengths, equal":    {scriptOf(headFrame(0, ":status", "200", "content-length", "4", "content-length", "4"), dataOf(endStream, "fine")), ""},
	"lengths, unequal":  {scriptOf(headFrame(0, ":status", "200", "content-length", "4", "content-length", "5"), dataOf(endStream, "fine")), "the oracle ignores several lengths, to us they are malformed"},
	"length, not one":   {scriptOf(headFrame(0, ":status", "200", "content-length", "four"), dataOf(endStream, "fine")), "the oracle ignores it, to us it is malformed"},
	"trailers":          {scriptOf(headFrame(0, ":status", "200", "trailer", "x-t, x-u"), dataOf(0, "fine"), headFrame(endStream, "x-t", "1", "x-s", "2")), ""},
	"trailers, no end":  {scriptOf(headFrame(0, ":status", "200"), dataOf(0, "fine"), headFrame(0, "x-t", "1")), ""},
	"trailers, pseudo":  {scriptOf(headFrame(0, ":status", "200"), dataOf(0, "fine"), headFrame(endStream, ":status", "200")), ""},
	"interim":           {scriptOf(headFrame(0, ":status", "100"), headFrame(0, ":status", "103", "link", "</a>"), headFrame(0, ":status", "200"), dataOf(endStream, "fine")), ""},
	"interim, end":      {scriptOf(headFrame(endStream, ":status", "103")), ""},
	"101":               {scriptOf(headFrame(0, ":status", "101")), ""},
	"204":               {scriptOf(headFrame(endStream, ":status", "204")), ""},
	"204, content":      {scriptOf(headFrame(0, ":status", "204"), dataOf(endStream, "fine")), ""},
	"204, length":       {scriptOf(headFrame(endStream, ":status", "204", "content-length", "4")), ""},
	"304":               {scriptOf(headFrame(0, ":status", "304", "content-length", "4"), dataOf(endStream, "")), ""},
	"padding":           {scriptOf(headFrame(0, ":status", "200"), dataOf(xhttp2.FlagDataPadded|endStream, "\x03fine\x00\x00\x00")), ""},
	"priority":          {scriptOf(frame(xhttp2.FrameHeaders, endHeaders|xhttp2.FlagHeadersPriority, 1, "12345"+hblock(":status", "200")), dataOf(endStream, "fine")), ""},
	"continuation":      {scriptOf(frame(xhttp2.FrameHeaders, 0, 1, hblock(":status", "200")[:1]), frame(xhttp2.FrameContinuation, 0, 1, ""), frame(xhttp2.FrameContinuation, endHeaders, 1, hblock("x-a", "1")), dataOf(endStream, "fine")), ""},
	"repeated fields":   {scriptOf(headFrame(0, ":status", "200", "x-a", "1", "x-b", "2", "x-a", "3"), dataOf(endStream, "fine")), ""},
	"hop-by-hop fields": {scriptOf(headFrame(0, ":status", "200", "connection", "close", "transfer-encoding", "chunked"), dataOf(endStream, "fine")), ""},
	"no status":         {scriptOf(headFrame(endStream, "x-a", "1")), ""},
	"status, 4 digits":  {scriptOf(headFrame(endStream, ":status", "2000")), ""},
	"upper case":        {scriptOf(headFrame(endStream, ":status", "200", "X-A", "1")), ""},
	"bad value":         {scriptOf(headFrame(endStream, ":status", "200", "x-a", "1\n2")), ""},
	"refused":           {scriptOf(frame(xhttp2.FrameRSTStream, 0, 1, word(7))), ""},
	"reset":             {scriptOf(frame(xhttp2.FrameRSTStream, 0, 1, word(2))), ""},
	"reset, in body":    {scriptOf(headFrame(0, ":status", "200"), dataOf(0, "fine"), frame(xhttp2.FrameRSTStream, 0, 1, word(2))), ""},
	"reset, after end":  {scriptOf(headFrame(0, ":status", "200"), dataOf(endStream, "fine"), frame(xhttp2.FrameRSTStream, 0, 1, word(0))), ""},
	"close":             {nil, ""},
	"close, in body":    {scriptOf(headFrame(0, ":status", "200"), dataOf(0, "fine")), ""},
	"close, in frame":   {scriptOf(headFrame(0, ":status", "200"), append(dataOf(0, strings.Repeat("x", 100))[:9], "fine"...)), "we hand out a frame's content as it comes, the oracle whole frames"},
	"goaway":            {scriptOf(frame(xhttp2.FrameGoAway, 0, 0, word(0)+word(0))), ""},
	"goaway, above":     {scriptOf(frame(xhttp2.FrameGoAway, 0, 0, word(1)+word(0)), headFrame(0, ":status", "200"), dataOf(endStream, "fine")), ""},
	"settings":          {scriptOf(frame(xhttp2.FrameSettings, 0, 0, setting(4, 100)), headFrame(0, ":status", "200"), dataOf(endStream, "fine")), ""},
	"push":              {scriptOf(frame(xhttp2.FramePushPromise, endHeaders, 1, word(2)+hblock(":method", "GET"))), ""},
	"unknown frames":    {scriptOf(frame(0xfe, 0xff, 1, "?"), headFrame(0, ":status", "200"), frame(0xfe, 0xff, 1, "?"), dataOf(endStream, "fine")), ""},
	"data before head":  {scriptOf(dataOf(0, "early"), headFrame(0, ":status", "200"), dataOf(endStream, "fine")), ""},
	"garbage":           {[]byte("garbage, garbage, garbage"), ""},
	"stream 3":          {scriptOf(frame(xhttp2.FrameHeaders, endHeaders, 3, hblock(":status", "200"))), "the oracle passes it over, to us it is a breach (RFC 9113 5.1)"},
}

// What a caller sees is what it sees with x/net's client, but for differences
// that are meant.
func TestDifferential(t *testing.T) {
	for name, tt := range scripts {
		t.Run(name, func(t *testing.T) {
			want, got := play(t, openOracle, tt.script, 100*time.Millisecond), play(t, openMux, tt.script, 100*time.Millisecond)
			diff := cmp.Diff(want, got, cmpopts.EquateEmpty())
			if tt.different == "" && diff != "" {
				t.Errorf("(-oracle +ours):\n%s", diff)
			}
			if tt.different != "" && tt.different != atTimes && diff == "" {
				t.Errorf("there is no such difference: %s", tt.different)
			}
		})
	}
}

// FuzzFrames plays anything as a server's answer. The exchange ends, and where
// the oracle and we both see a whole response, it is the same one.
func FuzzFrames(f *testing.F) {
	for _, s := range scripts {
		f.Add(s.script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 64<<10 {
			return
		}
		got := play(t, openMux, script, time.Millisecond)
		want := play(t, openOracle, script, time.Millisecond)
		if got.HeadErr+got.BodyErr+want.HeadErr+want.BodyErr != "" {
			return
		}
		for _, h := range []http.Header{want.Header, want.Trailer} {
			for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
				delete(h, name)
			}
		}
		if lengths := want.Header["Content-Length"]; len(lengths) > 1 {
			want.Length = got.Length
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-oracle +ours):\n%s", diff)
		}
	})
}
