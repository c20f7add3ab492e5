package client

import (
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/go-resty/resty/v2"
)

// restyClient is resty over the transport that net/http is measured with. A
// small response is read into memory, as resty does by itself.
type restyClient struct {
	client    *resty.Client
	transport *http.Transport
}

func newResty(cfg Config) (Client, error) {
	t := newTransport(cfg)
	return &restyClient{resty.NewWithClient(&http.Client{Transport: t}), t}, nil
}

func (c *restyClient) Caller(op Op) (Do, error) {
	return func(buf []byte) (int64, error) {
		resp, err := c.do(op, op.Stream)
		if err != nil {
			return 0, err
		}
		if !op.Stream {
			return int64(len(resp.Body())), nil
		}
		body := resp.RawBody()
		defer body.Close()
		return readAll(body, buf)
	}, nil
}

func (c *restyClient) Open(op Op) (io.ReadCloser, error) {
	resp, err := c.do(op, true)
	if err != nil {
		return nil, err
	}
	return resp.RawBody(), nil
}

func (c *restyClient) do(op Op, raw bool) (*resty.Response, error) {
	r := c.client.R().SetDoNotParseResponse(raw)
	if op.Close {
		r.SetHeader("Connection", "close")
	}
	switch {
	case op.File != "":
		f, err := os.Open(op.File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r.SetBody(f)
	case op.Body != nil:
		r.SetBody(op.Body)
	}
	resp, err := r.Execute(op.Method, op.URL)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode() != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", resp.Status())
	}
	return resp, nil
}

func (c *restyClient) Close() { c.transport.CloseIdleConnections() }
