package route

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// checkProxies makes a failure of the selector of a proxy that no connection can be
// made by: a list with a mistake in it is not followed in part.
func checkProxies(proxies []proxy.Proxy) error {
	for _, p := range proxies {
		if err := p.Validate(); err != nil {
			return fmt.Errorf("the selector lists %s, which can't be used: %w", p, err)
		}
	}
	return nil
}

// errPanicked is what a step ends with in which the application's code panics.
var errPanicked = errors.New("the proxy selector or a listener panicked")

func (s *Selector) selectProxies(ctx context.Context) error {
	u := s.address.URL()
	returned := false
	defer func() {
		if !returned {
			s.listener.ProxySelectEnd(s.call, u, nil, errPanicked)
		}
	}()
	s.listener.ProxySelectStart(s.call, u)
	proxies, err := s.address.Network.ProxySelector.Select(ctx, u)
	if err == nil {
		err = checkProxies(proxies)
	}
	returned = true
	switch {
	case err != nil:
		proxies = nil
	case len(proxies) == 0:
		proxies = []proxy.Proxy{{}}
	}
	shown := make([]proxy.Proxy, len(proxies))
	s.proxies = make([]way, 0, len(proxies))
	for i, p := range proxies {
		shown[i] = p.Redacted()
		if !slices.ContainsFunc(s.proxies, func(w way) bool { return w.proxy.Equal(p) }) {
			s.proxies = append(s.proxies, way{p, shown[i]})
		}
	}
	s.listener.ProxySelectEnd(s.call, u, shown, err)
	if err != nil {
		return &Error{Step: event.StepProxySelect, Err: err}
	}
	return nil
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
