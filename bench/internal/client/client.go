// Package client has one adapter for each HTTP client that is measured, all
// behind Client, so that a workload is written once.
package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
)

// The protocols of a cell.
const (
	H1    = "h1"     // HTTP/1.1, cleartext
	H1TLS = "h1-tls" // HTTP/1.1 over TLS
	H2C   = "h2c"    // HTTP/2, cleartext, by prior knowledge
	H2TLS = "h2-tls" // HTTP/2 over TLS, by ALPN
)

// Protocols are all of them, in the order of reports.
func Protocols() []string { return []string{H1, H1TLS, H2C, H2TLS} }

// IsHTTP2 tells whether proto is a form of HTTP/2.
func IsHTTP2(proto string) bool { return proto == H2C || proto == H2TLS }

// Op is one request, made over and over.
type Op struct {
	Method string
	URL    string
	Body   []byte // a small body in memory
	File   string // or one streamed from this file, of Size bytes
	Size   int64
	Stream bool // the response is large: it is read as it comes, never as a whole
	Close  bool // the connection is closed after the response
}

// Do makes a request and reads its response to the end, with buf where the
// client lets the reader bring one. It returns the number of bytes read. Not
// safe for concurrent use.
type Do func(buf []byte) (int64, error)

// Client is an HTTP client under measurement.
type Client interface {
	// Caller returns what one caller of many runs in a loop. What can be prepared
	// once, a request without a body say, is.
	Caller(op Op) (Do, error)
	// Open makes a request and returns with its response's body unread, so that
	// the connection stays taken until it is read and closed.
	Open(op Op) (io.ReadCloser, error)
	// Close closes what is idle.
	Close()
}

// Config is what a client is made with: the same for each, as far as it has it.
type Config struct {
	Proto string
	TLS   *tls.Config // never nil
	// Conns is how many idle connections to a host the client must be able to keep.
	Conns int
	// Addr is where every host name leads: "127.0.0.1:8080". Empty: URLs name
	// the address.
	Addr string
	// Stream says that large bodies will be moved; some clients need a setting.
	Stream bool
}

// dialer returns a dial function that leads to c.Addr, or nil where there is none.
func (c Config) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.Addr == "" {
		return nil
	}
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, c.Addr)
	}
}

// adapter is what the registry knows of a client.
type adapter struct {
	new       func(Config) (Client, error)
	protocols []string
}

var adapters = map[string]adapter{
	"catena":     {newCatena(variant{}), Protocols()},
	"nethttp":    {newNetHTTP, Protocols()},
	"clientconn": {newClientConn, []string{H2C, H2TLS}},
	"fasthttp":   {newFastHTTP, []string{H1, H1TLS}},
	"socket":     {newSocket, Protocols()},
	"resty":      {newResty, Protocols()},
	"req":        {newReq, Protocols()},

	"catena+1":          {newCatena(variant{interceptors: 1}), Protocols()},
	"catena+10":         {newCatena(variant{interceptors: 10}), Protocols()},
	"catena+listen":     {newCatena(variant{listener: true}), Protocols()},
	"catena+10+listen":  {newCatena(variant{interceptors: 10, listener: true}), Protocols()},
	"catena+5+5+listen": {newCatena(variant{interceptors: 5, network: 5, listener: true}), Protocols()},
}

// New makes the client of that name.
func New(name string, cfg Config) (Client, error) {
	a, ok := adapters[name]
	if !ok {
		return nil, fmt.Errorf("there is no client %q, only %v", name, Names())
	}
	if !slices.Contains(a.protocols, cfg.Proto) {
		return nil, fmt.Errorf("%s does not speak %s", name, cfg.Proto)
	}
	return a.new(cfg)
}

// Speaks tells whether there is a client of that name that speaks proto.
func Speaks(name, proto string) bool {
	return slices.Contains(adapters[name].protocols, proto)
}

// Names are all clients, sorted.
func Names() []string { return slices.Sorted(maps.Keys(adapters)) }
