package catena

import (
	"net/http"

	"github.com/catena-http/catena/internal/lifetime"
)

// Enqueue runs the call when the Dispatcher's limits allow and hands its outcome
// to done: once, on another goroutine, also where the call can't be run. The
// response's body is done's to close. The call's place is held until done
// returns. A call that waits leaves the queue at once when it is canceled or its
// context ends.
func (c *Call) Enqueue(done func(*http.Response, error)) {
	if done == nil {
		panic("catena: Enqueue: done is nil")
	}
	if c.unmade() {
		go done(nil, errUnmade)
		return
	}
	if c.executed.Swap(true) {
		go done(nil, c.refused(ErrAlreadyExecuted))
		return
	}
	c.listener.CallStart(c)
	if !c.client.calls.add(c) {
		err := c.fail(ErrClosed)
		go done(nil, err)
		return
	}
	c.life.Watch()
	d := c.client.settings.dispatcher
	run := func() { done(c.proceed(c.recovered)) }
	d.enqueue(c, run)
	c.life.Attach(&queued{c, d, run})
}

// recovered is respond with a panic turned into an error: nobody above it could
// catch it.
func (c *Call) recovered() (resp *http.Response, err error) {
	defer lifetime.Recover(&err)
	return c.respond()
}

// queued takes a call out of the queue when it is canceled (lifetime.Hook).
type queued struct {
	call       *Call
	dispatcher *Dispatcher
	run        func()
}

// Interrupt lets the call run, which fails it at once: its context has ended.
func (q *queued) Interrupt() { q.dispatcher.remove(q.call, q.run) }

func (c *Call) queueStarted() { c.listener.DispatcherQueueStart(c) }

func (c *Call) queueEnded() { c.listener.DispatcherQueueEnd(c) }
