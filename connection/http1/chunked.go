package http1

import (
	"bytes"
	"io"

	"github.com/catena-http/catena/internal/wire"
)

// maxChunkLine bounds a chunk's line, which may carry extensions of any length.
const maxChunkLine = 4 << 10

// chunkPhase is what comes next in a chunked body (RFC 9112 7.1).
type chunkPhase uint8

const (
	chunkSize    chunkPhase = iota // the line with the size
	chunkData                      // left bytes of content
	chunkEnd                       // the CRLF after the content
	chunkTrailer                   // the trailer section after the last chunk
)

// readChunks reads content into p from as many chunks as have arrived. It waits
// only for the first byte, so that content is never held back by what follows
// it, and takes the end along when it is there already.
func (b *body) readChunks(p []byte) (n int, err error) {
	c := b.c
	for {
		if b.phase == chunkData {
			if n == len(p) || n > 0 && c.in.buffered() == 0 {
				return n, nil
			}
			space := p[n:]
			m, err := c.readContent(space[:min(int64(len(space)), b.left)], -1)
			n += m
			b.left -= int64(m)
			if err != nil {
				return n, b.chunksCutOff(err, n)
			}
			if b.left == 0 {
				b.phase = chunkEnd
			}
			continue
		}
		if n > 0 && !b.phaseArrived() {
			return n, nil
		}
		end, err := b.nextPhase()
		if err != nil {
			return n, b.chunksCutOff(err, n)
		}
		if end {
			return n, io.EOF
		}
	}
}

func (b *body) chunksCutOff(err error, n int) error {
	return cutOff(err, "chunked response body after %d bytes of content", b.received+int64(n))
}

// phaseArrived reports whether what comes next is in the buffer as a whole.
func (b *body) phaseArrived() bool {
	data := b.c.in.data()
	switch b.phase {
	case chunkSize:
		return bytes.IndexByte(data, '\n') >= 0
	case chunkEnd:
		return len(data) >= 2
	default:
		return bytes.HasPrefix(data, []byte("\r\n")) || bytes.Contains(data, []byte("\r\n\r\n"))
	}
}

// nextPhase reads what stands between contents and reports the end of the body.
// Its errors are the connection's, io.EOF among them, or the peer's.
func (b *body) nextPhase() (end bool, err error) {
	c := b.c
	switch b.phase {
	case chunkSize:
		size, length, err := c.readChunkSize()
		if err != nil {
			return false, err
		}
		if err := b.account(length, size); err != nil {
			return false, err
		}
		b.left, b.phase = size, chunkData
		if size == 0 {
			b.phase = chunkTrailer
		}
	case chunkEnd:
		for c.in.buffered() < 2 {
			if err := c.fill(); err != nil {
				return false, err
			}
		}
		if end := c.in.data()[:2]; string(end) != "\r\n" {
			return false, wire.Protocolf("chunk is longer than its size says: %s instead of a line end", quote(end))
		}
		c.in.r += 2
		b.phase = chunkSize
	case chunkTrailer:
		length, err := c.readBlock(true)
		if err != nil {
			return false, err
		}
		if err := b.takeTrailer(c.in.data()[:length]); err != nil {
			return false, err
		}
		c.in.r += length
		return true, nil
	}
	return false, nil
}

// account bounds what chunk extensions may cost over the whole body, like the
// header fields they resemble: a line is paid for by its first 16 bytes and by
// the content after it.
func (b *body) account(line int, size int64) error {
	const free = 16
	paid := free + min(size, int64(line))
	b.excess = max(0, b.excess+line-int(paid))
	if b.excess > b.c.x.MaxHeaderBytes {
		return wire.Protocolf("chunk lines carry more than %d bytes beside the content", b.c.x.MaxHeaderBytes)
	}
	return nil
}

// readChunkSize reads the line before a chunk and returns its length too.
func (c *Conn) readChunkSize() (size int64, length int, err error) {
	for scanned := 0; ; {
		data := c.in.data()
		if i := bytes.IndexByte(data[scanned:], '\n'); i >= 0 {
			length = scanned + i + 1
		} else {
			length = len(data) + 1
		}
		switch {
		case length > maxChunkLine:
			return 0, 0, wire.Protocolf("chunk line is longer than %d bytes: %s", maxChunkLine, quote(data))
		case length <= len(data):
			c.in.r += length
			size, err = parseChunkLine(data[:length-1])
			return size, length, err
		case len(data) > 0 && hexDigit(data[0]) < 0:
			return 0, 0, wire.Protocolf("malformed chunk line %s", quote(data))
		}
		scanned = len(data)
		if err := c.fill(); err != nil {
			return 0, 0, err
		}
	}
}

// parseChunkLine takes a chunk's line up to its LF: the size in hexadecimal, white
// space, extensions, which are ignored, and a CR (RFC 9112 7.1.1). A bare LF as
// its end, or a control character within, is how requests are smuggled past
// parsers that disagree.
func parseChunkLine(line []byte) (int64, error) {
	const mostDigits = 16
	malformed := func() (int64, error) {
		return 0, wire.Protocolf("malformed chunk line %s", quote(line))
	}
	if len(line) == 0 || line[len(line)-1] != '\r' {
		return malformed()
	}
	rest := line[:len(line)-1]
	size, i := int64(0), 0
	for i < len(rest) && hexDigit(rest[i]) >= 0 {
		if i == mostDigits || size > 1<<(63-4)-1 {
			return 0, wire.Protocolf("chunk size is too large: %s", quote(line))
		}
		size = size<<4 | int64(hexDigit(rest[i]))
		i++
	}
	if i == 0 {
		return malformed()
	}
	extensions := trimOWS(rest[i:])
	if len(extensions) > 0 && (extensions[0] != ';' || !allOf(extensions, valueByte)) {
		return malformed()
	}
	return size, nil
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(ch byte) int {
	switch {
	case '0' <= ch && ch <= '9':
		return int(ch - '0')
	case 'a' <= ch && ch <= 'f':
		return int(ch-'a') + 10
	case 'A' <= ch && ch <= 'F':
		return int(ch-'A') + 10
	}
	return -1
}
