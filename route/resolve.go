package route

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// Error is a failure to work out routes: of the proxy selector, or of finding the
// addresses of a way.
type Error struct {
	Step  event.Step  // "proxyselect" or "dns"
	Host  string      // the host whose addresses were wanted; "" of a selector
	Proxy proxy.Proxy // the proxy on the way, without its password; zero: direct
	// OfProxy is true where Host is the proxy's; otherwise it is the origin's.
	OfProxy bool
	Err     error
}

func (e *Error) Error() string {
	switch {
	case e.Step == event.StepProxySelect:
		return "select a proxy: " + e.Err.Error()
	case e.OfProxy:
		return fmt.Sprintf("look up proxy %s: %v", e.Host, e.Err)
	case !e.Proxy.IsDirect():
		return fmt.Sprintf("reach %s through proxy %s: %v", e.Host, e.Proxy, e.Err)
	default:
		return e.Err.Error()
	}
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// routesThrough is every route by one proxy, or by none.
func (s *Selector) routesThrough(ctx context.Context, w way) ([]Route, error) {
	if port := s.address.Port; port < 1 || port > 65535 { // an Address that NewAddress did not make
		return nil, s.noOrigin(w, fmt.Errorf("port %d is out of range: want 1 to 65535", port))
	}
	switch w.proxy.Type {
	case proxy.Direct:
		hosts, err := s.origins(ctx, w)
		return s.routes(w, hosts, s.address.Port), err
	case proxy.HTTP, proxy.HTTPS:
		hosts, err := s.proxyHosts(ctx, w)
		return s.routes(w, hosts, w.proxy.EffectivePort()), err
	}
	return s.socksRoutes(ctx, w)
}

// routes has one route for each host, in order.
func (s *Selector) routes(w way, hosts []string, port int) []Route {
	routes := make([]Route, len(hosts))
	for i, host := range hosts {
		routes[i] = Route{Address: s.address, Proxy: w.proxy, Shown: w.shown, SocketHost: host, SocketPort: port}
	}
	return routes
}

// socksRoutes has a route for each address of the proxy to each target. A target
// that can't be said in the proxy's language is an error before anything is looked
// up. All of the proxy's addresses are tried for a target before the next one is: one
// that is down costs a timeout, a refused target a round trip.
func (s *Selector) socksRoutes(ctx context.Context, w way) ([]Route, error) {
	if err := speakable(s.address.Host, w.proxy.Type); err != nil {
		return nil, s.noOrigin(w, err)
	}
	through, err := s.proxyHosts(ctx, w)
	if err != nil {
		return nil, err
	}
	targets := []string{s.address.Host}
	if w.proxy.Type == proxy.SOCKS4 {
		if targets, err = s.origins(ctx, w); err != nil {
			return nil, err
		}
	}
	routes := make([]Route, 0, len(targets)*len(through))
	for _, target := range s.routes(w, targets, s.address.Port) {
		for _, target.SOCKSHost = range through {
			routes = append(routes, target)
		}
	}
	return routes, nil
}

// speakable says why a SOCKS proxy can't be told to connect to host.
func speakable(host string, t proxy.Type) error {
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil: // a name
		return nil
	case ip.Zone() != "":
		return errors.New("a zone means nothing to a proxy")
	case ip.Is6() && t != proxy.SOCKS5:
		return fmt.Errorf("%s carries no IPv6 address", t)
	}
	return nil
}

// origins is the origin's addresses that can be used on the way: those of version
// 4 through SOCKS4.
func (s *Selector) origins(ctx context.Context, w way) ([]string, error) {
	addrs, err := s.addresses(ctx, s.address.Host)
	if err != nil {
		return nil, s.noOrigin(w, err)
	}
	hosts := make([]string, 0, len(addrs))
	for _, addr := range addrs {
		if addr.Is4() || w.proxy.Type != proxy.SOCKS4 {
			hosts = append(hosts, addr.String())
		}
	}
	if len(hosts) == 0 {
		return nil, s.noOrigin(w, fmt.Errorf("it has no IPv4 address, and %s carries no other", w.proxy.Type))
	}
	return hosts, nil
}

func (s *Selector) noOrigin(w way, err error) error {
	return &Error{Step: event.StepDNS, Host: s.address.Host, Proxy: w.shown, Err: err}
}

// proxyHosts is the proxy's addresses. The proxy selector is told if there are none.
func (s *Selector) proxyHosts(ctx context.Context, w way) ([]string, error) {
	host, err := CanonicalHost(w.proxy.Host)
	if err != nil {
		return nil, s.noProxy(ctx, w, w.proxy.Host, err)
	}
	addrs, err := s.addresses(ctx, host)
	if err != nil {
		return nil, s.noProxy(ctx, w, host, err)
	}
	hosts := make([]string, len(addrs))
	for i, addr := range addrs {
		hosts[i] = addr.String()
	}
	return hosts, nil
}

func (s *Selector) noProxy(ctx context.Context, w way, host string, err error) error {
	err = &Error{Step: event.StepDNS, Host: host, Proxy: w.shown, OfProxy: true, Err: err}
	if ctx.Err() == nil {
		s.address.Network.ProxySelector.ConnectFailed(s.address.URL(), w.proxy, err)
	}
	return err
}

// addresses looks host up, unless it is an address.
func (s *Selector) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	return s.lookup(ctx, host)
}

func (s *Selector) lookup(ctx context.Context, host string) (addrs []netip.Addr, err error) {
	err = errPanicked
	defer func() { s.listener.DNSEnd(s.call, host, addrs, err) }()
	s.listener.DNSStart(s.call, host)
	addrs, err = s.address.Network.Lookup(ctx, host)
	return addrs, err
}
