package lifetime_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/catena-http/catena/internal/lifetime"
)

// It ends as context.WithTimeout does, and so do contexts made of it.
func TestWithTimeout(t *testing.T) {
	own := errors.New("own")
	type key struct{}
	for name, tc := range map[string]struct {
		parent time.Duration // until it ends; 0: it does not
		wait   time.Duration
		cancel bool
		err    error
	}{
		"in time":         {0, time.Second - 1, false, nil},
		"too late":        {0, time.Second, false, context.DeadlineExceeded},
		"canceled":        {0, time.Second, true, context.Canceled},
		"parent was late": {time.Second / 2, time.Second / 2, false, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent := context.WithValue(t.Context(), key{}, own)
				until := time.Now().Add(time.Second)
				if tc.parent > 0 {
					until = time.Now().Add(tc.parent)
					var cancel context.CancelFunc
					parent, cancel = context.WithDeadline(parent, until)
					defer cancel()
				}
				ctx, cancel := lifetime.WithTimeout(parent, time.Second)
				defer cancel()
				child, cancelChild := context.WithCancel(ctx)
				defer cancelChild()
				if at, ok := ctx.Deadline(); !ok || !at.Equal(until) || ctx.Value(key{}) != own {
					t.Errorf("deadline %v, %t, want %v; value %v", at, ok, until, ctx.Value(key{}))
				}
				if tc.cancel {
					cancel()
				}
				time.Sleep(tc.wait)
				synctest.Wait()
				for what, c := range map[string]context.Context{"it": ctx, "a child": child} {
					ended := false
					select {
					case <-c.Done():
						ended = true
					default:
					}
					if c.Err() != tc.err || ended != (tc.err != nil) {
						t.Errorf("%s: error %v, done %t, want %v", what, c.Err(), ended, tc.err)
					}
				}
			})
		})
	}
}

// What the parent reaches is free to go when the timeout was taken back, long before
// its time.
func TestWithTimeoutLetsGo(t *testing.T) {
	var calls []weak.Pointer[lifetime.Context]
	for range 100 {
		func() {
			call := &lifetime.Context{}
			call.Init(t.Context(), nil)
			calls = append(calls, weak.Make(call))
			_, cancel := lifetime.WithTimeout(call, time.Hour)
			for range 8 { // among others that run, a stopped timer is not looked for
				other := time.AfterFunc(time.Minute, func() {})
				t.Cleanup(func() { other.Stop() })
			}
			cancel()
			call.Finish()
		}()
	}
	runtime.GC()
	held := 0
	for _, call := range calls {
		if call.Value() != nil {
			held++
		}
	}
	if held > 1 { // a register may have the last one
		t.Errorf("%d of %d contexts are held", held, len(calls))
	}
}
