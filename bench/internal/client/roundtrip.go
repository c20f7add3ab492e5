package client

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
)

// send is the method that clients of *http.Request have in common.
type send func(*http.Request) (*http.Response, error)

// caller is Client.Caller over send. A request without a body is made once and
// sent again and again, one at a time; with a body it is made anew.
func (do send) caller(op Op) (Do, error) {
	fresh, err := op.request()
	if err != nil {
		return nil, err
	}
	again := op.File == "" && op.Body == nil
	return func(buf []byte) (int64, error) {
		req := fresh
		if !again {
			var err error
			if req, err = op.request(); err != nil {
				return 0, err
			}
		}
		resp, err := do(req)
		if err != nil {
			return 0, err
		}
		return drain(resp, buf)
	}, nil
}

// open is Client.Open over send.
func (do send) open(op Op) (io.ReadCloser, error) {
	req, err := op.request()
	if err != nil {
		return nil, err
	}
	resp, err := do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s answered %s", op.URL, resp.Status)
	}
	return resp.Body, nil
}

// request builds op's *http.Request.
func (op Op) request() (*http.Request, error) {
	var body io.Reader
	switch {
	case op.File != "":
		f, err := os.Open(op.File)
		if err != nil {
			return nil, err
		}
		body = f // closed by the client, as every request body
	case op.Body != nil:
		body = bytes.NewReader(op.Body)
	}
	req, err := http.NewRequest(op.Method, op.URL, body)
	if err != nil {
		return nil, err
	}
	if op.File != "" {
		req.ContentLength = op.Size
	}
	req.Close = op.Close
	return req, nil
}

// drain reads resp's body to its end and closes it.
func drain(resp *http.Response, buf []byte) (int64, error) {
	n, err := readAll(resp.Body, buf)
	resp.Body.Close()
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server answered %s", resp.Status)
	}
	return n, err
}

// readAll reads r to its end and throws away what it reads.
func readAll(r io.Reader, buf []byte) (n int64, err error) {
	for err == nil {
		var k int
		k, err = r.Read(buf)
		n += int64(k)
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}
