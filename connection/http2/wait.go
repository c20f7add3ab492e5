package http2

import "time"

// A waiter parks one goroutine until somebody wakes it. A wake-up may come for
// nothing, so whoever is woken looks again; one that comes early is kept. That
// makes it safe to wake a waiter that has been passed on to another stream.
type waiter struct {
	ch    chan struct{} // capacity 1
	timer *time.Timer   // wakes; nil until it is first needed
}

func newWaiter() *waiter { return &waiter{ch: make(chan struct{}, 1)} }

func (w *waiter) wake() {
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// alarm wakes after d, instead of an alarm that was set before.
func (w *waiter) alarm(d time.Duration) {
	if w.timer == nil {
		w.timer = time.AfterFunc(d, w.wake)
	} else {
		w.timer.Reset(d)
	}
}

// quiet takes the alarm back.
func (w *waiter) quiet() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// A deadline is the time limit of one wait. The zero value has not begun.
type deadline struct{ at time.Time }

// over begins the time of d, which is to wake w, where it has not begun, and
// reports whether it is over. A limit of 0 or less is none.
func (dl *deadline) over(w *waiter, limit time.Duration) bool {
	if limit <= 0 {
		return false
	}
	now := time.Now()
	if dl.at.IsZero() {
		dl.at = now.Add(limit)
		w.alarm(limit)
		return false
	}
	return !now.Before(dl.at)
}
