package client

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/valyala/fasthttp"
)

// fastHTTP is fasthttp's Client: HTTP/1.1 only, with messages of its own that
// are used again, and no timeouts.
type fastHTTP struct{ client *fasthttp.Client }

func newFastHTTP(cfg Config) (Client, error) {
	return &fastHTTP{&fasthttp.Client{
		TLSConfig:           cfg.TLS.Clone(),
		MaxConnsPerHost:     cfg.Conns,
		MaxIdleConnDuration: time.Hour,
		StreamResponseBody:  cfg.Stream,
	}}, nil
}

func (c *fastHTTP) Caller(op Op) (Do, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	fill(req, op)
	return func(buf []byte) (int64, error) {
		if err := c.do(req, resp, op); err != nil {
			return 0, err
		}
		if !op.Stream {
			return int64(len(resp.Body())), nil
		}
		n, err := readAll(resp.BodyStream(), buf)
		resp.CloseBodyStream()
		return n, err
	}, nil
}

func (c *fastHTTP) Open(op Op) (io.ReadCloser, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	fill(req, op)
	if err := c.do(req, resp, op); err != nil {
		return nil, err
	}
	if resp.BodyStream() == nil {
		return io.NopCloser(bytes.NewReader(resp.Body())), nil
	}
	return &fastBody{resp.BodyStream(), resp}, nil
}

func (c *fastHTTP) do(req *fasthttp.Request, resp *fasthttp.Response, op Op) error {
	if op.File != "" {
		f, err := os.Open(op.File)
		if err != nil {
			return err
		}
		req.SetBodyStream(f, int(op.Size)) // closed by the client
	}
	if err := c.client.Do(req, resp); err != nil {
		return err
	}
	if resp.StatusCode() != http.StatusOK {
		return fmt.Errorf("the server answered %d", resp.StatusCode())
	}
	return nil
}

func fill(req *fasthttp.Request, op Op) {
	req.Header.SetMethod(op.Method)
	req.SetRequestURI(op.URL)
	if op.Body != nil {
		req.SetBodyRaw(op.Body)
	}
	if op.Close {
		req.SetConnectionClose()
	}
}

func (c *fastHTTP) Close() { c.client.CloseIdleConnections() }

// fastBody is a streamed body of a response that goes back to fasthttp's pool.
type fastBody struct {
	io.Reader
	resp *fasthttp.Response
}

func (b *fastBody) Close() error {
	err := b.resp.CloseBodyStream()
	fasthttp.ReleaseResponse(b.resp)
	return err
}
