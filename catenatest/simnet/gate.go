package simnet

import (
	"sync"
	"time"
)

// gate is a mutex with a broadcast that can be waited for until an instant. It waits on a channel and a timer, never
// on the mutex for long, so that a bubble's clock can move.
type gate struct {
	sync.Mutex
	changed chan struct{} // guarded by Mutex; nil while nobody waits; closed by broadcast
}

// wait unlocks, waits for a broadcast or for until (zero: for ever), and locks again. The caller checks its condition
// again afterwards.
func (g *gate) wait(until time.Time) {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	changed := g.changed
	g.Unlock()
	defer g.Lock()
	if until.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}

// broadcast wakes all who wait. The caller holds the lock.
func (g *gate) broadcast() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// earliest is the first of the instants that are not zero, or zero.
func earliest(instants ...time.Time) time.Time {
	var first time.Time
	for _, t := range instants {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
