package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/catena-http/catena/internal/wire"
)

// readBlock reads on until the buffer holds a whole head, or a whole trailer
// section: lines up to an empty one. It returns the block's length. Each byte is
// looked at once; the bounds are checked while the block grows, the status line
// as soon as it is there.
func (c *Conn) readBlock(trailer bool) (int, error) {
	var scanned, line, fields int // from the start of the block
	for {
		data := c.in.data()
		if !trailer && line == 0 {
			if err := checkStart(data); err != nil {
				return 0, err
			}
		}
		for {
			i := bytes.IndexByte(data[scanned:], '\n')
			if i < 0 {
				scanned = len(data)
				break
			}
			end := scanned + i
			content := withoutCR(data[line:end])
			if trailer && len(content) == end-line {
				return 0, wire.Protocolf("trailer line does not end in CRLF: %s", quote(content))
			}
			scanned = end + 1
			switch {
			case !trailer && line == 0:
				if _, err := parseStatusLine(content); err != nil {
					return 0, err
				}
			case len(content) == 0:
				return scanned, c.checkBlockSize(scanned, trailer)
			case !isOWS(content[0]):
				fields++
			}
			if fields > c.x.MaxHeaderFields {
				return 0, wire.Protocolf("more than %d header fields", c.x.MaxHeaderFields)
			}
			line = scanned
		}
		if err := c.checkBlockSize(len(data), trailer); err != nil {
			return 0, err
		}
		if err := c.fill(); err != nil {
			return 0, cutOff(err, "response %s", blockName(trailer))
		}
	}
}

func (c *Conn) checkBlockSize(n int, trailer bool) error {
	if n > c.x.MaxHeaderBytes {
		return wire.Protocolf("response %s is longer than %d bytes", blockName(trailer), c.x.MaxHeaderBytes)
	}
	return nil
}

func blockName(trailer bool) string {
	if trailer {
		return "trailer section"
	}
	return "head"
}

// cutOff turns the end of the connection into the error of a message that it
// cuts off; other errors are returned as they are.
func cutOff(err error, format string, args ...any) error {
	if isEnd(err) {
		return fmt.Errorf("the connection ended inside the %s: %w", fmt.Sprintf(format, args...), io.ErrUnexpectedEOF)
	}
	return err
}

// isEnd: the peer ended the connection. crypto/tls says io.ErrUnexpectedEOF where
// it did so without a close_notify.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// checkStart looks at the first bytes of a head before its first line is whole: a
// peer that speaks another protocol may never end it.
func checkStart(data []byte) error {
	const begin = "HTTP/1."
	n := min(len(data), len(begin))
	if string(data[:n]) == begin[:n] {
		return nil
	}
	switch {
	case data[0] == 0x15, data[0] == 0x16:
		return wire.Protocolf("the server speaks TLS on a connection that does not: %s", quote(data))
	case data[0] == 0 && len(data) < 4:
		return nil // too little to tell a frame
	case data[0] == 0 && data[3] == 4:
		return wire.Protocolf("the server speaks HTTP/2: it began with a SETTINGS frame instead of a status line: %s", quote(data))
	}
	return wire.Protocolf("malformed status line %s", quote(firstLine(data)))
}

func firstLine(data []byte) []byte {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		data = withoutCR(data[:i])
	}
	return data
}

// quote shows at most 64 bytes of what the peer sent.
func quote(line []byte) string {
	const most = 64
	if len(line) > most {
		return strconv.Quote(string(line[:most])) + "..."
	}
	return strconv.Quote(string(line))
}
