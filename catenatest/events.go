// Package catenatest holds what tests of programs that use Catena need, and
// Catena's own tests too: checks of recorded events, and in simnet a network in
// memory. docs/testing.md shows how to use them.
package catenatest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// CheckEvents reports where events, those of an event.Recorder, break the rules
// that package event promises, or nil. Events of several calls may be mixed; all
// calls must be over, their bodies closed. The error names the first breach of
// each call.
//
// The rules, for each call:
//
//   - CallStart is first and CallEnd or CallFailed last, each once; Canceled
//     comes once at most, anywhere. A call that was only canceled is one too.
//   - A call that waits does so right after CallStart.
//   - Each Start has one End or Failed with the same host, URL, or address and
//     proxy; a Failed has an error. Attempts to connect may overlap.
//   - A TLS handshake lies within an attempt to connect.
//   - Nothing is being looked up or connected when a connection is acquired. A
//     call holds one connection at a time and releases it before it is over.
//   - Requests and responses travel on a held connection, one exchange after the
//     other. An exchange fails or has its response's body ended.
//   - A decision has a reason.
func CheckEvents(events []event.Event) error {
	return check(events, func(e event.Event) uint64 { return e.CallID }, "call",
		func() grammar { return &callRules{open: map[pair]int{}} })
}

// CheckConnectionEvents is CheckEvents for an event.ConnectionRecorder. For each
// connection:
//
//   - Connected is first and once, unless the connection never stood (closed
//     with event.ReasonConnectFailed); Closed is last and once at most.
//   - Each call that acquires it releases it before it is closed.
//   - NoNewExchanges comes once at most, and like Closed has a reason.
//
// A connection need not be closed, nor its last call be over.
func CheckConnectionEvents(events []event.Event) error {
	return check(events, func(e event.Event) uint64 { return e.ConnectionID }, "connection",
		func() grammar { return &connectionRules{users: map[uint64]bool{}} })
}

// grammar is what holds for the events of one call or connection.
type grammar interface {
	// next takes the next event, or says why it may not come now.
	next(e event.Event) error
	// end says what is missing after the last event.
	end() error
}

// check runs a grammar over the events of each subject.
func check(events []event.Event, id func(event.Event) uint64, subject string, start func() grammar) error {
	of := map[uint64][]event.Event{}
	var ids []uint64
	for _, e := range events {
		if of[id(e)] == nil {
			ids = append(ids, id(e))
		}
		of[id(e)] = append(of[id(e)], e)
	}
	var breaches []error
	for _, n := range ids {
		if err := run(of[n], start()); err != nil {
			breaches = append(breaches, fmt.Errorf("%s %d: %w", subject, n, err))
		}
	}
	return errors.Join(breaches...)
}

func run(events []event.Event, g grammar) error {
	for i, e := range events {
		if err := g.next(e); err != nil {
			return fmt.Errorf("event %d, %v: %w", i+1, e, err)
		}
	}
	return g.end()
}

// pair is what the two events of a pair have in common.
type pair struct {
	step  string // "DNS" of DNSStart and DNSEnd
	what  string
	proxy proxy.Proxy
}

func (p pair) String() string { return p.step + "Start" }

// callRules are the rules of CheckEvents.
type callRules struct {
	last     string // the event before, Canceled and the decisions aside
	over     bool
	canceled bool
	open     map[pair]int // proxy selection, lookups, connects and handshakes under way
	held     uint64       // the connection
	exchange *exchange    // the last one on it
}

func (r *callRules) next(e event.Event) error {
	switch {
	case e.Name == "Canceled":
		if r.canceled {
			return errors.New("the call was canceled before")
		}
		r.canceled = true
		return nil
	case r.over:
		return errors.New("the call was over")
	case (e.Name == "CallStart") != (r.last == ""):
		return errors.New("CallStart is the first event of a call, once")
	case e.IsDecision():
		return because(e)
	case (e.Name == "DispatcherQueueStart") && r.last != "CallStart":
		return errors.New("a call waits before anything else")
	case (e.Name == "DispatcherQueueEnd") != (r.last == "DispatcherQueueStart"):
		return errors.New("DispatcherQueueEnd follows DispatcherQueueStart, and nothing else does")
	}
	r.last = e.Name
	return r.step(e)
}

