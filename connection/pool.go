package connection

import (
	"fmt"
	"sync"
	"time"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/linked"
	"github.com/catena-http/catena/route"
)

// The defaults of PoolOptions.
const (
	DefaultMaxIdle           = 512
	DefaultMaxIdlePerAddress = 64
	DefaultKeepAlive         = 5 * time.Minute
)

// PoolOptions are the limits of a Pool. The zero value means the defaults.
type PoolOptions struct {
	// MaxIdle bounds the idle connections in all: 0 means 512, negative that
	// none is kept.
	MaxIdle int
	// MaxIdlePerAddress bounds the idle connections of an address: 0 means 64,
	// negative that none is kept.
	MaxIdlePerAddress int
	// MaxPerAddress bounds the open connections of an address, idle, in use and
	// being opened. A call that finds them all taken waits its turn. On HTTP/2
	// a connection is taken when the server allows it no further stream: 1 lets
	// calls wait for a stream instead of opening a second connection. 0 or
	// negative: no limit.
	MaxPerAddress int
	// KeepAlive is how long a connection may be idle: 0 means 5 minutes, negative
	// that none is kept. A server's "Keep-Alive: timeout" shortens it.
	KeepAlive time.Duration
}

// Pool keeps connections for reuse. Calls whose route.Address is equal share
// them. Safe for concurrent use; clients may share one.
type Pool struct {
	maxIdle, maxIdlePerAddress, maxPerAddress int
	keepAlive                                 time.Duration

	mu        sync.Mutex // guards the fields below and those that RealConnection names
	addresses map[route.Address]*addressPool
	idle      linked.List[RealConnection] // the one that became idle first at the beginning
	open      int                         // connections known, idle and in use
	timer     *time.Timer
	wake      time.Time // when timer fires; zero: it is not set
	shut      bool
	stats     Stats
}

// addressPool is what the pool knows of one address. Guarded by Pool.mu.
type addressPool struct {
	idle    []*RealConnection // HTTP/1.1, the one used last at the end
	shared  []*RealConnection // HTTP/2, idle or in use, while new streams are taken
	open    int               // connections known or being opened
	waiters waiterQueue
	shut    bool // keeps no connection: see EvictNetwork
}

// Stats are a pool's counters.
type Stats struct {
	Open    int // connections, idle and in use
	Idle    int // of these, idle
	Waiting int // calls that wait for a connection of their address

	Connected uint64 // connections that were opened and used
	Reused    uint64 // exchanges that began on a pooled connection
	Evicted   uint64 // idle connections that the pool closed: for age, for a limit, or told to
}

func (s Stats) String() string {
	return fmt.Sprintf("%d open, %d idle, %d waiting; %d connected, %d reused, %d evicted",
		s.Open, s.Idle, s.Waiting, s.Connected, s.Reused, s.Evicted)
}

// NewPool makes an empty pool.
func NewPool(opts PoolOptions) *Pool {
	p := &Pool{
		maxIdle:           withDefault(opts.MaxIdle, DefaultMaxIdle),
		maxIdlePerAddress: withDefault(opts.MaxIdlePerAddress, DefaultMaxIdlePerAddress),
		maxPerAddress:     max(opts.MaxPerAddress, 0),
		keepAlive:         withDefault(opts.KeepAlive, DefaultKeepAlive),
		addresses:         make(map[route.Address]*addressPool),
	}
	return p
}

// withDefault turns an option into a limit: 0 is the default, negative 0.
func withDefault[N int | time.Duration](n, byDefault N) N {
	if n == 0 {
		return byDefault
	}
	return max(n, 0)
}

// at is the pool of a, made where there is none. Called with mu held.
func (p *Pool) at(a route.Address) *addressPool {
	ap := p.addresses[a]
	if ap == nil {
		ap = &addressPool{}
		p.addresses[a] = ap
	}
	return ap
}

