package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
)

// content is the data of all -d, joined.
func (c *command) content() ([]byte, error) {
	var joined bytes.Buffer
	for i, d := range c.options.data {
		if i > 0 {
			joined.WriteByte('&')
		}
		if !d.file {
			joined.WriteString(d.text)
			continue
		}
		content, err := c.readFile(d.text)
		if err != nil {
			return nil, fail(exitReadError, err)
		}
		if d.plain {
			content = slices.DeleteFunc(slices.Clone(content), func(b byte) bool {
				return b == '\r' || b == '\n' || b == 0
			})
		}
		joined.Write(content)
	}
	return joined.Bytes(), nil
}

func (c *command) readFile(name string) ([]byte, error) {
	if name != "-" {
		return os.ReadFile(name)
	}
	// Once: a second URL posts the same.
	if c.input == nil {
		content, err := io.ReadAll(c.stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		c.input = append([]byte{}, content...)
	}
	return c.input, nil
}

// dataSource is the body that the -d options make. One file that is sent as it
// is is not read into memory.
func (c *command) dataSource() (*source, error) {
	if d := c.options.data; len(d) == 1 && d[0].file && !d[0].plain && d[0].text != "-" {
		return fileSource(d[0].text, c.stdin), nil
	}
	content, err := c.content()
	return &source{
		open: func() (io.ReadCloser, int64, error) {
			return io.NopCloser(bytes.NewReader(content)), int64(len(content)), nil
		},
		again: true,
	}, err
}

// source is where a request's body comes from.
type source struct {
	open  func() (body io.ReadCloser, size int64, err error) // a negative size is unknown
	again bool                                               // it can be opened again
}

// fileSource is a file of that name, or standard input for "-".
func fileSource(name string, stdin io.Reader) *source {
	if name == "-" {
		return &source{open: func() (io.ReadCloser, int64, error) {
			return io.NopCloser(stdin), -1, nil
		}}
	}
	return &source{
		open: func() (io.ReadCloser, int64, error) {
			f, err := os.Open(name)
			if err != nil {
				return nil, 0, err
			}
			info, err := f.Stat()
			switch {
			case err != nil:
			case info.IsDir():
				err = fmt.Errorf("%s is a folder", name)
			case !info.Mode().IsRegular():
				return f, -1, nil
			default:
				return f, info.Size(), nil
			}
			f.Close()
			return nil, 0, err
		},
		again: true,
	}
}

// attach makes s the body of req.
func (s *source) attach(req *http.Request) error {
	body, size, err := s.open()
	if err != nil {
		return fail(exitReadError, err)
	}
	if size == 0 {
		body.Close()
		body = http.NoBody
	}
	req.Body, req.ContentLength = body, size
	if len(req.TransferEncoding) > 0 {
		req.ContentLength = -1
	}
	if size == 0 || s.again && size > 0 {
		req.GetBody = func() (io.ReadCloser, error) {
			again, _, err := s.open()
			return again, err
		}
	}
	return nil
}