func (r *callRules) step(e event.Event) error {
	switch e.Name {
	case "CallStart", "DispatcherQueueStart", "DispatcherQueueEnd":
		return nil
	case "ProxySelectStart":
		return r.begin(pair{step: "ProxySelect", what: e.URL})
	case "ProxySelectEnd":
		return r.finish(pair{step: "ProxySelect", what: e.URL})
	case "DNSStart":
		return r.begin(pair{step: "DNS", what: e.Host})
	case "DNSEnd":
		return r.finish(pair{step: "DNS", what: e.Host})
	case "ConnectStart":
		return r.begin(pair{"Connect", e.Addr, e.Proxy})
	case "ConnectEnd":
		return r.finish(pair{"Connect", e.Addr, e.Proxy})
	case "ConnectFailed":
		return cmp.Or(failed(e), r.finish(pair{"Connect", e.Addr, e.Proxy}))
	case "SecureConnectStart":
		return r.begin(pair{step: "SecureConnect"})
	case "SecureConnectEnd":
		return r.finish(pair{step: "SecureConnect"})
	case "ConnectionAcquired":
		return r.acquire(e.ConnectionID)
	case "ConnectionReleased":
		return r.release(e.ConnectionID)
	case "CallEnd":
		return r.finishCall()
	case "CallFailed":
		return cmp.Or(failed(e), r.finishCall())
	}
	return r.exchangeStep(e)
}

func (r *callRules) begin(p pair) error {
	r.open[p]++
	return r.handshakesWithinConnects()
}

func (r *callRules) finish(p pair) error {
	if r.open[p] == 0 {
		return fmt.Errorf("no %v with the same arguments is open", p)
	}
	if r.open[p]--; r.open[p] == 0 {
		delete(r.open, p)
	}
	return r.handshakesWithinConnects()
}

// handshakesWithinConnects: a handshake does not say whose it is, so that they
// can only be counted.
func (r *callRules) handshakesWithinConnects() error {
	connects, handshakes := 0, 0
	for p, n := range r.open {
		switch p.step {
		case "Connect":
			connects += n
		case "SecureConnect":
			handshakes += n
		}
	}
	if handshakes > connects {
		return errors.New("a TLS handshake lies within an attempt to connect")
	}
	return nil
}

func (r *callRules) nothingOpen() error {
	var starts []string
	for p := range r.open {
		starts = append(starts, p.String())
	}
	if len(starts) == 0 {
		return nil
	}
	slices.Sort(starts)
	return fmt.Errorf("%v has no end yet", starts)
}

func (r *callRules) acquire(id uint64) error {
	if r.held != 0 {
		return fmt.Errorf("the call holds connection %d", r.held)
	}
	if id == 0 {
		return errors.New("the connection has no number")
	}
	r.held, r.exchange = id, nil
	return r.nothingOpen()
}

func (r *callRules) release(id uint64) error {
	if r.held == 0 || r.held != id {
		return errors.New("the call does not hold this connection")
	}
	r.held = 0
	return r.exchange.end()
}

func (r *callRules) finishCall() error {
	r.over = true
	if r.held != 0 {
		return fmt.Errorf("connection %d was not released", r.held)
	}
	return r.nothingOpen()
}

func (r *callRules) exchangeStep(e event.Event) error {
	if r.held == 0 {
		return errors.New("the call holds no connection")
	}
	if e.Name == "RequestHeadersStart" {
		err := r.exchange.end()
		r.exchange = &exchange{requestHead: phaseOpen}
		return err
	}
	if r.exchange == nil {
		return errors.New("no request was begun")
	}
	return r.exchange.next(e)
}

func (r *callRules) end() error {
	if r.last != "" && !r.over {
		return errors.New("neither CallEnd nor CallFailed came")
	}
	return nil
}

func failed(e event.Event) error {
	if e.Err == nil {
		return errors.New("a failure has an error")
	}
	return nil
}

func because(e event.Event) error {
	if e.Why == "" {
		return errors.New("it has no reason")
	}
	return nil
}
