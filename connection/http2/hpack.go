package http2

import (
	"errors"
	"fmt"

	"golang.org/x/net/http2/hpack"
)

// fieldTableSize is SETTINGS_HEADER_TABLE_SIZE, which we leave as it is.
const fieldTableSize = 4096

var (
	errFieldCut  = errors.New("the header block ends within a field")
	errIndex     = errors.New("a field index beyond the table")
	errInteger   = errors.New("an integer of more than 63 bits")
	errTableSize = fmt.Errorf("a table size of more than the %d allowed", fieldTableSize)
	errResize    = errors.New("a change of the table size after a field")
	// errMore says that a representation is not there as a whole.
	errMore = errors.New("more is to come")
)

// fieldDecoder decodes header blocks (RFC 7541). It is for responses, where servers
// send the same literals again and again and put them into the table each time:
// what was decoded lately is recognised by its encoding. And it keeps no index of
// the table, which only an encoder needs.
type fieldDecoder struct {
	// emit takes the fields, unless muted: then all that is kept up is the table.
	emit  func(name, value string)
	muted bool
	// maxString bounds the name and the value of a field.
	maxString int

	table fieldTable
	begun bool   // a field of the block came
	rest  []byte // the beginning of a representation
}

// write decodes a part of a block.
func (d *fieldDecoder) write(p []byte) error {
	resumed := len(d.rest) > 0
	if resumed {
		d.rest = append(d.rest, p...)
		p = d.rest
	}
	for len(p) > 0 {
		n, err := d.representation(p)
		if err == errMore {
			break
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	if len(p) > 2*d.maxString+32 {
		return hpack.ErrStringLength
	}
	if resumed && len(p) == len(d.rest) {
		return nil // it is there; to copy it each time would add up
	}
	d.rest = append(d.rest[:0], p...)
	return nil
}

// end ends a block.
func (d *fieldDecoder) end() error {
	if len(d.rest) > 0 {
		return errFieldCut
	}
	d.rest, d.begun = nil, false
	return nil
}

// representation decodes the first one in p and returns its length (RFC 7541 6).
func (d *fieldDecoder) representation(p []byte) (n int, err error) {
	switch b := p[0]; {
	case b&0x80 != 0:
		i, n, err := prefixedInt(p, 7)
		if err != nil {
			return 0, err
		}
		f, ok := d.table.at(i)
		if !ok {
			return 0, errIndex
		}
		d.found(f.name, f.value)
		return n, nil
	case b&0xc0 == 0x40:
		return d.literal(p, 6, true)
	case b&0xe0 == 0x20:
		return d.resize(p)
	default:
		return d.literal(p, 4, false)
	}
}

func (d *fieldDecoder) found(name, value string) {
	d.begun = true
	if !d.muted {
		d.emit(name, value)
	}
}

func (d *fieldDecoder) resize(p []byte) (n int, err error) {
	size, n, err := prefixedInt(p, 5)
	switch {
	case err != nil:
		return 0, err
	case d.begun && d.table.size > 0:
		return 0, errResize
	case size > fieldTableSize:
		return 0, errTableSize
	}
	d.table.resize(int(size))
	return n, nil
}

// literal decodes a literal whose index has a prefix of bits (RFC 7541 6.2).
func (d *fieldDecoder) literal(p []byte, bits uint8, keep bool) (n int, err error) {
	i, n, err := prefixedInt(p, bits)
	if err != nil {
		return 0, err
	}
	var f tableField
	var name, value codedString
	if i == 0 {
		name, n, err = d.codedString(p, n)
	} else if named, ok := d.table.at(i); ok {
		f.name = named.name
	} else {
		err = errIndex
	}
	if err != nil {
		return 0, err
	}
	if value, n, err = d.codedString(p, n); err != nil {
		return 0, err
	}
	lasting := keep && i <= staticFields // means the same later on
	if lasting {
		if f, ok := d.table.recent(p[:n]); ok {
			d.table.add(f)
			d.found(f.name, f.value)
			return n, nil
		}
	}
	if d.muted && !keep {
		d.begun = true
		return n, nil
	}
	if i == 0 {
		if f.name, err = name.decode(d.maxString); err != nil {
			return 0, err
		}
	}
	if f.value, err = value.decode(d.maxString); err != nil {
		return 0, err
	}
	if lasting && n <= longestRecent {
		f.coded = string(p[:n])
	}
	if keep {
		d.table.add(f)
	}
	d.found(f.name, f.value)
	return n, nil
}

// A codedString is a string as it is on the wire (RFC 7541 5.2).
type codedString struct {
	b       []byte
	huffman bool
}

// codedString finds the string at p[at:] and returns where it ends.
func (d *fieldDecoder) codedString(p []byte, at int) (s codedString, end int, err error) {
	if at == len(p) {
		return s, 0, errMore
	}
	size, n, err := prefixedInt(p[at:], 7)
	if err != nil {
		return s, 0, err
	}
	if size > uint64(d.maxString) {
		return s, 0, hpack.ErrStringLength
	}
	s.huffman = p[at]&0x80 != 0
	at += n
	if end = at + int(size); end > len(p) {
		return s, 0, errMore
	}
	s.b = p[at:end]
	return s, end, nil
}

func (s codedString) decode(longest int) (string, error) {
	if !s.huffman {
		return string(s.b), nil
	}
	v, err := hpack.HuffmanDecodeToString(s.b)
	if err == nil && len(v) > longest {
		err = hpack.ErrStringLength
	}
	return v, err
}

// prefixedInt reads the integer that p begins with, behind all but bits of its
// first byte (RFC 7541 5.1), and returns its length.
func prefixedInt(p []byte, bits uint8) (v uint64, n int, err error) {
	most := uint64(1)<<bits - 1
	if v = uint64(p[0]) & most; v < most {
		return v, 1, nil
	}
	for shift := 0; shift < 63; shift += 7 {
		n++
		if n == len(p) {
			return 0, 0, errMore
		}
		v += uint64(p[n]&0x7f) << shift
		if p[n]&0x80 == 0 {
			return v, n + 1, nil
		}
	}
	return 0, 0, errInteger
}
