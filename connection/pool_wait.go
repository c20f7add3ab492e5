package connection

import (
	"context"
	"time"

	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/route"
)

// waiter is a call that waits for a connection of an address, or for leave to
// open one. It is granted at most once.
type waiter struct {
	ready chan *RealConnection // nil is leave to open one
	next  *waiter
}

// waiterQueue is first come, first served. Guarded by Pool.mu.
type waiterQueue struct {
	head, tail *waiter
	len        int
}

func (q *waiterQueue) empty() bool { return q.len == 0 }

func (q *waiterQueue) push(w *waiter) {
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.len++
}

func (q *waiterQueue) pop() *waiter {
	w := q.head
	if q.head = w.next; q.head == nil {
		q.tail = nil
	}
	q.len--
	return w
}

func (q *waiterQueue) remove(w *waiter) bool {
	var before *waiter
	for at := q.head; at != nil; before, at = at, at.next {
		if at != w {
			continue
		}
		if before == nil {
			q.head = at.next
		} else {
			before.next = at.next
		}
		if q.tail == at {
			q.tail = before
		}
		q.len--
		return true
	}
	return false
}

// grant is what a waiter gets: a connection, held for it, or leave to open one.
type grant struct {
	to   *waiter
	conn *RealConnection
}

// deliver hands grants over; without mu, though it would not block.
func deliver(grants []grant) {
	for _, g := range grants {
		g.to.ready <- g.conn
	}
}

// serve gives what has become free at an address to those who wait longest.
// Called with mu held.
func (p *Pool) serve(ap *addressPool) (grants []grant) {
	for !ap.waiters.empty() {
		conn := p.share(ap)
		if conn == nil {
			if p.maxPerAddress > 0 && ap.open >= p.maxPerAddress {
				break
			}
			ap.open++
		}
		grants = append(grants, grant{ap.waiters.pop(), conn})
	}
	return grants
}

// mayOpen is leave to open a connection to a, to be given back by add or by
// giveUp. Where the address is at its limit it waits, first come, first served,
// and may be handed a connection instead.
func (p *Pool) mayOpen(ctx context.Context, a route.Address) (*RealConnection, error) {
	p.mu.Lock()
	ap := p.at(a)
	if p.maxPerAddress == 0 || ap.open < p.maxPerAddress {
		ap.open++
		p.mu.Unlock()
		return nil, nil
	}
	// What is pooled was looked through before, without success; but since then
	// a connection may have come back.
	if c, dropped := p.takeLocked(a, time.Now()); c != nil || len(dropped) > 0 {
		p.mu.Unlock()
		closeAll(dropped)
		if c != nil {
			return c, nil
		}
		return p.mayOpen(ctx, a)
	}
	w := &waiter{ready: make(chan *RealConnection, 1)}
	ap.waiters.push(w)
	p.mu.Unlock()

	select {
	case c := <-w.ready:
		return c, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	left := ap.waiters.remove(w)
	if left && ap.open == 0 && ap.waiters.empty() {
		delete(p.addresses, a)
	}
	p.mu.Unlock()
	if !left { // granted meanwhile: pass it on
		if c := <-w.ready; c != nil {
			if c.multiplexed() {
				c.http2.Unreserve()
			}
			p.letGo(c)
		} else {
			p.giveUp(a)
		}
	}
	return nil, lifetime.Cause(ctx)
}

// trade gives up a connection that was granted to a call and is of no use to it,
// for leave to open one in its place: the call does not queue up again. It reports
// false where the place is not free, because others hold the connection or it
// lives on; it is let go of.
func (p *Pool) trade(c *RealConnection) bool {
	p.mu.Lock()
	if c.holders > 1 || !c.noNewExchanges {
		p.mu.Unlock()
		p.letGo(c)
		return false
	}
	c.holders = 0
	p.at(c.address).open++
	p.remove(c)
	why := c.why
	p.mu.Unlock()
	closeAll([]drop{{conn: c, why: why}})
	return true
}

// giveUp returns the leave to open a connection to a: it could not be opened.
func (p *Pool) giveUp(a route.Address) {
	p.mu.Lock()
	ap := p.at(a)
	p.leave(a)
	grants := p.serve(ap)
	p.mu.Unlock()
	deliver(grants)
}

// letGo releases a held connection and does what follows from it.
func (p *Pool) letGo(c *RealConnection) {
	dropped, grants := p.release(c)
	deliver(grants)
	closeAll(dropped)
}
