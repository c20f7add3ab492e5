package oracle

import (
	"encoding/binary"
	"fmt"

	xhttp2 "golang.org/x/net/http2"
)

const (
	frameHeaderLen = 9
	// maxFrameLen is the largest payload the server may send: we never raise
	// SETTINGS_MAX_FRAME_SIZE.
	maxFrameLen = 16 << 10
	// maxKept bounds the part of a payload that is kept for a look: all of any
	// sane SETTINGS and enough of a GOAWAY's debug data.
	maxKept = 1 << 10
)

// A frame is one frame as the scanner saw it pass.
type frame struct {
	typ    xhttp2.FrameType
	flags  xhttp2.Flags
	stream uint32
	length uint32
	// payload is its beginning, for the types the scanner keeps. It is valid
	// during the call only.
	payload []byte
}

// scanner follows the frames in a stream of bytes that somebody else parses.
// It holds no more than one frame header and maxKept bytes.
type scanner struct {
	// skip is the rest of the payload, or of the preface, that is passing by.
	skip uint32
	head [frameHeaderLen]byte
	have int // bytes of head
	cur  frame
	kept []byte
}

// aligned reports whether the last byte seen ended a frame.
func (s *scanner) aligned() bool { return s.skip == 0 && s.have == 0 }

// scan follows p. begun (which may be nil) sees each frame's header and may
// refuse it, done each complete frame. At a refusal, scan returns how many
// bytes of p come before the refused header, and the reason.
func (s *scanner) scan(p []byte, begun func(frame) error, done func(frame)) (int, error) {
	for i := 0; i < len(p); {
		if s.skip > 0 {
			n := min(int(s.skip), len(p)-i)
			s.keep(p[i : i+n])
			s.skip -= uint32(n)
			i += n
			if s.skip == 0 {
				s.finish(done)
			}
			continue
		}
		start := i
		n := copy(s.head[s.have:], p[i:])
		s.have += n
		i += n
		if s.have < frameHeaderLen {
			break
		}
		s.begin()
		if begun != nil {
			if err := begun(s.cur); err != nil {
				return start, err
			}
		}
		if s.skip == 0 {
			s.finish(done)
		}
	}
	return len(p), nil
}

// begin takes the header in head apart (RFC 9113 4.1).
func (s *scanner) begin() {
	h := s.head[:]
	s.cur = frame{
		length: uint32(h[0])<<16 | uint32(h[1])<<8 | uint32(h[2]),
		typ:    xhttp2.FrameType(h[3]),
		flags:  xhttp2.Flags(h[4]),
		stream: binary.BigEndian.Uint32(h[5:]) &^ (1 << 31),
	}
	s.skip, s.have = s.cur.length, 0
}

func (s *scanner) keep(p []byte) {
	switch s.cur.typ {
	case xhttp2.FrameSettings, xhttp2.FrameGoAway:
		s.kept = append(s.kept, p[:min(len(p), maxKept-len(s.kept))]...)
	}
}

func (s *scanner) finish(done func(frame)) {
	s.cur.payload = s.kept
	if done != nil {
		done(s.cur)
	}
	// A frame that is over leaves nothing behind: an idle connection is cheap.
	s.cur, s.kept = frame{}, nil
}

// A goAway is what the server's GOAWAY frames said, taken together.
type goAway struct {
	last  uint32 // the lowest Last-Stream-ID
	code  xhttp2.ErrCode
	debug string // at most 64 bytes
}

// parseGoAway reads a GOAWAY's payload (RFC 9113 6.8). A short one is left to
// the engine, which ends the connection over it.
func parseGoAway(p []byte) (goAway, bool) {
	if len(p) < 8 {
		return goAway{}, false
	}
	return goAway{
		last:  binary.BigEndian.Uint32(p) &^ (1 << 31),
		code:  xhttp2.ErrCode(binary.BigEndian.Uint32(p[4:])),
		debug: string(p[8:min(len(p), 8+64)]),
	}, true
}

func (g goAway) String() string {
	if g.debug == "" {
		return fmt.Sprintf("GOAWAY %v", g.code)
	}
	return fmt.Sprintf("GOAWAY %v %q", g.code, g.debug)
}

// maxStreams finds the last SETTINGS_MAX_CONCURRENT_STREAMS in a SETTINGS
// payload (RFC 9113 6.5.2).
func maxStreams(p []byte) (n uint32, ok bool) {
	for ; len(p) >= 6; p = p[6:] {
		if xhttp2.SettingID(binary.BigEndian.Uint16(p)) == xhttp2.SettingMaxConcurrentStreams {
			n, ok = binary.BigEndian.Uint32(p[2:]), true
		}
	}
	return n, ok
}
