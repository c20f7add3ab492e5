package catena

import (
	"slices"
	"sync"

	"github.com/catena-http/catena/internal/linked"
)

// The Dispatcher's limits where nothing else is said.
const (
	defaultMaxCalls        = 64
	defaultMaxCallsPerHost = 5
)

// DispatcherOptions are the settings of a Dispatcher. The zero value has the
// defaults.
type DispatcherOptions struct {
	// MaxCalls is how many enqueued calls run at a time. 0 means 64; negative
	// means no limit.
	MaxCalls int
	// MaxCallsPerHost is how many enqueued calls to one host run at a time. The
	// host is that of the call's own request, whatever its port and wherever
	// redirects lead. 0 means 5; negative means no limit.
	MaxCallsPerHost int
	// Idle is called whenever the last running call has finished, on the
	// goroutine that ran it and with no lock held. nil does nothing.
	Idle func()
}

// Dispatcher decides when enqueued calls run, and knows all calls that do.
//
// An enqueued call runs on a goroutine of its own, at once where the limits
// allow it. Otherwise it waits: calls leave the queue in the order in which they
// came, but those to a host that is at its limit let others pass. A call takes up
// its place until its callback has returned; a body that is still open does not
// count, and canceling a running call does not free its place any sooner. Calls
// run by Execute are known here and neither limited nor counted against the
// limits.
//
// The methods may be used from any goroutine. A Dispatcher needs no closing: it
// has no goroutine but those of the calls.
type Dispatcher struct {
	idle func()

	mu         sync.Mutex // guards the fields below; nothing of the user's runs under it
	maxCalls   int
	maxPerHost int
	running    linked.List[Call] // enqueued or not, in the order of starting
	places     int               // taken by enqueued calls
	leaving    int               // calls taken out of the queue whose failure is being told
	queue      queue
}

// NewDispatcher makes a Dispatcher, which several clients may share.
func NewDispatcher(opts DispatcherOptions) *Dispatcher {
	return &Dispatcher{
		idle:       opts.Idle,
		maxCalls:   limit(opts.MaxCalls, defaultMaxCalls),
		maxPerHost: limit(opts.MaxCallsPerHost, defaultMaxCallsPerHost),
		queue:      newQueue(),
	}
}

// limit reads a limit as the application writes it. A negative one is none.
func limit(n, byDefault int) int {
	if n == 0 {
		return byDefault
	}
	return n
}

// below reports whether a limit has room for one more than n.
func below(n, limit int) bool { return limit < 0 || n < limit }

// SetMaxCalls changes MaxCalls: 0 means 64, negative no limit. A higher limit
// starts waiting calls; a lower one leaves running ones alone.
func (d *Dispatcher) SetMaxCalls(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maxCalls = limit(n, defaultMaxCalls)
	d.promote()
}

// SetMaxCallsPerHost changes MaxCallsPerHost: 0 means 5, negative no limit. A
// higher limit starts waiting calls; a lower one leaves running ones alone.
func (d *Dispatcher) SetMaxCallsPerHost(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maxPerHost = limit(n, defaultMaxCallsPerHost)
	d.queue.refreshAll(d.maxPerHost)
	d.promote()
}

// RunningCount is how many calls run, Execute's included.
func (d *Dispatcher) RunningCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running.Len()
}

// QueuedCount is how many calls wait.
func (d *Dispatcher) QueuedCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queue.entries)
}

// Running are the calls that run, Execute's included, in the order in which they
// started.
func (d *Dispatcher) Running() []*Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.AppendSeq(make([]*Call, 0, d.running.Len()), d.running.All())
}

// Queued are the calls that wait, in the order in which they came.
func (d *Dispatcher) Queued() []*Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queue.calls()
}

// CancelAll cancels every call that waits or runs, Execute's included.
func (d *Dispatcher) CancelAll() {
	// Waiting ones first, lest the end of running ones starts them.
	for _, c := range append(d.Queued(), d.Running()...) {
		c.Cancel()
	}
}

// started makes a call of Execute known until finished.
func (d *Dispatcher) started(c *Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running.Add(c, &c.running)
}

// finished is the end of a call of Execute.
func (d *Dispatcher) finished(c *Call) {
	d.mu.Lock()
	d.running.Remove(&c.running)
	d.unlockAndRest()
}

// enqueue lets run be called on a goroutine of its own, now or when there is a
// place. Where c has to wait, c.queueStarted is called before enqueue returns,
// and c.queueEnded before run, on run's goroutine.
func (d *Dispatcher) enqueue(c *Call, run func()) {
	e, name := &entry{call: c, run: run}, hostOf(c)
	d.mu.Lock()
	e.host = d.queue.host(name)
	if below(d.places, d.maxCalls) && below(e.host.running, d.maxPerHost) {
		// No call that could take this place waits: promote left none.
		d.place(e)
		d.mu.Unlock()
		return
	}
	e.announced = make(chan struct{})
	d.queue.push(e, d.maxPerHost)
	d.mu.Unlock()

	// By now c may be promoted or removed, perhaps by queueStarted itself: what
	// follows waits on its own goroutine for the announcement's end.
	defer close(e.announced)
	c.queueStarted()
}

// remove takes c out of the queue, and reports whether it was there. fail is then
// called on a goroutine of its own, after c.queueEnded.
func (d *Dispatcher) remove(c *Call, fail func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.queue.entries[c]
	if e == nil {
		return false
	}
	d.queue.take(e, d.maxPerHost)
	d.leaving++
	e.run = fail
	go e.do(d.left) // ends with fail
	return true
}

// left is the end of a removed call's failure.
func (d *Dispatcher) left(*entry) {
	d.mu.Lock()
	d.leaving--
	d.unlockAndRest()
}

// promote starts the calls that may leave the queue. d.mu is held.
func (d *Dispatcher) promote() {
	for below(d.places, d.maxCalls) {
		e := d.queue.next()
		if e == nil {
			return
		}
		d.place(e)
		d.queue.take(e, d.maxPerHost)
	}
}

// place starts a call and gives it a place. d.mu is held.
func (d *Dispatcher) place(e *entry) {
	d.running.Add(e.call, &e.call.running)
	d.places++
	e.host.running++
	d.queue.refresh(e.host, d.maxPerHost)
	go e.do(d.vacate) // ends with the call's run
}

// vacate is the end of an enqueued call.
func (d *Dispatcher) vacate(e *entry) {
	d.mu.Lock()
	d.running.Remove(&e.call.running)
	d.places--
	e.host.running--
	d.queue.refresh(e.host, d.maxPerHost)
	d.promote()
	d.unlockAndRest()
}

// unlockAndRest gives d.mu back and tells if nothing runs any more. No call
// waits then: each has another that holds its place.
func (d *Dispatcher) unlockAndRest() {
	resting := d.running.Len() == 0 && d.leaving == 0
	d.mu.Unlock()
	if resting && d.idle != nil {
		d.idle()
	}
}
