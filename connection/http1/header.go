package http1

import (
	"bytes"
	"net/http"

	"github.com/catena-http/catena/internal/wire"
)

// span is where a field's name and value stand in its block.
type span struct {
	name, nameEnd, value, valueEnd int
}

// splitFields finds the fields in a block of header lines that ends with an empty
// line, and rewrites the block in place so that one string of it can serve them
// all: names become canonical, folded values become one line.
//
// A line needs a colon, a name made of token characters right before it, and a
// value without control characters (RFC 9112 5.1). A line that begins with white
// space continues the value before it and is joined with one space (5.2). Lines
// may end in a bare LF (2.2).
func splitFields(block []byte, spans []span, limit int) ([]span, error) {
	for start := 0; ; {
		length := bytes.IndexByte(block[start:], '\n')
		if length < 0 {
			return spans, nil // not from readBlock
		}
		next := start + length + 1
		line := withoutCR(block[start : start+length])
		switch {
		case len(line) == 0:
			return spans, nil
		case isOWS(line[0]):
			if len(spans) == 0 {
				return nil, wire.Protocolf("header begins with white space: %s", quote(line))
			}
			if !allOf(line, valueByte) {
				return nil, wire.Protocolf("invalid character in header line %s", quote(line))
			}
			unfold(block, &spans[len(spans)-1], line)
		default:
			field, err := splitField(line)
			if err != nil {
				return nil, err
			}
			if len(spans) == limit {
				return nil, wire.Protocolf("more than %d header fields", limit)
			}
			spans = append(spans, span{start + field.name, start + field.nameEnd, start + field.value, start + field.valueEnd})
		}
		start = next
	}
}

func splitField(line []byte) (span, error) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return span{}, wire.Protocolf("header line without a colon: %s", quote(line))
	}
	name := line[:colon]
	if !isToken(name) {
		return span{}, wire.Protocolf("invalid name in header line %s", quote(line))
	}
	start, end := colon+1, len(line)
	for start < end && isOWS(line[start]) {
		start++
	}
	for start < end && isOWS(line[end-1]) {
		end--
	}
	if !allOf(line[start:end], valueByte) {
		return span{}, wire.Protocolf("invalid character in header line %s", quote(line))
	}
	canonicalize(name)
	return span{0, colon, start, end}, nil
}

// unfold moves the content of a continuation line to the end of the value before
// it. It never grows past what it replaces: a line end and white space stand
// between them.
func unfold(block []byte, field *span, line []byte) {
	content := trimOWS(line)
	if len(content) == 0 {
		return
	}
	if field.value < field.valueEnd {
		block[field.valueEnd] = ' '
		field.valueEnd++
	}
	field.valueEnd += copy(block[field.valueEnd:], content)
}

// canonicalize writes a name the way http.CanonicalHeaderKey does.
func canonicalize(name []byte) {
	upper := true
	for i, ch := range name {
		switch {
		case upper && 'a' <= ch && ch <= 'z', !upper && 'A' <= ch && ch <= 'Z':
			name[i] = ch ^ 0x20
		}
		upper = ch == '-'
	}
}

// addFields puts the fields of text into h. One slice holds all first values.
func addFields(h http.Header, text string, spans []span) {
	values := make([]string, len(spans))
	for i, s := range spans {
		name := text[s.name:s.nameEnd]
		if earlier, ok := h[name]; ok && len(earlier) > 0 {
			h[name] = append(earlier, text[s.value:s.valueEnd])
			continue
		}
		values[i] = text[s.value:s.valueEnd]
		h[name] = values[i : i+1 : i+1]
	}
}

func withoutCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}
