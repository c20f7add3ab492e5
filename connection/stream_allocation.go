package connection

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/route"
)

// Owner is who is told the end of what a StreamAllocation does for a call. It is
// an engine part without a promise to users.
type Owner interface {
	// BodyFailed wraps what reading the response body failed with for the one
	// who reads it.
	BodyFailed(err error) error
	// Released is told, once, that the call has let go of its connection for
	// good: by Settle, or later by the response body's end. err is what the
	// body's reader got; nil after a good end, and where that was before Settle.
	Released(err error)
}

// Terms are the settings of one exchange. An engine part without a promise to
// users.
type Terms struct {
	// ConnectTimeout bounds each step of connecting; 0: no bound.
	ConnectTimeout time.Duration
	// Exchange is for the codec.
	Exchange wire.Exchange
	// MaxInterim bounds the interim responses of the call so far.
	MaxInterim int
	// UserAgent is a CONNECT's; "": none.
	UserAgent string
}

// StreamAllocation finds connections for the exchanges of one call and holds the
// one in use. It is an engine part without a promise to users.
//
// It is used by one goroutine at a time: that of Execute, then that of the
// response body's reader. Between Init and Settle it keeps a connection from one
// exchange to the next.
type StreamAllocation struct {
	call     event.Call
	owner    Owner
	listener event.Listener
	life     *lifetime.Context
	database *route.Database

	address  route.Address
	pool     *Pool
	conn     *RealConnection // held
	exchange *Exchange       // under way, or over and conn still held
	first    Exchange        // the memory of the call's first exchange
	used     bool            // first is

	selector  *route.Selector // nil: no route was needed yet
	selection *route.Selection
	locked    *route.Route // to be taken next, without a lookup
	tried     *route.Route // was taken that way, ahead of the selector; nil: none

	attempts    []Attempt
	unconnected error        // what the last search for a connection failed with
	whyNot      event.Reason // of unconnected: why nothing else was tried
	interim     int          // interim responses
	refusals    int          // times the server did not process the request
}

// Init sets whom the allocation works for. It comes first.
func (a *StreamAllocation) Init(call event.Call, owner Owner, listener event.Listener, life *lifetime.Context, database *route.Database) {
	a.call, a.owner, a.listener, a.life, a.database = call, owner, listener, life, database
}

// Life is the call's context.
func (a *StreamAllocation) Life() *lifetime.Context { return a.life }

// BodyFailed is err as the owner wraps it for the one who reads the response's
// body.
func (a *StreamAllocation) BodyFailed(err error) error { return a.owner.BodyFailed(err) }

// Attempts are the failed tries so far, oldest first.
func (a *StreamAllocation) Attempts() []Attempt { return a.attempts }

// Exchange is the one under way or the last one; nil before the first.
func (a *StreamAllocation) Exchange() *Exchange { return a.exchange }

// Uploading reports whether a request body is still being sent beside the
// response.
func (a *StreamAllocation) Uploading() bool {
	return a.exchange != nil && a.exchange.uploading()
}

// Owns reports whether body is the open body of the response under way, so that
// its end is the exchange's.
func (a *StreamAllocation) Owns(body io.ReadCloser) bool {
	return a.exchange != nil && body != http.NoBody && a.exchange.out == body
}

// Upgraded reports whether the response under way has opened a stream of bytes
// both ways, which its Close alone ends.
func (a *StreamAllocation) Upgraded() bool {
	if a.exchange == nil {
		return false
	}
	_, upgraded := a.exchange.out.(*upgradedBody)
	return upgraded
}

// CloseBody ends the response's body, if nobody has.
func (a *StreamAllocation) CloseBody() {
	if a.exchange != nil && a.exchange.out != nil {
		a.exchange.out.Close()
	}
}

// Open reports whether an exchange is under way: its response body has not come
// to its end.
func (a *StreamAllocation) Open() bool { return a.exchange != nil && !a.exchange.over.Load() }

// NewExchange finds a connection to address and begins an exchange on it. The
// order is that of the package comment.
func (a *StreamAllocation) NewExchange(address route.Address, pool *Pool, req *http.Request, t Terms) (*Exchange, error) {
	if err := address.Network.Validate(); err != nil {
		return nil, err
	}
	ctx, done := lifetime.Merge(a.life, req.Context())
	defer done()
	a.address, a.pool = address, pool
	tried := len(a.attempts)
	a.whyNot = event.ReasonCanceled // before anything was tried
	conn, reused, err := a.find(ctx, t)
	if a.unconnected = err; err != nil {
		if n := len(a.attempts); n > tried {
			a.whyNot = a.attempts[n-1].Why
		}
		return nil, err
	}
	x := &a.first
	if a.used {
		x = &Exchange{}
	}
	a.used = true
	a.exchange = x
	t.Exchange.AbsoluteForm = conn.route.Forwarded()
	x.begin(a, conn, req, t, reused)
	return x, nil
}

