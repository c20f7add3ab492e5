package lifetime

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// WithTimeout is context.WithTimeout, but for what it keeps alive: package time holds a
// stopped timer until its time has come, and with it all that the timer's function can
// reach, which for that of package context is the parent: a call, its request's body
// and its response.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(parent)
	end := new(atomic.Pointer[context.CancelCauseFunc])
	end.Store(&cancel)
	timer := time.AfterFunc(d, func() {
		if cancel := end.Load(); cancel != nil {
			(*cancel)(errTimeout)
		}
	})
	return &timed{inner, parent, time.Now().Add(d)}, func() {
		timer.Stop()
		end.Store(nil)
		cancel(nil)
	}
}

// errTimeout is the cause of a timed context that its own timer has ended.
var errTimeout = errors.New("the time is up")

// timed is a context with a deadline of its own.
type timed struct {
	inner  context.Context // ended by the timer too
	parent context.Context
	at     time.Time
}

func (t *timed) Deadline() (time.Time, bool) {
	if at, ok := t.parent.Deadline(); ok && at.Before(t.at) {
		return at, true
	}
	return t.at, true
}

func (t *timed) Done() <-chan struct{} { return t.inner.Done() }

func (t *timed) Err() error {
	err := t.inner.Err()
	if err != nil && context.Cause(t.inner) == errTimeout {
		return context.DeadlineExceeded
	}
	return err
}

// Value is the parent's, without inner: package context would take a child's error
// from there.
func (t *timed) Value(key any) any { return t.parent.Value(key) }

// AfterFunc lets package context follow without a goroutine.
func (t *timed) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(t.inner, f) }
