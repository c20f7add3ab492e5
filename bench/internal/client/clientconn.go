//lint:file-ignore SA1019 x/net's ClientConn is one of those measured.

package client

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"

	"golang.org/x/net/http2"
)

// clientConn is x/net's HTTP/2 ClientConn: one connection to each host, used by
// all callers, with no pool and no redirects above it.
type clientConn struct {
	cfg       Config
	transport *http2.Transport

	mu    sync.Mutex // guards conns
	conns map[string]*http2.ClientConn
}

func newClientConn(cfg Config) (Client, error) {
	return &clientConn{
		cfg:       cfg,
		transport: &http2.Transport{AllowHTTP: true},
		conns:     map[string]*http2.ClientConn{},
	}, nil
}

func (c *clientConn) Caller(op Op) (Do, error) {
	if op.Close {
		return nil, errors.New("a ClientConn is one connection, and never closed after a request")
	}
	cc, err := c.conn(op.URL)
	if err != nil {
		return nil, err
	}
	return send(cc.RoundTrip).caller(op)
}

func (c *clientConn) Open(op Op) (io.ReadCloser, error) {
	cc, err := c.conn(op.URL)
	if err != nil {
		return nil, err
	}
	return send(cc.RoundTrip).open(op)
}

// conn is the connection to rawURL's host, dialed if there is none.
func (c *clientConn) conn(rawURL string) (*http2.ClientConn, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cc := c.conns[u.Host]; cc != nil {
		return cc, nil
	}
	cc, err := c.dial(u)
	if err != nil {
		return nil, err
	}
	c.conns[u.Host] = cc
	return cc, nil
}

func (c *clientConn) dial(u *url.URL) (*http2.ClientConn, error) {
	dial := c.cfg.dialer()
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(context.Background(), "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	if c.cfg.Proto == H2TLS {
		cfg := c.cfg.TLS.Clone()
		cfg.NextProtos = []string{"h2"}
		cfg.ServerName = u.Hostname()
		tc := tls.Client(nc, cfg)
		if err := tc.Handshake(); err != nil {
			nc.Close()
			return nil, err
		}
		if tc.ConnectionState().NegotiatedProtocol != "h2" {
			nc.Close()
			return nil, errors.New("the server chose no HTTP/2")
		}
		nc = tc
	}
	cc, err := c.transport.NewClientConn(nc)
	if err != nil {
		nc.Close()
	}
	return cc, err
}

func (c *clientConn) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for host, cc := range c.conns {
		cc.Close()
		delete(c.conns, host)
	}
}
