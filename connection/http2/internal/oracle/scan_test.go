package oracle_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/catena-http/catena/connection/http2/internal/oracle"
	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"
)

// parsed is what a plain reading of RFC 9113 4.1 makes of b.
func parsed(b []byte) (frames []oracle.PassedFrame, aligned bool) {
	for len(b) >= 9 {
		f := oracle.PassedFrame{
			Length: uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
			Type:   b[3], Flags: b[4],
			Stream: binary.BigEndian.Uint32(b[5:]) & 0x7fffffff,
		}
		if len(b)-9 < int(f.Length) {
			return frames, false
		}
		payload := b[9 : 9+f.Length]
		if t := xhttp2.FrameType(f.Type); t == xhttp2.FrameSettings || t == xhttp2.FrameGoAway {
			f.Payload = string(payload[:min(len(payload), oracle.KeptBytes)])
		}
		frames, b = append(frames, f), b[9+f.Length:]
	}
	return frames, len(b) == 0
}

// cut cuts b into pieces of n bytes and leaves empty ones in between.
func cut(b []byte, n int) (pieces [][]byte) {
	for n > 0 && len(b) > n {
		pieces, b = append(pieces, b[:n], nil), b[n:]
	}
	return append(pieces, b)
}

func sample() []byte {
	var b bytes.Buffer
	fr := xhttp2.NewFramer(&b, nil)
	fr.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingMaxConcurrentStreams, Val: 7}, xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 1})
	fr.WriteSettings()
	fr.WriteSettingsAck()
	fr.WriteData(1, false, bytes.Repeat([]byte("x"), 300))
	fr.WriteData(3, true, nil)
	fr.WriteGoAway(5, xhttp2.ErrCodeEnhanceYourCalm, bytes.Repeat([]byte("y"), 2000))
	fr.WriteRSTStream(1, xhttp2.ErrCodeCancel)
	return b.Bytes()
}

// The scanner sees the same frames wherever the bytes are cut.
func TestScannerAtEveryCut(t *testing.T) {
	b := sample()
	want, _ := parsed(b)
	if len(want) != 7 {
		t.Fatalf("%d frames in the sample", len(want))
	}
	for n := range 40 {
		got, aligned := oracle.Passed(cut(b, n))
		if diff := cmp.Diff(want, got); diff != "" || !aligned {
			t.Fatalf("in pieces of %d, aligned %t (-want +got):\n%s", n, aligned, diff)
		}
	}
	for n := range len(b) {
		want, aligned := parsed(b[:n])
		got, gotAligned := oracle.Passed(cut(b[:n], 5))
		if diff := cmp.Diff(want, got); diff != "" || aligned != gotAligned {
			t.Fatalf("%d bytes, aligned %t, want %t (-want +got):\n%s", n, gotAligned, aligned, diff)
		}
	}
}

func FuzzScanner(f *testing.F) {
	f.Add(sample(), 0)
	f.Add(sample(), 1)
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00"), 4)
	f.Add([]byte("\xff\xff\xff\x07\xff\xff\xff\xff\xff"), 9)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		want, aligned := parsed(b)
		got, gotAligned := oracle.Passed(cut(b, n))
		if diff := cmp.Diff(want, got); diff != "" || aligned != gotAligned {
			t.Errorf("aligned %t, want %t (-want +got):\n%s", gotAligned, aligned, diff)
		}
	})
}

// The limit in a SETTINGS payload is the one that x/net reads, the last counts.
func FuzzMaxStreams(f *testing.F) {
	f.Add([]byte{0, 3, 0, 0, 0, 7})
	f.Add([]byte{0, 4, 0, 0, 0, 7, 0, 3, 0, 0, 0, 1, 0, 3, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 3, 0})
	f.Fuzz(func(t *testing.T, payload []byte) {
		payload = payload[:min(len(payload)-len(payload)%6, oracle.KeptBytes/6*6)]
		head := []byte{0, byte(len(payload) >> 8), byte(len(payload)), byte(xhttp2.FrameSettings), 0, 0, 0, 0, 0}
		fr := xhttp2.NewFramer(io.Discard, bytes.NewReader(append(head, payload...)))
		parsed, err := fr.ReadFrame()
		if err != nil {
			return
		}
		var want uint32
		var named bool
		parsed.(*xhttp2.SettingsFrame).ForeachSetting(func(s xhttp2.Setting) error {
			if s.ID == xhttp2.SettingMaxConcurrentStreams {
				want, named = s.Val, true
			}
			return nil
		})
		if got, ok := oracle.MaxStreams(payload); got != want || ok != named {
			t.Errorf("got %d, %t; want %d, %t", got, ok, want, named)
		}
	})
}
