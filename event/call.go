package event

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"

	"github.com/catena-http/catena/proxy"
)

// Call is the call that an event belongs to. A Call may be kept after the
// method it was given to has returned; its methods may be used from any
// goroutine.
type Call interface {
	// ID is unique among the calls of the process, and never 0.
	ID() uint64
	// Request is the request the application made. Read-only.
	Request() *http.Request
	// RedactedHeader is a copy of h in which the values of secret fields, by
	// the client's list, are masked.
	RedactedHeader(h http.Header) http.Header
	// RedactedURL is u without its password and with the values of secret query
	// parameters, by the client's list, masked.
	RedactedURL(u *url.URL) string
}

// Connection is a connection as interceptors and listeners see it. Its methods
// may be used from any goroutine, also after the connection was closed.
type Connection interface {
	// ID is unique among the connections of the process, and never 0.
	ID() uint64
	LocalAddr() net.Addr
	// RemoteAddr is the peer of the socket: the origin's address or the proxy's.
	RemoteAddr() net.Addr
	// Proxy is the proxy the connection runs through, without its password;
	// the zero Proxy for a direct connection.
	Proxy() proxy.Proxy
	// Protocol is "http/1.1", "h2", or "h2c" for cleartext HTTP/2 by prior
	// knowledge.
	Protocol() string
	// TLS is the state of the handshake with the origin, nil for cleartext.
	// Read-only.
	TLS() *tls.ConnectionState
}
