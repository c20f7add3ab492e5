package catena_test

import (
	"testing"

	"golang.org/x/net/http2"

	"github.com/catena-http/catena"
)

// inFrames is a fault of an HTTP/2 server, when the request was read to its end.
func inFrames(name string, frames func(f *framedConn, id uint32)) fault {
	return fault{name: name, frames: frames, whole: true}
}

// stay reads on and says nothing more.
func (f *framedConn) stay() { f.nextRequest() }

var framedFaults = []fault{
	inFrames("closes", func(f *framedConn, id uint32) {}),
	inFrames("resets", func(f *framedConn, id uint32) { f.reset() }),
	inFrames("stalls", func(f *framedConn, id uint32) { f.stay() }),
	inFrames("GOAWAY that spares the stream, closes", func(f *framedConn, id uint32) { f.WriteGoAway(id-1, http2.ErrCodeNo, nil) }),
	inFrames("GOAWAY that covers the stream, closes", func(f *framedConn, id uint32) { f.WriteGoAway(id, http2.ErrCodeNo, nil) }),
	inFrames("GOAWAY with an error, closes", func(f *framedConn, id uint32) { f.WriteGoAway(id, http2.ErrCodeEnhanceYourCalm, []byte("slow")) }),
	inFrames("RST_STREAM with CANCEL", func(f *framedConn, id uint32) { f.WriteRSTStream(id, http2.ErrCodeCancel); f.stay() }),
	inFrames("RST_STREAM with PROTOCOL_ERROR", func(f *framedConn, id uint32) { f.WriteRSTStream(id, http2.ErrCodeProtocol); f.stay() }),
	inFrames("RST_STREAM with NO_ERROR", func(f *framedConn, id uint32) { f.WriteRSTStream(id, http2.ErrCodeNo); f.stay() }),
	inFrames("RST_STREAM with HTTP_1_1_REQUIRED", func(f *framedConn, id uint32) { f.WriteRSTStream(id, http2.ErrCodeHTTP11Required); f.stay() }),
	inFrames("garbage", func(f *framedConn, id uint32) { f.send("garbage that is no frame at all"); f.stay() }),
	inFrames("HTTP/1.1 response", func(f *framedConn, id uint32) { f.send(rawAnswer("200 OK", "ok")); f.stay() }),
	inFrames("a frame cut off", func(f *framedConn, id uint32) { f.send("\x00\x00\x10\x01") }),
	inFrames("an oversize frame", func(f *framedConn, id uint32) { f.send("\xff\xff\xff\x00\x00\x00\x00\x00\x01"); f.stay() }),
	inFrames("DATA before HEADERS", func(f *framedConn, id uint32) { f.WriteData(id, true, []byte("x")); f.stay() }),
	inFrames("DATA on no stream", func(f *framedConn, id uint32) { f.send("\x00\x00\x01\x00\x00\x00\x00\x00\x00x"); f.stay() }),
	inFrames("HEADERS without :status", func(f *framedConn, id uint32) {
		f.encoded.Reset()
		f.field("x", "y")
		f.writeHead(id, true)
		f.stay()
	}),
	inFrames("CONTINUATION that never comes", func(f *framedConn, id uint32) {
		f.encoded.Reset()
		f.field(":status", "200")
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.encoded.Bytes()})
		f.stay()
	}),
	inFrames("broken HPACK", func(f *framedConn, id uint32) {
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
		f.stay()
	}),
	inFrames("interim flood", func(f *framedConn, id uint32) {
		for range 200 {
			f.encoded.Reset()
			f.field(":status", "103")
			f.writeHead(id, false)
		}
		f.stay()
	}),
	inFrames("push", func(f *framedConn, id uint32) {
		f.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, EndHeaders: true})
		f.stay()
	}),

	inFrames("closes in the body", func(f *framedConn, id uint32) { f.headers(id); f.WriteData(id, false, []byte("some")) }),
	inFrames("resets in the body", func(f *framedConn, id uint32) { f.headers(id); f.WriteData(id, false, []byte("some")); f.reset() }),
	inFrames("stalls in the body", func(f *framedConn, id uint32) { f.headers(id); f.WriteData(id, false, []byte("some")); f.stay() }),
	inFrames("RST_STREAM in the body", func(f *framedConn, id uint32) {
		f.headers(id)
		f.WriteData(id, false, []byte("some"))
		f.WriteRSTStream(id, http2.ErrCodeInternal)
		f.stay()
	}),
	inFrames("GOAWAY in the body, then the rest", func(f *framedConn, id uint32) {
		f.headers(id)
		f.WriteData(id, false, []byte("some"))
		f.WriteGoAway(id, http2.ErrCodeNo, nil)
		f.WriteData(id, true, []byte(" more"))
		f.stay()
	}),
	inFrames("body shorter than declared", func(f *framedConn, id uint32) {
		f.encoded.Reset()
		f.field(":status", "200")
		f.field("content-length", "20")
		f.writeHead(id, false)
		f.WriteData(id, true, []byte("some"))
		f.stay()
	}),
	inFrames("body longer than declared", func(f *framedConn, id uint32) {
		f.encoded.Reset()
		f.field(":status", "200")
		f.field("content-length", "2")
		f.writeHead(id, false)
		f.WriteData(id, true, []byte("some"))
		f.stay()
	}),
	inFrames("answer, then RST_STREAM with NO_ERROR", func(f *framedConn, id uint32) {
		f.respond(id, "some")
		f.WriteRSTStream(id, http2.ErrCodeNo)
		f.stay()
	}),
}

func (f *framedConn) writeHead(id uint32, end bool) {
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.encoded.Bytes(), EndHeaders: true, EndStream: end})
}

// TestFaultsOfHTTP2 is TestFaults for HTTP/2, with testdata/faults-http2.txt.
func TestFaultsOfHTTP2(t *testing.T) {
	checkFaults(t, "testdata/faults-http2.txt", framedFaults, func(c *peerConn, f fault, reused bool) {
		conn := framed(c)
		if c.n > 1 {
			conn.rest()
			return
		}
		if reused {
			conn.respond(conn.nextRequest(), "good")
		}
		if id := conn.nextRequest(); id != 0 {
			f.frames(conn, id)
		}
	}, catena.WithProtocols("h2c"))
}
