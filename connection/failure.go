package connection

import (
	"errors"
	"net/http"
	"time"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/wire"
)

// maxRefusals is how often a call is sent again because the server did not
// process it, and connectionRefusals how many of them a connection is forgiven.
const (
	maxRefusals        = 3
	connectionRefusals = 1
)

// Failure is what is known of a failed try, for the decision whether there is
// another one. An engine part without a promise to users.
type Failure struct {
	Err error
	// Request is the one that was on the wire, as network interceptors left it;
	// nil where Exchanged is false.
	Request *http.Request
	// Exchanged is true where a connection stood and the exchange on it failed;
	// otherwise the tries to connect are recorded already.
	Exchanged bool
	// Reused is true where the connection had been used before.
	Reused bool
	// Written is true where the peer may have seen something of the request.
	Written bool
	// Unprocessed is true where the server said that it did not process the
	// request, and Refusals is how often it has in this call; a pooled connection
	// that was shut down before anything was sent does not count.
	Unprocessed bool
	Refusals    int
	// MoreRoutes is true where, after the exchange, something is left to try.
	MoreRoutes bool
	// GaveUp is why connecting was given up; "" where it was not.
	GaveUp event.Reason

	attempt Attempt
}

// WhyNotConnected is why a call without an exchange is not tried again:
// connecting has tried what there was, or the failure is not the network's.
func (f *Failure) WhyNotConnected() event.Reason {
	if f.GaveUp != "" {
		return f.GaveUp
	}
	return event.ReasonNotRecoverable
}

// TooManyRefusals reports whether the server refused more often than a call is
// sent again.
func (f *Failure) TooManyRefusals() bool { return f.Refusals > maxRefusals }

// Fail says that the try under way failed with err, draws the consequences for
// the connection and its route, and returns what is known. Decide follows.
func (a *StreamAllocation) Fail(err error) Failure {
	f := Failure{Err: err}
	if a.unconnected != nil && errors.Is(err, a.unconnected) {
		f.GaveUp = a.whyNot
		return f
	}
	x := a.exchange
	if x == nil || x.over.Load() || x.failed == nil {
		return f
	}
	f.Exchanged, f.Reused, f.Written = true, x.reused, x.codec.Written()
	f.Request = x.request
	var unprocessed *wire.UnprocessedError
	if f.Unprocessed = errors.As(err, &unprocessed); f.Unprocessed && !retiredUnderUs(&f, unprocessed) {
		a.refusals++
	}
	f.Refusals = a.refusals
	f.attempt = a.attemptOf(x, err)
	a.judge(x, err, unprocessed)
	x.abandon()
	f.MoreRoutes = a.hasNext()
	return f
}

// retiredUnderUs reports whether a pooled connection was shut down after the call
// had taken it and before it sent anything: the server has refused nothing then.
// Each such try uses up a connection that another call opened, so that there is
// an end to them; one on a connection of the call's own is counted.
func retiredUnderUs(f *Failure, err *wire.UnprocessedError) bool {
	return err.Shutdown && f.Reused && !f.Written
}

// attemptOf is the record of an exchange that failed with err.
func (a *StreamAllocation) attemptOf(x *Exchange, err error) Attempt {
	return Attempt{
		Addr:     x.conn.route.SocketAddr(),
		Proxy:    x.conn.route.Shown,
		Step:     x.step,
		Reused:   x.reused,
		Written:  x.codec.Written(),
		Duration: time.Since(x.began),
		Err:      err,
	}
}

// Decide records the failed try with the decision taken on it.
func (a *StreamAllocation) Decide(f Failure, retry bool, why event.Reason) {
	if !f.Exchanged {
		return
	}
	f.attempt.Retried, f.attempt.Why = retry, why
	a.record(f.attempt)
}

// bodyAttempt records an exchange whose response body failed. It is not made
// again: the application has the response.
func (a *StreamAllocation) bodyAttempt(x *Exchange, err error) {
	try := a.attemptOf(x, err)
	try.Step, try.Why = event.StepRead, event.ReasonResponseBegun
	if x.cause() != nil {
		try.Why = event.ReasonCanceled
	}
	a.record(try)
}

// judge draws the consequences of a failed exchange for its connection and its
// route. The connection is still held.
func (a *StreamAllocation) judge(x *Exchange, err error, unprocessed *wire.UnprocessedError) {
	c := x.conn
	var own *wire.RequestBodyError
	var reset *wire.StreamResetError
	switch {
	case x.cause() != nil || errors.As(err, &own):
		// Not the peer's doing: nothing is remembered of it. An HTTP/1.1
		// connection is lost all the same.
		return
	case unprocessed != nil && unprocessed.Shutdown:
		c.retire(event.ReasonGoAway)
		a.locked = c.route
	case unprocessed != nil:
		if c.pool.refuse(c) > connectionRefusals {
			c.retire(event.ReasonExchangeFailed)
		}
		a.locked = c.route
	case c.multiplexed() && !errors.As(err, &reset) && c.healthy():
		// One stream timed out or was broken; the others go on.
	case c.reused() || x.reused:
		c.retire(event.ReasonExchangeFailed)
		if c.pool.serves(c, a.address) && c.route.Address == a.address {
			a.locked = c.route
		}
	default:
		c.retire(event.ReasonExchangeFailed)
		a.blame(c.route, err)
	}
}
