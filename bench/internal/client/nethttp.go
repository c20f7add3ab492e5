package client

import (
	"io"
	"net/http"
	"time"
)

// netHTTP is net/http's Client over a Transport of its own.
type netHTTP struct {
	client    *http.Client
	transport *http.Transport
}

func newNetHTTP(cfg Config) (Client, error) {
	t := newTransport(cfg)
	return &netHTTP{&http.Client{Transport: t}, t}, nil
}

// newTransport is net/http's default transport but for the protocol, the size
// of the pool and the proxy, which is none.
func newTransport(cfg Config) *http.Transport {
	var protocols http.Protocols
	switch cfg.Proto {
	case H2C:
		protocols.SetUnencryptedHTTP2(true)
	case H2TLS:
		protocols.SetHTTP2(true)
	default:
		protocols.SetHTTP1(true)
	}
	return &http.Transport{
		Protocols:           &protocols,
		TLSClientConfig:     cfg.TLS.Clone(),
		DialContext:         cfg.dialer(),
		MaxIdleConns:        cfg.Conns,
		MaxIdleConnsPerHost: cfg.Conns,
		IdleConnTimeout:     time.Hour,
	}
}

func (c *netHTTP) Caller(op Op) (Do, error)          { return send(c.client.Do).caller(op) }
func (c *netHTTP) Open(op Op) (io.ReadCloser, error) { return send(c.client.Do).open(op) }
func (c *netHTTP) Close()                            { c.transport.CloseIdleConnections() }
