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
	if ctx != context.Context(call) && ctx.Done() != nil {
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

// Merge is a context that ends when either ends: ctx itself where it is the
// call's or was derived from it. done lets go of what it took.
func Merge(call *Context, ctx context.Context) (merged context.Context, done func()) {
	if ctx == context.Context(call) {
		return ctx, func() {}
	}
	if of, ok := ctx.Value(contextKey{}).(*Context); ok && of == call {
		return ctx, func() {}
	}
	merged, cancel := context.WithCancelCause(ctx)
	stop := call.AfterFunc(func() { cancel(Cause(call)) })
	return merged, func() {
		stop()
		cancel(nil)
	}
}
