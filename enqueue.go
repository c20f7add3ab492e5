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
	run := func() { c.runFor(done) }
	d.enqueue(c, run)
	c.life.Attach(&queued{c, d, run})
}

// runFor runs the call for done, which is told of it however it ends: that a
// listener or the request body's Close panics, or an interceptor ends the
// goroutine, is the call's failure.
func (c *Call) runFor(done func(*http.Response, error)) {
	var resp *http.Response
	lifetime.Run(func() (err error) {
		resp, err = c.proceed(c.recovered)
		return err
	}, func(err error) {
		if err != nil {
			err = c.failure(err)
		}
		done(resp, err)
	})
}

// recovered is respond with a panic turned into an error: nobody above it could
// catch it.
func (c *Call) recovered() (resp *http.Response, err error) {
	defer lifetime.Recover(&err)
	if c.early != nil {
		return nil, c.early
	}
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

func (c *Call) queueEnded() {
	defer lifetime.Recover(&c.early)
	c.listener.DispatcherQueueEnd(c)
}
