package connection

import (
	"time"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

// oldestOf is the oldest idle connection of a Network or of those derived from it; nil: of
// any. There may be none. Called with mu held.
func (p *Pool) oldestOf(n *route.Network) *RealConnection {
	for c := range p.idle.All() {
		if n == nil || c.address.Network.DerivedFrom(n) {
			return c
		}
	}
	return nil
}

// wakeAt lets the timer fire at t at the latest. Called with mu held.
func (p *Pool) wakeAt(t time.Time) {
	if !p.wake.IsZero() && !t.Before(p.wake) {
		return
	}
	p.wake = t
	if p.timer == nil {
		p.timer = time.AfterFunc(time.Until(t), p.evictExpired)
		return
	}
	p.timer.Reset(time.Until(t))
}

// sleep takes the timer down; the pool is empty. Called with mu held.
func (p *Pool) sleep() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer, p.wake = nil, time.Time{}
	}
}

// drop is a connection that the pool no longer knows and why it is to be closed,
// and who gets its place: what is left to do without mu.
type drop struct {
	conn   *RealConnection
	why    event.Reason
	grants []grant // to calls that waited beside an idle HTTP/2 connection without streams
}

// closeAll closes all of them, whatever a listener does.
func closeAll(dropped []drop) {
	if len(dropped) == 0 {
		return
	}
	d := dropped[0]
	defer closeAll(dropped[1:])
	defer d.conn.close(d.why)
	deliver(d.grants)
	d.conn.observer.noNewExchanges(d.conn, d.why)
}

// evictExpired is the timer's: it closes what has been idle for too long and
// sets the timer for the next.
func (p *Pool) evictExpired() {
	p.mu.Lock()
	now := time.Now()
	p.wake = time.Time{}
	var dropped []drop
	var next time.Time
	for c := range p.idle.All() {
		if !now.Before(c.expires) {
			dropped = append(dropped, p.evict(c, event.ReasonIdleTimeout))
		} else if next.IsZero() || c.expires.Before(next) {
			next = c.expires
		}
	}
	if !next.IsZero() {
		p.wakeAt(next)
	}
	p.mu.Unlock()
	closeAll(dropped)
}

// EvictAll closes the idle connections. Those in use go on, and may be pooled
// again.
func (p *Pool) EvictAll() { p.evictIdle(nil, event.ReasonEvicted) }

// EvictNetwork closes the idle connections of n and of the Networks derived from
// it, for whoever ends with n: nobody else can use them. Those in use are closed
// when their calls let go of them.
func (p *Pool) EvictNetwork(n *route.Network) {
	p.mu.Lock()
	for a, ap := range p.addresses {
		if a.Network.DerivedFrom(n) {
			ap.shut = true
		}
	}
	p.mu.Unlock()
	p.evictIdle(n, event.ReasonEvicted)
}

// evictIdle evicts the idle connections of a Network and of those derived from
// it; nil: all.
func (p *Pool) evictIdle(of *route.Network, why event.Reason) {
	p.mu.Lock()
	var dropped []drop
	for c := p.oldestOf(of); c != nil; c = p.oldestOf(of) {
		dropped = append(dropped, p.evict(c, why))
	}
	p.mu.Unlock()
	closeAll(dropped)
}

// Close closes the idle connections and keeps none from now on: those in use are
// closed when their calls let go of them. Idempotent.
func (p *Pool) Close() {
	p.mu.Lock()
	p.shut = true
	p.mu.Unlock()
	p.evictIdle(nil, event.ReasonPoolClosed)
}

// IdleCount is the number of idle connections.
func (p *Pool) IdleCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle.Len()
}

// ConnectionCount is the number of connections, idle and in use.
func (p *Pool) ConnectionCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// Stats are the pool's counters, as of one moment.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Open, s.Idle = p.open, p.idle.Len()
	for _, ap := range p.addresses {
		s.Waiting += ap.waiters.len
	}
	return s
}
