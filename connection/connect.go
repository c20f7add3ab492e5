package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/route"
)

// ErrPriorKnowledge is what an https URL fails with where the protocols are "h2c"
// alone: prior knowledge of cleartext HTTP/2 excludes TLS.
var ErrPriorKnowledge = errors.New("the protocols exclude the URL")

// supported reports what no route to the address could mend.
func supported(a route.Address) error {
	if a.Secure() && a.Network.PriorKnowledge() {
		return fmt.Errorf("%w: %q is prior knowledge of cleartext HTTP/2, which excludes https", ErrPriorKnowledge, route.H2C)
	}
	return nil
}

// connect opens a connection by the first route that works. The caller has the
// pool's leave to open one. The error is the first route's, or the one that
// ended the search.
func (a *StreamAllocation) connect(ctx context.Context, t Terms) (conn *RealConnection, reused bool, err error) {
	opened := false
	defer func() {
		if !opened {
			a.pool.giveUp(a.address)
		}
	}()
	if err := supported(a.address); err != nil {
		a.record(Attempt{Step: event.StepTLS, Why: event.ReasonUnsupported, Err: err})
		return nil, false, err
	}
	var first error
	for {
		r, c, err := a.nextRoute(ctx)
		if c != nil {
			return c, true, nil
		}
		if err == nil {
			conn, err = a.connectBy(ctx, r, t)
		}
		if err == nil {
			opened = true
			c, reused := a.adopt(ctx, conn)
			return c, reused, nil
		}
		if first == nil {
			first = err
		}
		switch why := a.attempts[len(a.attempts)-1].Why; {
		case why == event.ReasonNextRoute:
		case why == event.ReasonNoMoreRoutes:
			return nil, false, first
		default:
			return nil, false, err
		}
	}
}

// nextRoute is the route to try, or a pooled connection found by it. A failure to
// work one out is recorded as an attempt.
func (a *StreamAllocation) nextRoute(ctx context.Context) (*route.Route, *RealConnection, error) {
	if r := a.locked; r != nil {
		a.locked = nil
		if a.selector == nil {
			a.tried = r
		}
		a.listener.RouteDecision(a.call, r.SocketAddr(), r.Shown, true, event.ReasonSameRoute)
		return r, nil, nil
	}
	if !a.selection.HasNext() {
		if a.selector == nil {
			a.selector = route.NewSelector(a.address, a.database, a.call, a.listener)
			a.selector.LeaveOut(a.tried)
		}
		began := time.Now()
		selection, err := a.selector.Next(ctx)
		if err == nil {
			err = lifetime.Cause(ctx)
		}
		if errors.Is(err, route.ErrExhausted) && a.tried != nil {
			return nil, nil, a.nothingElse()
		}
		if err != nil {
			return nil, nil, a.unroutable(ctx, err, time.Since(began))
		}
		a.selection = selection
		if c := a.pooledBy(ctx, selection); c != nil {
			return nil, c, nil
		}
	}
	r := a.selection.Next()
	why := event.ReasonNext
	if r.Postponed {
		why = event.ReasonPostponed
	}
	a.listener.RouteDecision(a.call, r.SocketAddr(), r.Shown, true, why)
	return r, nil, nil
}

// pooledBy looks the pool through again, by the routes just resolved: a
// connection to the same plain HTTP proxy serves whatever its last origin was.
func (a *StreamAllocation) pooledBy(ctx context.Context, s *route.Selection) *RealConnection {
	routes := s.All()
	if len(routes) == 0 || !routes[0].Forwarded() {
		return nil
	}
	for c := a.pool.takeForwarded(&routes[0]); c != nil; c = a.pool.takeForwarded(&routes[0]) {
		if a.accept(ctx, c, event.ReasonSameProxy) {
			return c
		}
	}
	return nil
}

// unroutable records that no route could be worked out.
func (a *StreamAllocation) unroutable(ctx context.Context, err error, took time.Duration) error {
	try := Attempt{Step: event.StepDNS, Duration: took, Err: err, Why: event.ReasonNoMoreRoutes}
	var re *route.Error
	if errors.As(err, &re) {
		try.Step, try.Addr, try.Proxy = re.Step, re.Host, re.Proxy
	}
	switch cause := lifetime.Cause(ctx); {
	case cause != nil:
		try.Err, try.Why = cause, event.ReasonCanceled
	case try.Step == event.StepDNS && a.selector.HasNext():
		try.Retried, try.Why = true, event.ReasonNextRoute
	}
	a.record(try)
	return try.Err
}

