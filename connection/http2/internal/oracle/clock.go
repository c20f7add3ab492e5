package oracle

import (
	"sync"
	"time"
)

// clock is the read timeout of a stream. It runs while somebody waits for the
// server, but not before the request is complete: until then the server may
// rightly be silent.
type clock struct {
	timeout time.Duration // 0: it never runs
	expire  func()        // called once the time is over, without the lock

	mu       sync.Mutex // guards what follows
	waiting  bool
	running  bool // the request is complete
	deadline time.Time
	timer    *time.Timer
}

// start and stop enclose a wait.
func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = true
	c.armLocked()
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = false
	if c.timer != nil {
		c.timer.Stop()
	}
}

// requestComplete lets the time run, also for a wait under way.
func (c *clock) requestComplete() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		c.running = true
		c.armLocked()
	}
}

// complete reports whether the request is.
func (c *clock) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

func (c *clock) armLocked() {
	if !c.waiting || !c.running || c.timeout <= 0 {
		return
	}
	c.deadline = time.Now().Add(c.timeout)
	if c.timer == nil {
		c.timer = time.AfterFunc(c.timeout, c.fire)
	} else {
		c.timer.Reset(c.timeout)
	}
}

// fire may come from a wait that is over, if it lost the race with stop.
func (c *clock) fire() {
	c.mu.Lock()
	late := c.waiting && !time.Now().Before(c.deadline)
	c.mu.Unlock()
	if late {
		c.expire()
	}
}
