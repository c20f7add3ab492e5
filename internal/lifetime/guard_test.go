package lifetime

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/event"
)

func TestGuard(t *testing.T) {
	for name, tc := range map[string]struct {
		derive      func(*Context) (context.Context, context.CancelFunc)
		end         func(*Context, context.CancelFunc)
		interrupted bool
	}{
		"nothing ends": {
			derive: func(c *Context) (context.Context, context.CancelFunc) { return c, func() {} },
			end:    func(*Context, context.CancelFunc) {},
		},
		"the call ends": {
			derive:      func(c *Context) (context.Context, context.CancelFunc) { return c, func() {} },
			end:         func(c *Context, _ context.CancelFunc) { c.Cancel() },
			interrupted: true,
		},
		"a derived context ends": {
			derive:      func(c *Context) (context.Context, context.CancelFunc) { return context.WithCancel(c) },
			end:         func(_ *Context, cancel context.CancelFunc) { cancel() },
			interrupted: true,
		},
		"a foreign context ends": {
			derive: func(c *Context) (context.Context, context.CancelFunc) {
				return context.WithCancel(context.Background())
			},
			end:         func(_ *Context, cancel context.CancelFunc) { cancel() },
			interrupted: true,
		},
		"the call ends beside a foreign context": {
			derive: func(c *Context) (context.Context, context.CancelFunc) {
				return context.WithCancel(context.Background())
			},
			end:         func(c *Context, _ context.CancelFunc) { c.Cancel() },
			interrupted: true,
		},
		"the call ends under a context that does not": {
			derive: func(c *Context) (context.Context, context.CancelFunc) {
				return context.WithoutCancel(c), func() {}
			},
			end:         func(c *Context, _ context.CancelFunc) { c.Cancel() },
			interrupted: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newContext(t.Context())
				defer c.Finish()
				ctx, cancel := tc.derive(c)
				defer cancel()
				h := &counter{}
				var g Guard
				g.Watch(c, ctx, h)
				tc.end(c, cancel)
				synctest.Wait()
				if got := h.n.Load() > 0; got != tc.interrupted {
					t.Errorf("interrupted: %v", got)
				}
				if clean := g.Release(); clean == tc.interrupted {
					t.Errorf("Release says %v", clean)
				}
				if !g.Release() {
					t.Error("a guard that watches nothing is not clean")
				}
			})
		})
	}
}

// Where a request's context only adds values, watching it costs no goroutine.
func TestGuardOfValueContext(t *testing.T) {
	c := newContext(t.Context())
	defer c.Finish()
	before := runtime.NumGoroutine()
	var g Guard
	g.Watch(c, context.WithValue(c, testKey("more"), 1), &counter{})
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines more", now-before)
	}
	if !g.Release() {
		t.Error("not clean")
	}
}

func TestGuardRacesWithEnd(t *testing.T) {
	for range 300 {
		c := newContext(t.Context())
		ctx, cancel := context.WithCancel(c)
		h := &counter{}
		var g Guard
		g.Watch(c, ctx, h)
		var wg sync.WaitGroup
		var clean bool
		wg.Go(cancel)
		wg.Go(func() { clean = g.Release() })
		wg.Wait()
		c.Finish()
		if n := h.n.Load(); clean && n != 0 {
			t.Fatalf("clean, though interrupted %d times", n)
		}
	}
}

func TestMerge(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		derive func(*Context) context.Context
		end    func(*Context)
		is     error
		not    error
	}{
		"the call's own, canceled": {
			derive: func(c *Context) context.Context { return c },
			end:    func(c *Context) { c.Cancel() },
			is:     context.Canceled, not: context.DeadlineExceeded,
		},
		"one with a value, canceled": {
			derive: func(c *Context) context.Context { return context.WithValue(c, testKey("k"), 1) },
			end:    func(c *Context) { c.Cancel() },
			is:     context.Canceled, not: context.DeadlineExceeded,
		},
		"a foreign one, and the call times out": {
			derive: func(c *Context) context.Context { return context.Background() },
			end: func(c *Context) {
				c.StartTimeout(time.Second, func() {})
				time.Sleep(time.Second)
			},
			is: context.DeadlineExceeded, not: context.Canceled,
		},
		"a foreign one that ends": {
			derive: func(c *Context) context.Context {
				ctx, cancel := context.WithCancelCause(context.Background())
				cancel(boom)
				return ctx
			},
			end: func(c *Context) {},
			is:  boom, not: context.DeadlineExceeded,
		},
		"one that does not end with the call": {
			derive: func(c *Context) context.Context { return context.WithoutCancel(c) },
			end:    func(c *Context) { c.Cancel() },
			is:     context.Canceled, not: context.DeadlineExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newContext(t.Context())
				defer c.Finish()
				merged, done := Merge(c, tc.derive(c))
				tc.end(c)
				synctest.Wait()
				if !ended(merged) {
					t.Fatal("the merged context lives")
				}
				if err := Cause(merged); !errors.Is(err, tc.is) || errors.Is(err, tc.not) {
					t.Errorf("the cause is %v", err)
				}
				done()
			})
		})
	}
}

func TestMergeKeepsValuesAndLetsGo(t *testing.T) {
	c := newContext(t.Context())
	foreign := context.WithValue(context.Background(), testKey("k"), "theirs")
	merged, done := Merge(c, foreign)
	if merged.Value(testKey("k")) != "theirs" || merged.Err() != nil {
		t.Error("the value is lost")
	}
	done()
	if len(c.funcs) != 0 {
		t.Error("the call still knows the merged context")
	}
	c.Finish()
}

// bodyStub counts its closings.
type bodyStub struct {
	io.Reader
	closed int
	err    error
}

func (b *bodyStub) Close() error {
	b.closed++
	return b.err
}

func TestBody(t *testing.T) {
	boom := errors.New("boom")
	stub := &bodyStub{Reader: strings.NewReader("abc"), err: boom}
	b := OnceBody(stub)
	if OnceBody(b) != b {
		t.Error("a Body became another one")
	}
	if b.Touched() {
		t.Error("touched at first")
	}
	if got, err := io.ReadAll(b); string(got) != "abc" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if !b.Touched() {
		t.Error("not touched after a Read")
	}
	if err := b.Close(); err != boom {
		t.Errorf("Close: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	b.Interrupt()
	if stub.closed != 1 {
		t.Errorf("closed %d times", stub.closed)
	}
	closed := OnceBody(&bodyStub{Reader: strings.NewReader("")})
	closed.Interrupt()
	if !closed.Touched() {
		t.Error("not touched after Close")
	}
}

func TestCauseOfOthers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if Cause(ctx) != nil {
		t.Error("a living context has a cause")
	}
	cancel()
	if err := Cause(ctx); err != context.Canceled {
		t.Errorf("the cause is %v", err)
	}
	var timeout *event.TimeoutError
	if errors.As(Cause(ctx), &timeout) {
		t.Error("a timeout that is not ours")
	}
}
