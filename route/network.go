package route

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// The names of WithProtocols and Network.Protocols.
const (
	HTTP1 = "http/1.1" // HTTP/1.1, by ALPN or without
	HTTP2 = "h2"       // HTTP/2 by ALPN
	H2C   = "h2c"      // HTTP/2 over cleartext by prior knowledge (RFC 9113 3.3)
)

// Network is everything that decides how servers are reached. Calls share a
// connection only if they hold the same *Network: its identity is part of every
// Address, and no function value is ever compared. It is immutable once a call
// used it; With makes a changed copy. Zero fields mean the defaults.
type Network struct {
	// DNS resolves host names; nil: net.DefaultResolver.
	DNS DNS
	// DialContext opens sockets; nil: a net.Dialer. It gets network "tcp" and a
	// resolved "ip:port", the proxy's where there is one. It should obey ctx;
	// where it does not, the call goes on without it and a connection that comes
	// late is closed.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// ProxySelector chooses the proxies of a URL; nil: proxy.FromEnvironment(),
	// read when the Network is first used.
	ProxySelector proxy.Selector
	// ProxyAuthenticator answers the 407 challenges of HTTP and HTTPS proxies, to a
	// CONNECT too; nil: none does.
	ProxyAuthenticator auth.Authenticator
	// ProxyConnectHeader is sent with every CONNECT, besides the fields that one
	// has anyway, of which it may replace User-Agent; nil: nothing. It may not name
	// fields that are about the connection, the message's length or its Host.
	ProxyConnectHeader http.Header
	// ProxyTLSConfig is for HTTPS proxies, and for them alone: TLSConfig,
	// HostnameVerifier and pins are for origins. nil: TLSConfig's RootCAs, Time and
	// KeyLogWriter, and otherwise crypto/tls's defaults. ServerName is the proxy's
	// host where it is empty; NextProtos is always HTTP/1.1.
	ProxyTLSConfig *tls.Config
	// TLSConfig is for origins; nil: crypto/tls's defaults. ServerName and
	// NextProtos are set from the address and Protocols where they are empty.
	TLSConfig *tls.Config
	// HostnameVerifier replaces the check of the certificate's name, and only
	// that: the chain is verified before, and state.VerifiedChains holds it.
	HostnameVerifier func(host string, state *tls.ConnectionState) error
	// Protocols are those spoken, by preference: HTTP2 and HTTP1 (nil means
	// both), HTTP1 alone, or H2C alone.
	Protocols []string
	// PingInterval is how long an HTTP/2 connection may be silent before it is
	// pinged; a connection that does not answer is closed. 0: no pings.
	PingInterval time.Duration
	// HTTP2StreamWindow is how many bytes of one response an HTTP/2 server may send
	// that nobody has read yet: 64 KiB at least, 2^30-1 at most. 0: 16 MiB, or a
	// quarter of HTTP2ConnectionWindow if that is less.
	HTTP2StreamWindow int
	// HTTP2ConnectionWindow is the same of all responses on a connection together:
	// twice HTTP2StreamWindow and 128 KiB at least, 2^31-1 at most. 0: 64 MiB, or
	// four times HTTP2StreamWindow, up to 2^31-1, if that is more.
	HTTP2ConnectionWindow int
	// ConnectionListener is told the life of the Network's connections; nil: none.
	ConnectionListener event.ConnectionListener

	prepare   sync.Once // sets the four fields below, and the defaults
	err       error
	tls       *tls.Config // TLSConfig completed
	proxyTLS  *tls.Config // ProxyTLSConfig completed
	ownDialer bool

	lookups lookups
	from    *Network // whose With made it; nil: nobody's
}

// DerivedFrom reports whether n is other, or was made by its With or by that of
// one derived from it.
func (n *Network) DerivedFrom(other *Network) bool {
	for at := n; at != nil; at = at.from {
		if at == other {
			return true
		}
	}
	return false
}

// With returns a copy, changed by change, with an identity of its own: calls
// that use it share no connection with those of n. TLS configurations, headers and
// slices are copied too. change finds the defaults filled in, so that it can wrap
// them. Make it once and keep it, not one a call.
func (n *Network) With(change func(*Network)) *Network {
	n.prepare.Do(n.complete) // which may be under way for a call
	c := &Network{
		from:                  n,
		DNS:                   n.DNS,
		DialContext:           n.DialContext,
		ProxySelector:         n.ProxySelector,
		ProxyAuthenticator:    n.ProxyAuthenticator,
		ProxyConnectHeader:    n.ProxyConnectHeader.Clone(),
		HostnameVerifier:      n.HostnameVerifier,
		Protocols:             slices.Clone(n.Protocols),
		PingInterval:          n.PingInterval,
		HTTP2StreamWindow:     n.HTTP2StreamWindow,
		HTTP2ConnectionWindow: n.HTTP2ConnectionWindow,
		ConnectionListener:    n.ConnectionListener,
	}
	if n.TLSConfig != nil {
		c.TLSConfig = n.TLSConfig.Clone()
	}
	if n.ProxyTLSConfig != nil {
		c.ProxyTLSConfig = n.ProxyTLSConfig.Clone()
	}
	if change != nil {
		change(c)
	}
	return c
}

