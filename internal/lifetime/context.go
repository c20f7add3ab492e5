// Package lifetime is the context of a call: the caller's context, ended by
// Cancel and by the call timeout too. It is a part of the call's own memory, so
// that a call costs no context of package context, and lets one exchange be
// interrupted without a closure.
package lifetime

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catena-http/catena/event"
)

// Hook is interrupted when a context ends.
type Hook interface {
	// Interrupt makes what runs fail soon. It does not block and is called at
	// most once for each Attach, from any goroutine.
	Interrupt()
}

// Context is a call's context. Init comes first, before the Context is shared.
type Context struct {
	parent context.Context
	values Values

	over       atomic.Bool // err is set; Err asks often, and seldom finds an end
	mu         sync.Mutex  // guards the fields below
	done       chan struct{}
	err        error // what Err returns; set once
	cause      error // what ended the call, with our own timeout in full
	deadline   time.Time
	timer      *time.Timer
	stopParent func() bool
	hooks      []Hook
	first      [1]Hook // hooks' first backing
	funcs      map[*func()]struct{}
}

// Values are a call's own context values; nil for keys that are not the call's.
type Values interface{ Value(key any) any }

// Init sets the caller's context and the call's own values, which may be nil.
func (c *Context) Init(parent context.Context, values Values) {
	c.parent, c.values = parent, values
}

// Watch lets the context end with the caller's. Once at most.
func (c *Context) Watch() {
	if c.parent.Done() == nil {
		return
	}
	stop := context.AfterFunc(c.parent, func() { c.end(c.parent.Err(), Cause(c.parent)) })
	c.mu.Lock()
	c.stopParent = stop
	ended := c.err != nil
	c.mu.Unlock()
	if ended {
		stop()
	}
}

// StartTimeout lets the context end after d and calls expired then, on a
// goroutine of its own. Once at most.
func (c *Context) StartTimeout(d time.Duration, expired func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.deadline = time.Now().Add(d)
	c.timer = time.AfterFunc(d, func() {
		if c.end(context.DeadlineExceeded, &event.TimeoutError{Step: event.StepCall, After: d}) {
			expired()
		}
	})
}

// StopTimeout takes the timeout back, unless it has ended the context.
func (c *Context) StopTimeout() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer, c.deadline = nil, time.Time{}
	}
}

// Cancel ends the context with context.Canceled. It reports whether it was this
// call that ended it.
func (c *Context) Cancel() bool { return c.CancelFor(context.Canceled) }

// CancelFor is Cancel with a cause, which has context.Canceled in it.
func (c *Context) CancelFor(cause error) bool { return c.end(context.Canceled, cause) }

// Finish ends the context because the call is over, and lets go of everything
// that watches it.
func (c *Context) Finish() { c.end(context.Canceled, context.Canceled) }

func (c *Context) end(err, cause error) bool {
	// Err may have shown the end of the caller's context to somebody before the
	// news came here; it must not change its mind.
	if theirs := c.parent.Err(); theirs != nil {
		err, cause = theirs, Cause(c.parent) // perhaps another client's call
	}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return false
	}
	c.err, c.cause = err, cause
	c.over.Store(true)
	if c.done != nil {
		close(c.done)
	}
	hooks, funcs, timer, stop := c.hooks, c.funcs, c.timer, c.stopParent
	c.hooks, c.funcs = nil, nil
	c.mu.Unlock()

	if timer != nil {
		timer.Stop()
	}
	if stop != nil {
		stop()
	}
	for _, h := range hooks {
		h.Interrupt()
	}
	for f := range funcs {
		(*f)()
	}
	return true
}

// Deadline is the earlier of the caller's and the call timeout's.
func (c *Context) Deadline() (time.Time, bool) {
	c.mu.Lock()
	own := c.deadline
	c.mu.Unlock()
	theirs, ok := c.parent.Deadline()
	if own.IsZero() || ok && theirs.Before(own) {
		return theirs, ok
	}
	return own, true
}

// Done is closed when the context ends.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err is why the context ended, nil while it has not. It sees the end of the
// caller's context at once.
func (c *Context) Err() error {
	if !c.over.Load() {
		return c.parent.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value is the call's own value for key, or the caller's.
func (c *Context) Value(key any) any {
	if key == (contextKey{}) {
		return c
	}
	if c.values != nil {
		if v := c.values.Value(key); v != nil {
			return v
		}
	}
	return c.parent.Value(key)
}

// AfterFunc lets package context follow this context without a goroutine. f is
// called on the goroutine that ends the context, or on one of its own where that
// has ended already.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	key := &f
	c.mu.Lock()
	ended := c.err != nil
	if !ended {
		if c.funcs == nil {
			c.funcs = make(map[*func()]struct{})
		}
		c.funcs[key] = struct{}{}
	}
	c.mu.Unlock()
	if ended {
		go f() // the caller may hold a lock that f takes
		return func() bool { return false }
	}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waiting := c.funcs[key]
		delete(c.funcs, key)
		return waiting
	}
}

// Attach lets h be interrupted when the context ends, at once if it has ended.
func (c *Context) Attach(h Hook) {
	c.mu.Lock()
	ended := c.err != nil
	if !ended {
		if c.hooks == nil {
			c.hooks = c.first[:0]
		}
		c.hooks = append(c.hooks, h)
	}
	c.mu.Unlock()
	if ended {
		h.Interrupt()
	}
}

// Detach takes h back. It reports true where h was not and will not be
// interrupted.
func (c *Context) Detach(h Hook) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.hooks, h)
	if i < 0 {
		return false
	}
	c.hooks = slices.Delete(c.hooks, i, i+1)
	return true
}

// Cause is what ended ctx, a call's context or one derived from it: nil while it
// lives; our call timeout as *event.TimeoutError; the caller's own cause
// together with ctx.Err().
func Cause(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if c, ok := ctx.Value(contextKey{}).(*Context); ok {
		c.mu.Lock()
		cause := c.cause
		c.mu.Unlock()
		if cause != nil {
			return cause
		}
	}
	return causeOf(ctx)
}

// CauseWith is what ended ctx or the call, nil while both live. ctx is that of a
// request, which an interceptor may have put in the place of the call's.
func (c *Context) CauseWith(ctx context.Context) error {
	if cause := Cause(ctx); cause != nil {
		return cause
	}
	return Cause(c)
}

func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

type contextKey struct{}
