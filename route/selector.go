package route

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// Selection is the routes of one proxy, or the postponed routes of all, in the
// order in which they are tried.
type Selection struct {
	routes []Route
	next   int
}

// HasNext reports whether Next has another route.
func (s *Selection) HasNext() bool { return s != nil && s.next < len(s.routes) }

// Next is the next route; the caller has asked HasNext.
func (s *Selection) Next() *Route {
	s.next++
	return &s.routes[s.next-1]
}

// All is every route of the selection, the taken ones too. Read-only.
func (s *Selection) All() []Route { return s.routes }

// Selector yields the routes of one address for one call, by the rules in the
// package comment. It is used by the call's goroutine alone.
type Selector struct {
	address  Address
	database *Database
	call     event.Call
	listener event.Listener

	asked     bool // the proxy selector was
	proxies   []way
	postponed []Route
	tried     *Route // left out; nil: none
}

// way is a proxy, and the same without its password: made once, so that all
// events about it carry equal values.
type way struct{ proxy, shown proxy.Proxy }

// NewSelector is a Selector of a's routes that reports to listener as call.
func NewSelector(a Address, d *Database, call event.Call, listener event.Listener) *Selector {
	return &Selector{address: a, database: d, call: call, listener: listener}
}

// LeaveOut lets the Selector yield every route but r, which has been tried.
func (s *Selector) LeaveOut(r *Route) { s.tried = r }

// HasNext reports whether Next may have another selection.
func (s *Selector) HasNext() bool {
	return !s.asked || len(s.proxies) > 0 || len(s.postponed) > 0
}

// Error is a failure to work out routes: of the proxy selector, or of a lookup.
type Error struct {
	Step  event.Step  // "proxyselect" or "dns"
	Host  string      // the host that was looked up
	Proxy proxy.Proxy // the proxy that host belongs to; zero: the origin's
	Err   error
}

func (e *Error) Error() string {
	switch {
	case e.Step == event.StepProxySelect:
		return "select a proxy: " + e.Err.Error()
	case !e.Proxy.IsDirect():
		return fmt.Sprintf("look up proxy %s: %v", e.Host, e.Err)
	default:
		return e.Err.Error()
	}
}

func (e *Error) Unwrap() error { return e.Err }

// ErrExhausted is what Next returns when no selection is left.
var ErrExhausted = errors.New("no route is left")

// Next asks the proxy selector, once, and looks up the next proxy's host. An
// *Error of a lookup does not end the Selector: HasNext tells whether another
// proxy is left. It never returns an empty selection.
func (s *Selector) Next(ctx context.Context) (*Selection, error) {
	if !s.asked {
		s.asked = true
		if err := s.selectProxies(ctx); err != nil {
			return nil, err
		}
	}
	for len(s.proxies) > 0 {
		p := s.proxies[0]
		s.proxies = s.proxies[1:]
		routes, err := s.routesThrough(ctx, p)
		if err != nil {
			return nil, err
		}
		if good := s.postpone(routes); len(good) > 0 {
			return &Selection{routes: good}, nil
		}
	}
	if len(s.postponed) == 0 {
		return nil, ErrExhausted
	}
	last := &Selection{routes: s.postponed}
	s.postponed = nil
	return last, nil
}

// errPanicked is what a step ends with in which the application's code panics.
var errPanicked = errors.New("the proxy selector or a listener panicked")

func (s *Selector) selectProxies(ctx context.Context) error {
	u := &url.URL{Scheme: s.address.Scheme, Host: s.address.HostPort(), Path: "/"}
	returned := false
	defer func() {
		if !returned {
			s.listener.ProxySelectEnd(s.call, u, nil, errPanicked)
		}
	}()
	s.listener.ProxySelectStart(s.call, u)
	proxies, err := s.address.Network.ProxySelector.Select(ctx, u)
	returned = true
	if err == nil && len(proxies) == 0 {
		proxies = []proxy.Proxy{{}}
	}
	if err != nil {
		proxies = nil
	}
	shown := make([]proxy.Proxy, len(proxies))
	s.proxies = make([]way, len(proxies))
	for i, p := range proxies {
		shown[i] = p.Redacted()
		s.proxies[i] = way{p, shown[i]}
	}
	s.listener.ProxySelectEnd(s.call, u, shown, err)
	if err != nil {
		return &Error{Step: event.StepProxySelect, Err: err}
	}
	return nil
}

func (s *Selector) routesThrough(ctx context.Context, w way) ([]Route, error) {
	p := w.proxy
	host, port := s.address.Host, s.address.Port
	if !p.IsDirect() && !resolvesNames(p) {
		var err error
		if host, err = CanonicalHost(p.Host); err != nil {
			return nil, &Error{Step: event.StepDNS, Host: p.Host, Proxy: w.shown, Err: err}
		}
		port = p.EffectivePort()
	}
	if port < 1 || port > 65535 {
		return nil, &Error{Step: event.StepDNS, Host: host, Proxy: w.shown, Err: fmt.Errorf("port %d is out of range", port)}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return []Route{{Address: s.address, Proxy: p, Shown: w.shown, SocketHost: ip.Unmap().String(), SocketPort: port}}, nil
	}
	if resolvesNames(p) {
		return []Route{{Address: s.address, Proxy: p, Shown: w.shown, SocketHost: host, SocketPort: port}}, nil
	}
	addrs, err := s.lookup(ctx, host)
	if err != nil {
		return nil, &Error{Step: event.StepDNS, Host: host, Proxy: w.shown, Err: err}
	}
	routes := make([]Route, len(addrs))
	for i, addr := range addrs {
		routes[i] = Route{Address: s.address, Proxy: p, Shown: w.shown, SocketHost: addr.String(), SocketPort: port}
	}
	return routes, nil
}

func (s *Selector) lookup(ctx context.Context, host string) (addrs []netip.Addr, err error) {
	err = errPanicked
	defer func() { s.listener.DNSEnd(s.call, host, addrs, err) }()
	s.listener.DNSStart(s.call, host)
	addrs, err = s.address.Network.Lookup(ctx, host)
	return addrs, err
}

// resolvesNames reports whether p is a SOCKS proxy that is given the origin's
// name.
func resolvesNames(p proxy.Proxy) bool {
	return p.Type == proxy.SOCKS4A || p.Type == proxy.SOCKS5
}

// postpone keeps back the routes that failed before and returns the others,
// without the one that is left out.
func (s *Selector) postpone(routes []Route) []Route {
	good := routes[:0:0]
	for _, r := range routes {
		if s.tried != nil && r.key() == s.tried.key() {
			continue
		}
		if !s.database.ShouldPostpone(&r) {
			good = append(good, r)
			continue
		}
		r.Postponed = true
		s.postponed = append(s.postponed, r)
		s.listener.RouteDecision(s.call, r.SocketAddr(), r.Shown, false, event.ReasonPostponed)
	}
	return good
}
