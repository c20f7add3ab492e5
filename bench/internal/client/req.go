package client

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/imroc/req/v3"
)

// reqClient is imroc/req, which has a transport of its own, forked from net/http
// and x/net. A small response is read into memory, as req does by itself.
type reqClient struct{ client *req.Client }

func newReq(cfg Config) (Client, error) {
	c := req.C().SetTLSClientConfig(cfg.TLS.Clone()).SetProxy(nil).SetTimeout(0)
	switch cfg.Proto {
	case H2C:
		c.EnableForceHTTP2().EnableH2C()
	case H2TLS:
		c.EnableForceHTTP2()
	default:
		c.EnableForceHTTP1()
	}
	if dial := cfg.dialer(); dial != nil {
		c.SetDial(dial).SetDialTLS(dial) // its cleartext HTTP/2 dials by the one for TLS
	}
	t := c.GetTransport()
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = cfg.Conns, cfg.Conns, time.Hour
	return &reqClient{c}, nil
}

func (c *reqClient) Caller(op Op) (Do, error) {
	return func(buf []byte) (int64, error) {
		resp, err := c.do(op, op.Stream)
		if err != nil {
			return 0, err
		}
		if !op.Stream {
			return int64(len(resp.Bytes())), nil
		}
		return drain(resp.Response, buf)
	}, nil
}

func (c *reqClient) Open(op Op) (io.ReadCloser, error) {
	resp, err := c.do(op, true)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

func (c *reqClient) do(op Op, raw bool) (*req.Response, error) {
	r := c.client.R()
	if raw {
		r.DisableAutoReadResponse()
	}
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
		r.SetBodyBytes(op.Body)
	}
	resp, err := r.Send(op.Method, op.URL)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", resp.Status)
	}
	return resp, nil
}

func (c *reqClient) Close() { c.client.GetTransport().CloseIdleConnections() }
