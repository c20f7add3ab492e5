package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// newRequest makes the request for one URL.
func (c *command) newRequest(ctx context.Context, raw string) (*http.Request, error) {
	u, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	method, body := http.MethodGet, (*source)(nil)
	switch {
	case c.options.head:
		method = http.MethodHead
	case c.options.upload != "":
		method, body, err = http.MethodPut, fileSource(c.options.upload, c.stdin), nil
		u = withName(u, c.options.upload)
	case len(c.options.data) > 0 && !c.options.asQuery:
		method = http.MethodPost
		body, err = c.dataSource()
	}
	if err == nil && c.options.asQuery {
		err = c.addQuery(u)
	}
	if err != nil {
		return nil, err
	}
	if c.options.method != "" {
		method = c.options.method
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, fail(exitOther, err)
	}
	c.addHeaders(req)
	if body == nil {
		return req, nil
	}
	if err := body.attach(req); err != nil {
		return nil, err
	}
	c.watchUpload(req)
	return req, nil
}

// parseURL reads a URL as a user types it: http is the scheme where none is.
// Its errors do not show the URL, which may have a password in it.
func parseURL(raw string) (*url.URL, error) {
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, fail(exitURL, fmt.Errorf("malformed URL: %w", err))
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fail(exitOther, fmt.Errorf("the scheme %q is not supported: http and https are", u.Scheme))
	case u.Hostname() == "":
		return nil, fail(exitURL, errors.New("malformed URL: it has no host"))
	}
	return u, nil
}

// withName is u, with the file's name where u is a folder.
func withName(u *url.URL, file string) *url.URL {
	if file == "-" || !strings.HasSuffix(u.Path, "/") {
		return u
	}
	return u.JoinPath(url.PathEscape(filepath.Base(file)))
}

func (c *command) addHeaders(req *http.Request) {
	if c.options.user != "" {
		user, password, _ := strings.Cut(c.options.user, ":")
		req.SetBasicAuth(user, password)
	}
	if c.options.referer != "" {
		req.Header.Set("Referer", c.options.referer)
	}
	if len(c.options.data) > 0 && !c.options.asQuery {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Accept", "*/*")
	first := map[string]bool{}
	for _, f := range c.options.headers {
		name := http.CanonicalHeaderKey(f.name)
		switch {
		case name == "Host":
			req.Host = f.value
			continue
		case name == "Transfer-Encoding" && !f.without:
			req.TransferEncoding = []string{strings.ToLower(f.value)}
			continue
		case f.without && name == "User-Agent":
			req.Header.Set(name, "") // keeps the library from sending its own
			continue
		case f.without:
			req.Header.Del(name)
			continue
		case !first[name]: // takes the place of what stands there by itself
			req.Header.Del(name)
			first[name] = true
		}
		req.Header.Add(name, f.value)
	}
}

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

func (c *command) addQuery(u *url.URL) error {
	content, err := c.content()
	if err != nil || len(content) == 0 {
		return err
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += string(content)
	return nil
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