// take hands out a pooled connection to a, or nil. The caller holds it.
func (p *Pool) take(a route.Address) *RealConnection {
	now := time.Now()
	p.mu.Lock()
	c, dropped := p.takeLocked(a, now)
	p.mu.Unlock()
	closeAll(dropped)
	return c
}

// takeLocked also drops connections that turn out to be too old: the timer may
// be late.
func (p *Pool) takeLocked(a route.Address, now time.Time) (taken *RealConnection, dropped []drop) {
	ap := p.addresses[a]
	if ap == nil {
		return nil, nil
	}
	if c := p.share(ap); c != nil {
		return c, nil
	}
	for len(ap.idle) > 0 {
		c := ap.idle[len(ap.idle)-1]
		if now.Before(c.expires) {
			p.hold(c)
			p.stats.Reused++
			return c, dropped
		}
		dropped = append(dropped, p.evict(c, event.ReasonIdleTimeout))
	}
	return nil, dropped
}

// share is a stream on one of the address's HTTP/2 connections, held, or nil.
// Called with mu held.
func (p *Pool) share(ap *addressPool) *RealConnection {
	for _, c := range ap.shared {
		if c.http2.Reserve() {
			p.hold(c)
			p.stats.Reused++
			return c
		}
	}
	return nil
}

// takeForwarded hands out an idle connection to the same plain HTTP proxy as r's,
// whatever origin it served last, and makes it one of r's address.
func (p *Pool) takeForwarded(r *route.Route) *RealConnection {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a, ap := range p.addresses {
		if a.Network != r.Address.Network {
			continue
		}
		for i := len(ap.idle) - 1; i >= 0; i-- {
			c := ap.idle[i]
			if !c.route.Forwarded() || !c.route.Proxy.Equal(r.Proxy) || c.expires.Before(time.Now()) {
				continue
			}
			p.hold(c)
			p.readdress(c, r.Address)
			p.stats.Reused++
			return c
		}
	}
	return nil
}

// readdress moves a held connection to another address. The limit of open
// connections may be passed by it: no socket is added. Called with mu held.
func (p *Pool) readdress(c *RealConnection, a route.Address) {
	p.leave(c.address)
	c.address, c.home = a, p.at(a)
	c.home.open++
}

// leave counts one open connection less at a and forgets a when it was the last.
// Called with mu held.
func (p *Pool) leave(a route.Address) {
	ap := p.addresses[a]
	ap.open--
	if ap.open == 0 && ap.waiters.empty() {
		delete(p.addresses, a)
	}
}

// hold counts a holder and takes c off the idle lists. Called with mu held.
func (p *Pool) hold(c *RealConnection) {
	if c.holders++; c.holders == 1 {
		p.unlist(c)
	}
}

// unlist takes an idle connection off the idle lists. Called with mu held.
func (p *Pool) unlist(c *RealConnection) {
	if !p.idle.Remove(&c.idle) {
		return
	}
	if c.multiplexed() {
		return
	}
	ap := c.home
	last := len(ap.idle) - 1
	if ap.idle[last] == c {
		ap.idle[last] = nil
		ap.idle = ap.idle[:last]
		return
	}
	ap.idle = without(ap.idle, c)
}

// without is list without c, in the same memory.
func without(list []*RealConnection, c *RealConnection) []*RealConnection {
	for i, other := range list {
		if other == c {
			copy(list[i:], list[i+1:])
			list[len(list)-1] = nil
			return list[:len(list)-1]
		}
	}
	return list
}

// add makes a connection that its caller opened, and holds, known to the pool.
// Where another call has meanwhile connected to the same HTTP/2 server, that
// connection is returned instead, held; c and its place stay the caller's, to
// close and to give up.
func (p *Pool) add(c *RealConnection) (use *RealConnection, grants []grant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ap := p.at(c.address)
	c.home = ap
	if c.multiplexed() {
		if other := p.share(ap); other != nil {
			return other, nil
		}
		ap.shared = append(ap.shared, c)
	}
	c.pooled = true
	c.holders = 1
	p.open++
	p.stats.Connected++
	return c, p.serve(ap)
}

