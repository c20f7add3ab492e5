package http2

import (
	"encoding/binary"

	xhttp2 "golang.org/x/net/http2"
)

const (
	frameHeaderLen = 9
	// maxFrameLen is the largest payload the server may send: we never raise
	// SETTINGS_MAX_FRAME_SIZE.
	maxFrameLen = 16 << 10
	// maxWindow is the largest flow-control window there is (RFC 9113 6.9.1).
	maxWindow = 1<<31 - 1
	// defaultWindow is a window's size where nothing else was said.
	defaultWindow = 1<<16 - 1
)

// A frameHeader is the header of a frame (RFC 9113 4.1).
type frameHeader struct {
	length int
	typ    xhttp2.FrameType
	flags  xhttp2.Flags
	stream uint32
}

func parseFrameHeader(b []byte) frameHeader {
	return frameHeader{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]),
		typ:    xhttp2.FrameType(b[3]),
		flags:  xhttp2.Flags(b[4]),
		stream: binary.BigEndian.Uint32(b[5:]) &^ (1 << 31),
	}
}

// putFrameHeader writes a frame's header over the first bytes of b.
func putFrameHeader(b []byte, length int, typ xhttp2.FrameType, flags xhttp2.Flags, stream uint32) {
	_ = b[8]
	b[0], b[1], b[2] = byte(length>>16), byte(length>>8), byte(length)
	b[3], b[4] = byte(typ), byte(flags)
	binary.BigEndian.PutUint32(b[5:], stream)
}

func appendFrameHeader(b []byte, length int, typ xhttp2.FrameType, flags xhttp2.Flags, stream uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(typ), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

// appendWord appends a frame whose payload is one 32-bit number: RST_STREAM
// and WINDOW_UPDATE.
func appendWord(b []byte, typ xhttp2.FrameType, stream, word uint32) []byte {
	b = appendFrameHeader(b, 4, typ, 0, stream)
	return binary.BigEndian.AppendUint32(b, word)
}

func appendPing(b []byte, ack bool, data [8]byte) []byte {
	var flags xhttp2.Flags
	if ack {
		flags = xhttp2.FlagPingAck
	}
	b = appendFrameHeader(b, len(data), xhttp2.FramePing, flags, 0)
	return append(b, data[:]...)
}

func appendSettings(b []byte, settings ...xhttp2.Setting) []byte {
	b = appendFrameHeader(b, 6*len(settings), xhttp2.FrameSettings, 0, 0)
	for _, s := range settings {
		b = binary.BigEndian.AppendUint16(b, uint16(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Val)
	}
	return b
}

// appendGoAway appends a GOAWAY with Last-Stream-ID 0: a server opens no streams
// to us.
func appendGoAway(b []byte, code xhttp2.ErrCode) []byte {
	b = appendFrameHeader(b, 8, xhttp2.FrameGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(b, 0)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}
