package route

import (
	"net"
	"strconv"

	"github.com/catena-http/catena/proxy"
)

// Route is one way to an Address: through Proxy, by a socket to SocketAddr.
type Route struct {
	Address Address
	// Proxy is the proxy on the way; the zero Proxy is direct.
	Proxy proxy.Proxy
	// Shown is Proxy without its password, as events and errors carry it.
	Shown proxy.Proxy
	// SocketHost is what is dialed: an IP address of the origin or of the proxy.
	SocketHost string
	SocketPort int
	// Postponed is true where the Database remembered a failure of the route.
	Postponed bool
}

// SocketAddr is the "ip:port" that is dialed.
func (r *Route) SocketAddr() string {
	return net.JoinHostPort(r.SocketHost, strconv.Itoa(r.SocketPort))
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

func (r *Route) String() string {
	s := r.Address.HostPort()
	if at := r.SocketAddr(); at != s {
		s = r.Address.Host + " at " + at
	}
	if !r.Proxy.IsDirect() {
		s += " via " + r.Proxy.String()
	}
	return s
}

// key tells routes apart in the Database.
type key struct {
	address Address
	proxy   string
	socket  string
}

func (r *Route) key() key {
	k := key{address: r.Address, socket: r.SocketAddr()}
	if !r.Proxy.IsDirect() {
		k.proxy = r.Proxy.String()
	}
	return k
}