// Validate reports what makes the Network unusable, or nil. The first call, by
// whomever, also fixes the defaults; fields set afterwards do not count.
func (n *Network) Validate() error {
	n.prepare.Do(n.complete)
	return n.err
}

func (n *Network) complete() {
	if n.DNS == nil {
		n.DNS = net.DefaultResolver
	}
	if n.DialContext == nil {
		n.DialContext = ownDial
	}
	n.ownDialer = isOwnDial(n.DialContext)
	if n.ProxySelector == nil {
		n.ProxySelector = proxy.FromEnvironment()
	}
	if n.ProxyAuthenticator == nil {
		n.ProxyAuthenticator = auth.None
	}
	if n.ConnectionListener == nil {
		n.ConnectionListener = event.NopConnectionListener{}
	}
	if n.Protocols == nil {
		n.Protocols = []string{HTTP2, HTTP1}
	}
	n.ProxyConnectHeader = n.ProxyConnectHeader.Clone()
	n.err = errors.Join(checkProtocols(n.Protocols), n.checkTLS(), checkPing(n.PingInterval),
		checkWindows(n.HTTP2StreamWindow, n.HTTP2ConnectionWindow), checkConnectHeader(n.ProxyConnectHeader))
	n.tls = n.completeTLS()
	n.proxyTLS = n.completeProxyTLS()
}

var defaultDialer = &net.Dialer{KeepAlive: 30 * time.Second}

func ownDial(ctx context.Context, network, addr string) (net.Conn, error) {
	return defaultDialer.DialContext(ctx, network, addr)
}

// isOwnDial reports whether dial is ownDial, which no closure shares its code with.
func isOwnDial(dial func(context.Context, string, string) (net.Conn, error)) bool {
	return reflect.ValueOf(dial).Pointer() == reflect.ValueOf(ownDial).Pointer()
}

// OwnDialer reports whether sockets are opened by our own net.Dialer, which is
// known to obey its context.
func (n *Network) OwnDialer() bool { return n.ownDialer }

// PriorKnowledge reports whether HTTP/2 is spoken without asking (RFC 9113 3.3).
func (n *Network) PriorKnowledge() bool {
	return len(n.Protocols) == 1 && n.Protocols[0] == H2C
}

func checkProtocols(names []string) error {
	seen := map[string]bool{}
	for _, name := range names {
		switch name {
		case HTTP1, HTTP2, H2C:
		default:
			return fmt.Errorf("unknown protocol %q: want %q, %q or %q", name, HTTP2, HTTP1, H2C)
		}
		if seen[name] {
			return fmt.Errorf("protocol %q is named twice", name)
		}
		seen[name] = true
	}
	switch {
	case len(names) == 0:
		return errors.New("no protocol is named")
	case seen[H2C] && len(names) > 1:
		return fmt.Errorf("protocol %q excludes others: prior knowledge leaves nothing to negotiate", H2C)
	case !seen[H2C] && !seen[HTTP1]:
		return fmt.Errorf("protocols must include %q: a cleartext or older server speaks nothing else", HTTP1)
	}
	return nil
}

func (n *Network) checkTLS() error {
	if n.HostnameVerifier != nil && n.TLSConfig != nil && n.TLSConfig.VerifyPeerCertificate != nil {
		return errors.New("a HostnameVerifier excludes a TLSConfig with VerifyPeerCertificate: it would be called without verified chains")
	}
	return nil
}

func checkPing(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("ping interval is negative: %v", d)
	}
	return nil
}

// The bounds of a window of HTTP/2: what every client begins with, rounded, and
// what the protocol allows (RFC 9113 6.9.1).
const (
	leastWindow = 1 << 16
	maxWindow   = 1<<31 - 1
)

// checkWindows checks the receive windows of HTTP/2; 0 is the default, which suits
// the other.
func checkWindows(stream, conn int) error {
	switch {
	case stream != 0 && stream < leastWindow:
		return fmt.Errorf("a stream's window of %d bytes is less than %d", stream, leastWindow)
	case stream > maxWindow/2:
		return fmt.Errorf("a stream's window of %d bytes is more than %d", stream, maxWindow/2)
	case conn != 0 && conn < 2*leastWindow:
		return fmt.Errorf("a connection's window of %d bytes is less than %d", conn, 2*leastWindow)
	case conn > maxWindow:
		return fmt.Errorf("a connection's window of %d bytes is more than %d", conn, maxWindow)
	case conn != 0 && stream > conn/2:
		return fmt.Errorf("a stream's window of %d bytes is more than half of the connection's, %d", stream, conn)
	}
	return nil
}
