package lifetime

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/event"
)

type testKey string

// ownValues knows one key of the call's own.
type ownValues struct{}

func (ownValues) Value(key any) any {
	if key == testKey("own") {
		return "the call's"
	}
	return nil
}

func newContext(parent context.Context) *Context {
	c := &Context{}
	c.Init(parent, ownValues{})
	c.Watch()
	return c
}

// counter counts its interruptions.
type counter struct{ n atomic.Int32 }

func (c *counter) Interrupt() { c.n.Add(1) }

func ended(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

func TestContextLives(t *testing.T) {
	parent := context.WithValue(t.Context(), testKey("theirs"), "the caller's")
	c := newContext(parent)
	defer c.Finish()
	if ended(c) || c.Err() != nil || Cause(c) != nil {
		t.Errorf("a new context has ended: %v", c.Err())
	}
	if _, ok := c.Deadline(); ok {
		t.Error("there is a deadline")
	}
	if got := c.Value(testKey("own")); got != "the call's" {
		t.Errorf("own value: %v", got)
	}
	if got := c.Value(testKey("theirs")); got != "the caller's" {
		t.Errorf("the caller's value: %v", got)
	}
	if got := c.Value(testKey("nobody's")); got != nil {
		t.Errorf("a value that nobody set: %v", got)
	}
	if first, again := c.Done(), c.Done(); first != again {
		t.Error("Done changes its mind")
	}
}

func TestContextEnds(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		end   func(c *Context, cancelParent context.CancelCauseFunc)
		err   error // what Err is
		cause []error
		not   error // what Cause must not be
	}{
		"by Cancel": {
			end: func(c *Context, _ context.CancelCauseFunc) { c.Cancel() },
			err: context.Canceled, cause: []error{context.Canceled}, not: context.DeadlineExceeded,
		},
		"by Finish": {
			end: func(c *Context, _ context.CancelCauseFunc) { c.Finish() },
			err: context.Canceled, cause: []error{context.Canceled}, not: context.DeadlineExceeded,
		},
		"by the caller": {
			end: func(_ *Context, cancel context.CancelCauseFunc) { cancel(boom) },
			err: context.Canceled, cause: []error{context.Canceled, boom}, not: context.DeadlineExceeded,
		},
		"by the call timeout": {
			end: func(c *Context, _ context.CancelCauseFunc) {
				c.StartTimeout(time.Second, func() {})
				time.Sleep(time.Second)
			},
			err: context.DeadlineExceeded, cause: []error{context.DeadlineExceeded}, not: context.Canceled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				c := newContext(parent)
				h := &counter{}
				c.Attach(h)
				before := c.Done()
				tc.end(c, cancel)
				synctest.Wait()
				select {
				case <-before:
				default:
					t.Error("the channel taken before is open")
				}
				if !ended(c) || c.Err() != tc.err {
					t.Errorf("Err is %v, want %v", c.Err(), tc.err)
				}
				for _, want := range tc.cause {
					if !errors.Is(Cause(c), want) {
						t.Errorf("Cause is %v, want %v in it", Cause(c), want)
					}
				}
				if errors.Is(Cause(c), tc.not) {
					t.Errorf("Cause is %v, which is also %v", Cause(c), tc.not)
				}
				if n := h.n.Load(); n != 1 {
					t.Errorf("the hook was interrupted %d times", n)
				}
				if c.Detach(h) {
					t.Error("Detach says that the hook was spared")
				}
				if c.Cancel() {
					t.Error("Cancel ended what had ended")
				}
				if c.Err() != tc.err {
					t.Errorf("Err became %v", c.Err())
				}
				late := &counter{}
				c.Attach(late)
				if late.n.Load() != 1 {
					t.Error("a hook that came late was not interrupted")
				}
			})
		})
	}
}

// Whoever saw the caller's end by Err keeps seeing it, though the news of it has
// not come here when the call is canceled.
func TestErrDoesNotChangeItsMind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := &Context{}
		c.Init(parent, nil) // not watched: the news never comes
		time.Sleep(time.Second)
		synctest.Wait()
		if err := c.Err(); err != context.DeadlineExceeded {
			t.Fatalf("Err is %v", err)
		}
		c.Cancel()
		if err := c.Err(); err != context.DeadlineExceeded {
			t.Errorf("Err is %v now", err)
		}
		if err := Cause(c); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("Cause is %v", err)
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		parent, cancel := context.WithDeadline(t.Context(), start.Add(time.Hour))
		defer cancel()
		c := newContext(parent)
		var expired atomic.Int32
		c.StartTimeout(3*time.Second, func() { expired.Add(1) })
		if at, ok := c.Deadline(); !ok || !at.Equal(start.Add(3*time.Second)) {
			t.Errorf("the deadline is %v, %v", at, ok)
		}
		<-c.Done()
		synctest.Wait()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("ended after %v", took)
		}
		var timeout *event.TimeoutError
		if err := Cause(c); !errors.As(err, &timeout) || timeout.Step != event.StepCall || timeout.After != 3*time.Second {
			t.Errorf("the cause is %#v", err)
		}
		if expired.Load() != 1 {
			t.Errorf("expired was called %d times", expired.Load())
		}
	})
}

func TestTimeoutIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c := newContext(parent)
		c.StartTimeout(time.Second, func() { t.Error("expired") })
		c.StopTimeout()
		time.Sleep(time.Minute)
		if ended(c) {
			t.Error("ended by a timeout that was taken back")
		}
		if at, _ := c.Deadline(); time.Until(at) != 59*time.Minute {
			t.Errorf("the caller's deadline is %v away", time.Until(at))
		}
		c.Finish()
		c.StartTimeout(time.Second, func() { t.Error("expired after the end") })
	})
}

// Package context derives from a Context without a goroutine, and its children
// end with it, by any of its ways to derive.
func TestChildren(t *testing.T) {
	c := newContext(t.Context())
	before := runtime.NumGoroutine()
	plain, cancelPlain := context.WithCancel(c)
	defer cancelPlain()
	timed, cancelTimed := context.WithTimeout(c, time.Hour)
	defer cancelTimed()
	gone, cancelGone := context.WithCancel(c)
	cancelGone()
	called := make(chan struct{})
	stop := context.AfterFunc(c, func() { close(called) })
	stopped := context.AfterFunc(c, func() { t.Error("called though stopped") })
	if !stopped() || stopped() {
		t.Error("stop is true once, while nothing was called")
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("deriving cost %d goroutines", now-before)
	}
	if ended(plain) || ended(timed) || !ended(gone) || ended(c) {
		t.Error("an end went the wrong way")
	}
	c.StartTimeout(time.Nanosecond, func() {})
	<-plain.Done()
	<-timed.Done()
	<-called
	if stop() {
		t.Error("stop says that the function was not called")
	}
	for name, ctx := range map[string]context.Context{"WithCancel": plain, "WithTimeout": timed} {
		var timeout *event.TimeoutError
		if err := Cause(ctx); !errors.As(err, &timeout) || timeout.Step != event.StepCall {
			t.Errorf("%s: the cause is %v", name, err)
		}
		if err := ctx.Err(); err != context.DeadlineExceeded {
			t.Errorf("%s: Err is %v", name, err)
		}
	}
	if err := gone.Err(); err != context.Canceled {
		t.Errorf("Err of a child that ended before is %v", err)
	}
}

func TestCauseOfChildAlone(t *testing.T) {
	boom := errors.New("boom")
	c := newContext(t.Context())
	defer c.Finish()
	child, cancel := context.WithCancelCause(c)
	cancel(boom)
	if err := Cause(child); !errors.Is(err, boom) || !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is %v", err)
	}
	if Cause(c) != nil {
		t.Error("the child's end went up")
	}
}

// Package context calls AfterFunc with a lock held that the function takes.
func TestAfterFuncOfEndedContextMayBeCalledWithLock(t *testing.T) {
	c := newContext(t.Context())
	c.Cancel()
	var mu sync.Mutex
	called := make(chan struct{})
	mu.Lock()
	stop := c.AfterFunc(func() {
		mu.Lock()
		defer mu.Unlock()
		close(called)
	})
	mu.Unlock()
	<-called
	if stop() {
		t.Error("stop says that the function was not called")
	}
}

// Contexts are derived while the call ends: none of them stays behind, and
// nobody waits for a lock for ever.
func TestDerivingRacesWithEnd(t *testing.T) {
	for range 300 {
		c := newContext(t.Context())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				child, cancel := context.WithCancel(c)
				defer cancel()
				<-child.Done()
			})
		}
		wg.Go(func() { c.Cancel() })
		wg.Wait()
	}
}

// Of Detach and the interruption exactly one happens.
func TestDetachRacesWithEnd(t *testing.T) {
	for range 500 {
		c := newContext(t.Context())
		h := &counter{}
		c.Attach(h)
		var wg sync.WaitGroup
		var spared bool
		wg.Go(func() { c.Cancel() })
		wg.Go(func() { spared = c.Detach(h) })
		wg.Wait()
		if got := h.n.Load(); (got == 0) != spared {
			t.Fatalf("spared is %v, interrupted %d times", spared, got)
		}
	}
}

func TestFinishLetsGoOfTheCaller(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	c := newContext(parent)
	c.Finish()
	h := &counter{}
	c.Attach(h)
	cancel()
	if h.n.Load() != 1 {
		t.Errorf("interrupted %d times", h.n.Load())
	}
}
