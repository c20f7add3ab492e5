package interceptors

import (
	"bufio"
	"compress/gzip"
	"io"
	"sync"
)

// decoder decodes gzip (RFC 1952): every member; what follows a complete member
// and begins no other is left alone. It is used again by others after free.
type decoder struct {
	source source
	in     *bufio.Reader // from source
	gzip   gzip.Reader   // from in
	member bool          // within one
	any    bool          // one was complete
}

var decoders = sync.Pool{New: func() any {
	return &decoder{in: bufio.NewReaderSize(nil, 16<<10)}
}}

func newDecoder(r io.Reader) *decoder {
	d := decoders.Get().(*decoder)
	d.source = source{r: r}
	d.in.Reset(&d.source)
	d.member, d.any = false, false
	return d
}

// free gives d to whoever comes next. It holds on to nothing of its user's.
func (d *decoder) free() {
	d.source = source{}
	d.gzip.Header = gzip.Header{}
	decoders.Put(d)
}

// networkErr is what the source ended with, nil while it has not.
func (d *decoder) networkErr() error { return d.source.err }

// Read decodes into p. It returns io.EOF after the last member, and where there
// is nothing to decode.
func (d *decoder) Read(p []byte) (int, error) {
	for {
		if !d.member {
			if err := d.next(); err != nil {
				return 0, err
			}
		}
		n, err := d.gzip.Read(p)
		if err == io.EOF {
			d.member, d.any = false, true
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next begins a member, or returns io.EOF where none comes.
func (d *decoder) next() error {
	for i := range len(magic) {
		head, err := d.in.Peek(i + 1)
		if len(head) == 0 {
			return err
		}
		switch {
		case len(head) <= i || head[i] == magic[i]:
		case d.any:
			return io.EOF
		default:
			return gzip.ErrHeader
		}
	}
	if err := d.gzip.Reset(d.in); err != nil {
		return err
	}
	d.gzip.Multistream(false)
	d.member = true
	return nil
}

// magic is how a member begins: the two bytes of gzip, and deflate.
const magic = "\x1f\x8b\x08"

// source is the coded body, and remembers how it ended.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil {
		s.err = err
	}
	return n, err
}
