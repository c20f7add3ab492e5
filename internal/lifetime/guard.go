package lifetime

import "context"

// Guard interrupts a Hook when a call ends or when the context of the request
// does, which may be another one that an interceptor made. The zero Guard
// watches nothing.
type Guard struct {
	call *Context
	hook Hook
	stop func() bool // of a request context that is not the call's
}

// Watch starts watching call and ctx for h.
func (g *Guard) Watch(call *Context, ctx context.Context, h Hook) {
	g.call, g.hook, g.stop = call, h, nil
	call.Attach(h)
	if !endsWith(ctx, call) && ctx.Done() != nil {
		g.stop = context.AfterFunc(ctx, h.Interrupt)
	}
}

// Release stops watching. It reports true where the hook was not and will not
// be interrupted.
func (g *Guard) Release() bool {
	if g.call == nil {
		return true
	}
	clean := g.call.Detach(g.hook)
	if g.stop != nil && !g.stop() {
		clean = false
	}
	*g = Guard{}
	return clean
}

// endsWith reports whether ctx is the call's, or derived from it without an end
// of its own. A context that only knows the call may still outlive it
// (context.WithoutCancel).
func endsWith(ctx context.Context, call *Context) bool {
	return ctx == context.Context(call) || ctx.Done() == call.Done()
}

// Merge is a context that ends when either ends: ctx itself where that is the
// call's end. done lets go of what it took.
func Merge(call *Context, ctx context.Context) (merged context.Context, done func()) {
	if endsWith(ctx, call) {
		return ctx, func() {}
	}
	merged, cancel := context.WithCancelCause(within{ctx, call})
	stop := call.AfterFunc(func() { cancel(Cause(call)) })
	return merged, func() {
		stop()
		cancel(nil)
	}
}

// within lets Cause find the call in a context that was not derived from it.
type within struct {
	context.Context
	call *Context
}

func (w within) Value(key any) any {
	if key == (contextKey{}) {
		return w.call
	}
	return w.Context.Value(key)
}
