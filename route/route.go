package route

import (
	"net"
	"net/url"
	"strconv"

	"github.com/catena-http/catena/proxy"
)

// Route is one way to an Address: through Proxy, by a socket to DialAddr.
type Route struct {
	Address Address
	// Proxy is the proxy on the way; the zero Proxy is direct.
	Proxy proxy.Proxy
	// Shown is Proxy without its password, as events and errors carry it.
	Shown proxy.Proxy
	// SocketHost is an IP address of the origin or of the HTTP proxy. Of a route
	// through a SOCKS proxy it is what that is asked to connect to: an IP address of
	// the origin, or its name where the proxy resolves it.
	SocketHost string
	SocketPort int
	// SOCKSHost is the IP address of the SOCKS proxy; "" on other ways.
	SOCKSHost string
	// Postponed is true where the Database remembered a failure of the route.
	Postponed bool
}

// SocketAddr is the "ip:port" where the way leads, as events show it: the
// origin's or the HTTP proxy's, and "host:port" where a SOCKS proxy resolves the
// origin's name. It is what a SOCKS proxy is asked to connect to.
func (r *Route) SocketAddr() string {
	return net.JoinHostPort(r.SocketHost, strconv.Itoa(r.SocketPort))
}

// DialAddr is the "ip:port" that is dialed: the SOCKS proxy's, otherwise
// SocketAddr.
func (r *Route) DialAddr() string {
	if r.SOCKSHost == "" {
		return r.SocketAddr()
	}
	return net.JoinHostPort(r.SOCKSHost, strconv.Itoa(r.Proxy.EffectivePort()))
}

// RequiresTunnel reports whether the way leads through an HTTP proxy by CONNECT:
// the origin is https, or is spoken to in HTTP/2 by prior knowledge.
func (r *Route) RequiresTunnel() bool {
	if r.Proxy.Type != proxy.HTTP && r.Proxy.Type != proxy.HTTPS {
		return false
	}
	return r.Address.Secure() || r.Address.Network.PriorKnowledge()
}

// Forwarded reports whether an HTTP proxy passes requests on, message by
// message: they go to it in absolute-form and it may serve any http origin.
func (r *Route) Forwarded() bool {
	return (r.Proxy.Type == proxy.HTTP || r.Proxy.Type == proxy.HTTPS) && !r.RequiresTunnel()
}

// String is "host at ip:port via proxy", with what says nothing new left out.
func (r *Route) String() string {
	s := r.Address.HostPort()
	if at := r.SocketAddr(); at != s {
		s = r.Address.Host + " at " + at
	}
	if !r.Proxy.IsDirect() {
		s += " via " + r.Proxy.String()
	}
	if r.SOCKSHost != "" && r.SOCKSHost != r.Proxy.Host {
		s += " at " + r.DialAddr()
	}
	return s
}

// key tells routes apart in the Database, and so do credentials: a proxy that
// refused one user may serve the next.
type key struct {
	address Address
	proxy   string
	user    url.Userinfo
	socket  string
	dial    string
}

func (r *Route) key() key {
	k := key{address: r.Address, socket: r.SocketAddr()}
	if r.Proxy.IsDirect() {
		return k
	}
	k.proxy, k.dial = r.Proxy.String(), r.DialAddr()
	if r.Proxy.User != nil {
		k.user = *r.Proxy.User
	}
	return k
}

// door is what routes through the same address of the same proxy have in common, wherever
// they lead. Only those of routes through a proxy have a meaning.
func (r *Route) door() key {
	return key{address: Address{Network: r.Address.Network}, proxy: r.Proxy.Type.String(), dial: r.DialAddr()}
}