// find returns a connection that the allocation holds, with a stream reserved on
// HTTP/2.
func (a *StreamAllocation) find(ctx context.Context, t Terms) (conn *RealConnection, reused bool, err error) {
	if c := a.held(); c != nil {
		return c, true, nil
	}
	for {
		if cause := lifetime.Cause(ctx); cause != nil {
			return nil, false, cause
		}
		for c := a.pool.take(a.address); c != nil; c = a.pool.take(a.address) {
			if a.accept(ctx, c, event.ReasonPooled) {
				return c, true, nil
			}
		}
		began := time.Now()
		granted, err := a.pool.mayOpen(ctx, a.address)
		if err != nil {
			a.record(Attempt{Step: event.StepQueue, Duration: time.Since(began), Why: event.ReasonCanceled, Err: err})
			return nil, false, err
		}
		if granted == nil {
			return a.connect(ctx, t)
		}
		if a.usable(ctx, granted, event.ReasonPooled) {
			return granted, true, nil
		}
		if a.pool.trade(granted) {
			return a.connect(ctx, t)
		}
	}
}

// held is the connection of the exchange before, if it can serve this one too;
// otherwise it is released.
func (a *StreamAllocation) held() *RealConnection {
	c := a.conn
	if c == nil {
		return nil
	}
	why := event.ReasonHeld
	switch {
	case a.exchange != nil && !a.exchange.over.Load():
		// Somebody swapped the body and lost the original: cut it off.
		a.exchange.abandon()
		why = event.ReasonUnreadBody
	case !a.serves(c):
		why = event.ReasonOtherHost
	case a.pool.retired(c):
		why = event.ReasonRetired
	case !c.healthy() || c.multiplexed() && !c.http2.Reserve():
		why = event.ReasonUnhealthy
	}
	reused := why == event.ReasonHeld
	a.listener.ReuseDecision(a.call, c, reused, why)
	if reused {
		return c
	}
	if why == event.ReasonUnhealthy && !c.multiplexed() {
		c.retire(why)
	}
	a.release()
	return nil
}

// serves reports whether the held connection leads to the address. One to a
// plain HTTP proxy would lead to any http origin, but whether that proxy is the
// one for this origin is for the selector to say.
func (a *StreamAllocation) serves(c *RealConnection) bool {
	return c.pool == a.pool && a.pool.serves(c, a.address)
}

// accept makes a pooled connection, held by the pool's leave, the allocation's
// own if it is healthy, and lets go of it otherwise.
func (a *StreamAllocation) accept(ctx context.Context, c *RealConnection, why event.Reason) bool {
	usable := a.usable(ctx, c, why)
	if !usable {
		a.pool.letGo(c)
	}
	return usable
}

// usable is accept without letting go, but where a listener panics.
func (a *StreamAllocation) usable(ctx context.Context, c *RealConnection, why event.Reason) bool {
	decided := false
	defer func() {
		if !decided && a.conn != c {
			a.pool.letGo(c)
		}
	}()
	usable := a.judgeIdle(ctx, c, why)
	decided = true
	return usable
}

func (a *StreamAllocation) judgeIdle(ctx context.Context, c *RealConnection, why event.Reason) bool {
	if !c.healthy() {
		if c.multiplexed() {
			c.http2.Unreserve()
		}
		defer c.retire(event.ReasonUnhealthy)
		a.listener.ReuseDecision(a.call, c, false, event.ReasonUnhealthy)
		return false
	}
	if c.multiplexed() && !c.http2.Confirm(ctx) {
		return false // it has no stream left after all
	}
	a.listener.ReuseDecision(a.call, c, true, why)
	a.acquire(c)
	return true
}

func (a *StreamAllocation) acquire(c *RealConnection) {
	a.conn = c
	defer a.listener.ConnectionAcquired(a.call, c)
	c.observer.acquired(c, a.call)
}

// release lets go of the held connection.
func (a *StreamAllocation) release() {
	c := a.conn
	if c == nil {
		return
	}
	a.conn = nil
	defer c.pool.letGo(c)
	defer c.observer.released(c, a.call)
	a.listener.ConnectionReleased(a.call, c)
}

// NewRoutes forgets the routes worked out so far: the next exchange follows a
// response, not a failure.
func (a *StreamAllocation) NewRoutes() {
	a.selector, a.selection, a.locked, a.tried = nil, nil, nil, nil
}

// Drop cuts off what is under way and lets go of the connection.
func (a *StreamAllocation) Drop() {
	defer a.release()
	if a.Open() {
		a.exchange.abandon()
	}
}

// Settle says that no exchange follows. The connection is released at once, or
// by the end of the response body that is still open.
func (a *StreamAllocation) Settle() {
	if a.exchange != nil {
		a.exchange.settle()
		return
	}
	a.release()
	a.owner.Released(nil)
}

// Abort says that the call failed: what is under way is cut off.
func (a *StreamAllocation) Abort() { a.Drop() }

func (a *StreamAllocation) record(t Attempt) { a.attempts = append(a.attempts, t) }