// release lets go of a connection. An idle one is kept for reuse, handed to a
// waiting call, or returned for the caller to close, with the reason; so are
// those that have to make room for it.
func (p *Pool) release(c *RealConnection) (dropped []drop, grants []grant) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	c.holders--
	ap := c.home
	switch {
	case c.holders > 0:
	case c.noNewExchanges:
		p.remove(c)
		dropped = append(dropped, drop{conn: c, why: c.why})
	case p.shut:
		p.remove(c)
		dropped = append(dropped, drop{conn: c, why: event.ReasonPoolClosed})
	case ap.shut:
		p.remove(c)
		dropped = append(dropped, drop{conn: c, why: event.ReasonEvicted})
	case !c.multiplexed() && !ap.waiters.empty():
		w := ap.waiters.pop()
		c.holders = 1
		p.stats.Reused++
		return nil, []grant{{w, c}}
	default:
		dropped = p.keep(ap, c, now)
	}
	return dropped, p.serve(ap)
}

// keep puts a connection that nobody holds on the idle lists and enforces the
// limits. Called with mu held.
func (p *Pool) keep(ap *addressPool, c *RealConnection, now time.Time) (dropped []drop) {
	life := p.keepAlive
	if c.idleFor > 0 {
		life = min(life, c.idleFor-keepAliveMargin)
	}
	switch {
	case life <= 0:
		p.remove(c)
		return []drop{{conn: c, why: event.ReasonIdleTimeout}}
	case p.maxIdle == 0 || p.maxIdlePerAddress == 0:
		p.remove(c)
		return []drop{{conn: c, why: event.ReasonIdleLimit}}
	}
	c.expires = now.Add(life)
	p.idle.Add(c, &c.idle)
	if !c.multiplexed() {
		ap.idle = append(ap.idle, c)
		if len(ap.idle) > p.maxIdlePerAddress {
			dropped = append(dropped, p.evict(ap.idle[0], event.ReasonIdleLimit))
		}
	}
	if p.idle.Len() > p.maxIdle {
		dropped = append(dropped, p.evict(p.idle.First(), event.ReasonIdleLimit))
	}
	p.wakeAt(c.expires)
	return dropped
}

// keepAliveMargin is how much sooner than a server says a connection is given
// up: about what a request needs to get there.
const keepAliveMargin = time.Second

// evict removes an idle connection. Called with mu held.
func (p *Pool) evict(c *RealConnection, why event.Reason) drop {
	ap := c.home
	p.remove(c)
	p.stats.Evicted++
	return drop{c, why, p.serve(ap)}
}

// retire lets c take no new exchange. It reports whether nobody holds it, so
// that the caller has to close it.
func (p *Pool) retire(c *RealConnection, why event.Reason) (closeIt bool, grants []grant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.noNewExchanges {
		c.noNewExchanges, c.why = true, why
	}
	if !c.pooled {
		return false, nil
	}
	ap := c.home
	ap.shared = without(ap.shared, c)
	if c.holders > 0 {
		return false, nil
	}
	p.remove(c)
	return true, p.serve(ap)
}

// refuse counts a stream that the server refused on c.
func (p *Pool) refuse(c *RealConnection) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.refused++
	return c.refused
}

// hint remembers how long the server lets c idle.
func (p *Pool) hint(c *RealConnection, idleFor time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.idleFor = idleFor
}

// serves reports whether c is a connection to a.
func (p *Pool) serves(c *RealConnection, a route.Address) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.address == a
}

// retired reports whether c takes no new exchange.
func (p *Pool) retired(c *RealConnection) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.noNewExchanges
}

// remove makes the pool forget a connection. Called with mu held.
func (p *Pool) remove(c *RealConnection) {
	if !c.pooled {
		return
	}
	c.pooled, c.noNewExchanges = false, true
	p.unlist(c)
	ap := c.home
	ap.shared = without(ap.shared, c)
	p.leave(c.address)
	if p.open--; p.open == 0 {
		p.sleep()
	}
}