// nothingElse is the failure of the last try, when a lookup has shown that there
// is no other route than the one it took: it has no other to follow after all.
func (a *StreamAllocation) nothingElse() error {
	last := &a.attempts[len(a.attempts)-1]
	last.Retried, last.Why = false, event.ReasonNoMoreRoutes
	a.whyNot = last.Why
	return last.Err
}

// connectBy opens a connection by one route. A failure is recorded as an attempt,
// and remembered where it speaks against the route.
func (a *StreamAllocation) connectBy(ctx context.Context, r *route.Route, t Terms) (*RealConnection, error) {
	began := time.Now()
	d := &dialer{route: r, terms: t, call: a.call, listener: a.listener, pool: a.pool}
	c, err := d.connect(ctx)
	if err == nil {
		a.database.Connected(r)
		return c, nil
	}
	try := Attempt{Addr: r.SocketAddr(), Proxy: r.Shown, Step: d.step, Duration: time.Since(began), Err: err}
	switch {
	case lifetime.Cause(ctx) != nil:
		try.Why = event.ReasonCanceled
	case d.foreign:
		try.Why = event.ReasonNotRecoverable
	case untrusted(err) && d.step != event.StepProxy:
		try.Why = event.ReasonCertificate
	default:
		switch {
		case untrusted(err): // there may be another proxy, but this one may be back soon
		case d.conn == nil: // no socket was opened
			a.database.Unreachable(r)
		default:
			a.database.Failed(r)
		}
		a.tellSelector(r, err)
		try.Why = event.ReasonNoMoreRoutes
		if a.hasNext() {
			try.Retried, try.Why = true, event.ReasonNextRoute
		}
	}
	a.record(try)
	return nil, err
}

// blame remembers that a route failed, and tells the proxy selector.
func (a *StreamAllocation) blame(r *route.Route, err error) {
	a.database.Failed(r)
	a.tellSelector(r, err)
}

func (a *StreamAllocation) tellSelector(r *route.Route, err error) {
	if !r.Proxy.IsDirect() {
		r.Address.Network.ProxySelector.ConnectFailed(r.Address.URL(), r.Proxy, err)
	}
}

// untrusted reports whether the peer's certificate, or its name, was refused. The
// origin's then counts for all its addresses.
func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.As(err, &verification)
}

// hasNext reports whether another route is left to try.
func (a *StreamAllocation) hasNext() bool {
	return a.locked != nil || a.selection.HasNext() || a.selector == nil || a.selector.HasNext()
}

// adopt pools a connection just opened and takes hold of it, or of the one that
// another call opened to the same HTTP/2 server meanwhile, if that has a stream
// left.
func (a *StreamAllocation) adopt(ctx context.Context, c *RealConnection) (use *RealConnection, reused bool) {
	if c.multiplexed() {
		// Nobody else can have taken its streams.
		c.http2.Reserve()
	}
	for {
		use, grants := a.pool.add(c)
		deliver(grants)
		if use == c {
			if c.multiplexed() {
				c.http2.OnRetire(func(error) { c.retire(whyRetired(c.http2)) })
			}
			a.acquire(c)
			return c, false
		}
		if use.http2.Confirm(ctx) {
			a.conn = use
			a.pool.giveUp(a.address)
			a.closeDuplicate(c, use)
			a.acquire(use)
			return use, true
		}
		a.pool.letGo(use)
	}
}

// closeDuplicate closes a connection that the pool has not taken, for use.
func (a *StreamAllocation) closeDuplicate(c, use *RealConnection) {
	defer c.close(event.ReasonDuplicate)
	a.listener.ReuseDecision(a.call, use, true, event.ReasonDuplicate)
	c.observer.noNewExchanges(c, event.ReasonDuplicate)
}

// whyRetired tells a server that said goodbye from a connection that broke.
func whyRetired(c *http2.Conn) event.Reason {
	if c.GoneAway() {
		return event.ReasonGoAway
	}
	return event.ReasonUnhealthy
}
