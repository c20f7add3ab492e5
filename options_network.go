package catena

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// The options on this page decide how servers are reached. With makes a client
// with one of them share no connection with the client it came from.

// reach makes an option of a change to the Network.
func reach(change func(*route.Network)) Option {
	return option(func(s *settings) error {
		s.reach = append(s.reach, change)
		return nil
	})
}

// WithProxy sends every call through p, and through nothing else. Proxy{} is
// direct.
func WithProxy(p proxy.Proxy) Option {
	return option(func(s *settings) error {
		if err := p.Validate(); err != nil {
			return fmt.Errorf("WithProxy: %w", err)
		}
		return WithProxySelector(proxy.Fixed(p)).apply(s)
	})
}

// WithProxySelector asks sel for the proxies of a URL whenever a new connection
// is needed. Default, and nil: proxy.FromEnvironment().
func WithProxySelector(sel proxy.Selector) Option {
	return reach(func(n *route.Network) { n.ProxySelector = sel })
}

// WithProxyTLSConfig is used, as a copy, for TLS with https:// proxies, and for
// nothing else: WithTLSConfig and WithHostnameVerifier are for origins. The proxy's
// name is verified by it; ServerName is filled in where it is empty. Default, and nil:
// the roots of WithTLSConfig, and no client certificates.
func WithProxyTLSConfig(c *tls.Config) Option {
	c = c.Clone()
	return reach(func(n *route.Network) { n.ProxyTLSConfig = c.Clone() })
}

// WithProxyConnectHeader sends h, as a copy, with every CONNECT to a proxy, besides
// the fields that it has anyway: Host, Proxy-Connection, User-Agent, which h may
// replace, and Proxy-Authorization, for which a proxy's User goes before h. Fields
// about the connection or the length of the message are an error of New. h goes to no
// origin. Default, and nil: nothing more.
func WithProxyConnectHeader(h http.Header) Option {
	h = h.Clone()
	return option(func(s *settings) error {
		if err := (&route.Network{ProxyConnectHeader: h}).Validate(); err != nil {
			return fmt.Errorf("WithProxyConnectHeader: %w", err)
		}
		return reach(func(n *route.Network) { n.ProxyConnectHeader = h.Clone() }).apply(s)
	})
}

// WithProxyAuthenticator answers the 407 challenges of HTTP and HTTPS proxies, to a
// CONNECT too; before the first CONNECT to a proxy for which no credentials are set it
// is asked with [auth.PreemptiveScheme]. Credentials that were refused a moment ago
// are not sent again. Default, and nil: none answers.
func WithProxyAuthenticator(a auth.Authenticator) Option {
	return reach(func(n *route.Network) { n.ProxyAuthenticator = a })
}

// WithDNS resolves names by d. Default, and nil: net.DefaultResolver.
func WithDNS(d route.DNS) Option {
	return reach(func(n *route.Network) { n.DNS = d })
}

// WithDialContext opens sockets by dial, which gets network "tcp" and a resolved
// "ip:port", the proxy's where there is one. Default, and nil: a net.Dialer. For
// a server on a Unix socket, ignore both and dial its path.
func WithDialContext(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return reach(func(n *route.Network) { n.DialContext = dial })
}

// WithTLSConfig is used, as a copy, for TLS with origins. ServerName and
// NextProtos are filled in where they are empty, and sessions are cached where it
// has no cache.
func WithTLSConfig(c *tls.Config) Option {
	c = c.Clone()
	return reach(func(n *route.Network) { n.TLSConfig = c.Clone() })
}

// WithHostnameVerifier replaces the check of the certificate's name, and only
// that: the chain is verified before, and state.VerifiedChains holds it. nil: the
// usual check.
func WithHostnameVerifier(verify func(host string, state *tls.ConnectionState) error) Option {
	return reach(func(n *route.Network) { n.HostnameVerifier = verify })
}

// WithProtocols sets the protocols spoken, by preference: "h2" and "http/1.1",
// the default; "http/1.1" alone; or "h2c" alone, which is cleartext HTTP/2 by
// prior knowledge.
func WithProtocols(names ...string) Option {
	names = slices.Clone(names)
	return option(func(s *settings) error {
		if err := (&route.Network{Protocols: append([]string{}, names...)}).Validate(); err != nil {
			return fmt.Errorf("WithProtocols: %w", err)
		}
		return reach(func(n *route.Network) { n.Protocols = slices.Clone(names) }).apply(s)
	})
}

// WithPingInterval pings an HTTP/2 connection that has been silent for d, and
// closes one that does not answer. Default: 0, no pings.
func WithPingInterval(d time.Duration) Option {
	return option(func(s *settings) error {
		if d < 0 {
			return fmt.Errorf("WithPingInterval: %v is negative", d)
		}
		return reach(func(n *route.Network) { n.PingInterval = d }).apply(s)
	})
}

// WithHTTP2Windows sets how many bytes of responses an HTTP/2 server may send that
// nobody has read yet: of one stream, and of all streams of a connection together.
// They decide how fast bodies come from far away, stream bytes a round trip, and how
// much memory those take that are read slowly or not at all.
//
// A stream has its whole window from its first byte on. As long as readers keep up the
// connection has half of its own; once half of that lies unread it gets the rest, and
// from then on streams have 256 KiB each at most unless they are read, so that bodies
// that nobody reads leave room for others.
//
// 0 is the default, which suits the other: 16 MiB, or a quarter of connection if that
// is less; 64 MiB, or four times stream if that is more. Errors of New are a stream
// of less than 64 KiB or more than half of connection, and a connection of less than
// 128 KiB or more than 2^31-1 bytes (RFC 9113 6.9.1).
func WithHTTP2Windows(stream, connection int) Option {
	return option(func(s *settings) error {
		windows := &route.Network{HTTP2StreamWindow: stream, HTTP2ConnectionWindow: connection}
		if err := windows.Validate(); err != nil {
			return fmt.Errorf("WithHTTP2Windows: %w", err)
		}
		return reach(func(n *route.Network) {
			n.HTTP2StreamWindow, n.HTTP2ConnectionWindow = stream, connection
		}).apply(s)
	})
}

// WithConnectionListener is told the life of the client's connections. nil: none.
func WithConnectionListener(l event.ConnectionListener) Option {
	return reach(func(n *route.Network) { n.ConnectionListener = l })
}
