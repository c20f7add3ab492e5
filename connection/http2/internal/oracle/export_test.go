package oracle

// A PassedFrame is a frame as the scanner reported it.
type PassedFrame struct {
	Type, Flags    uint8
	Stream, Length uint32
	Payload        string
}

// Passed scans pieces, one after the other, and returns the complete frames.
func Passed(pieces [][]byte) (frames []PassedFrame, aligned bool) {
	var s scanner
	for _, p := range pieces {
		s.scan(p, nil, func(f frame) {
			frames = append(frames, PassedFrame{uint8(f.typ), uint8(f.flags), f.stream, f.length, string(f.payload)})
		})
	}
	return frames, s.aligned()
}

// KeptBytes is how much of a payload the scanner keeps.
const KeptBytes = maxKept

// MaxStreams is maxStreams.
var MaxStreams = maxStreams
