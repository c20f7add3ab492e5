package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/catena-http/catena/internal/wire"
)

// message is a response, its body and what else belongs to it, in one
// allocation.
type message struct {
	response http.Response
	body     body
	coding   [1]string
}

// AwaitResponse waits at most d for the first byte of a response and reports
// whether it is there; it consumes nothing. It is for the time between a head
// with Expect: 100-continue and its body (RFC 9110 10.1.1).
func (c *Conn) AwaitResponse(d time.Duration) (bool, error) {
	if c.in.buffered() > 0 {
		return true, nil
	}
	c.armWithin(d)
	err := c.fill()
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, nil
	}
	c.spoiled = true
	return false, closedEarly(err)
}

// ReadResponseHeaders reads the next head, interim (1xx) or final; the caller
// goes on until it has a final one, and counts. started, if not nil, is called
// once the first byte is there. The whole head has one read timeout, from now on
// or, while the request is being written, from the earlier of its end and the
// head's first byte on.
//
// The response is what http.ReadResponse makes of it, its Request left nil. Its
// Body is never nil; it has to be read to the end or closed before the next
// exchange, and its methods may not be called at the same time. It is an
// io.WriterTo too.
//
// A connection that ends before the first byte is io.EOF, in the middle of the
// head io.ErrUnexpectedEOF, both wrapped. What breaks HTTP is a
// *wire.ProtocolError.
func (c *Conn) ReadResponseHeaders(started func()) (*http.Response, error) {
	if c.body != nil || c.complete {
		return nil, errors.New("the exchange has its final response already")
	}
	response, err := c.readHead(started)
	if err != nil {
		c.spoiled = true
		return nil, err
	}
	return response, nil
}

func (c *Conn) readHead(started func()) (*http.Response, error) {
	c.armHead()
	if c.in.buffered() == 0 {
		if err := c.fill(); err != nil {
			return nil, closedEarly(err)
		}
		c.beginHead()
	}
	if started != nil {
		started()
	}
	length, err := c.readBlock(false)
	if err != nil {
		return nil, err
	}
	m, err := c.parseHead(c.in.data()[:length])
	if err != nil {
		return nil, err
	}
	c.in.r += length
	if err := c.frame(m); err != nil {
		return nil, err
	}
	return &m.response, nil
}

func closedEarly(err error) error {
	if isEnd(err) {
		return fmt.Errorf("the server closed the connection before a response: %w", io.EOF)
	}
	return err
}

// parseHead makes a response of a whole head, without its framing. One string
// holds all text of the head.
func (c *Conn) parseHead(head []byte) (*message, error) {
	line := firstLine(head)
	status, err := parseStatusLine(line)
	if err != nil {
		return nil, err
	}
	const few = 20
	var array [few]span
	fields := bytes.IndexByte(head, '\n') + 1
	spans, err := splitFields(head[fields:], array[:0], c.x.MaxHeaderFields)
	if err != nil {
		return nil, err
	}
	text := string(head)
	m := &message{}
	r := &m.response
	r.Proto = text[:len("HTTP/1.1")]
	r.ProtoMajor, r.ProtoMinor = 1, status.minor
	r.Status = text[status.start:len(line)]
	r.StatusCode = status.code
	r.Header = make(http.Header, len(spans))
	addFields(r.Header, text[fields:], spans)
	return m, nil
}

type statusLine struct {
	minor, code int
	start       int // of the code
}

// parseStatusLine takes a status line without its end (RFC 9112 4): HTTP/1.x, a
// code of three digits from 100 on, and a reason that may be missing. More than
// one space before the code is let pass, as every client does.
func parseStatusLine(line []byte) (statusLine, error) {
	const version, least = "HTTP/1.", len("HTTP/1.1 200")
	if len(line) < least || string(line[:len(version)]) != version || line[len("HTTP/1.1")] != ' ' {
		return statusLine{}, wire.Protocolf("malformed status line %s", quote(line))
	}
	start := len("HTTP/1.1 ")
	for start < len(line) && line[start] == ' ' {
		start++
	}
	minor, okMinor := digits(line[len(version):][:1])
	if !okMinor || len(line) < start+3 {
		return statusLine{}, wire.Protocolf("malformed status line %s", quote(line))
	}
	code, okCode := digits(line[start:][:3])
	rest := line[start+3:]
	if !okCode || code < 100 || len(rest) > 0 && rest[0] != ' ' || !allOf(rest, valueByte) {
		return statusLine{}, wire.Protocolf("malformed status line %s", quote(line))
	}
	return statusLine{minor: minor, code: code, start: start}, nil
}

func digits(s []byte) (n int, ok bool) {
	for _, ch := range s {
		if ch < '0' || ch > '9' {
			return 0, false
		}
		n = 10*n + int(ch-'0')
	}
	return n, true
}
