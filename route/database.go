package route

import (
	"sync"
	"time"
)

const (
	// failureMemory is how long a failed route is postponed at most: a route
	// must not stay last for ever because nothing went wrong with the others.
	failureMemory = 5 * time.Minute
	// maxFailures bounds the memory that failing routes cost; far more than a
	// client meets in failureMemory unless somebody makes it meet them.
	maxFailures = 1024
)

// Database remembers the routes that failed, and the proxies that could not be
// connected to, so that they are tried last, until one of them connects or five
// minutes have passed. The zero value is ready. Safe for concurrent use.
type Database struct {
	mu     sync.Mutex // guards failed
	failed map[key]time.Time
}

// Failed remembers that r failed.
func (d *Database) Failed(r *Route) { d.remember(r.key()) }

// Unreachable remembers that nothing could be connected to by r, which counts for all
// routes through that address of a proxy.
func (d *Database) Unreachable(r *Route) {
	if r.Proxy.IsDirect() {
		d.Failed(r)
		return
	}
	d.remember(r.door())
}

func (d *Database) remember(k key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = make(map[key]time.Time)
	}
	if _, known := d.failed[k]; !known && len(d.failed) >= maxFailures {
		d.forgetOldest()
	}
	d.failed[k] = time.Now()
}

// Connected forgives r, and its proxy.
func (d *Database) Connected(r *Route) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.failed) > 0 {
		delete(d.failed, r.key())
		delete(d.failed, r.door())
	}
}

// ShouldPostpone reports whether r failed, or its proxy could not be reached, and was
// not forgiven since.
func (d *Database) ShouldPostpone(r *Route) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.failed) > 0 && (d.remembers(r.key()) || d.remembers(r.door()))
}

// remembers also forgets what is too old. Called with mu held.
func (d *Database) remembers(k key) bool {
	at, failed := d.failed[k]
	if failed && time.Since(at) > failureMemory {
		delete(d.failed, k)
		return false
	}
	return failed
}

// Len is the number of failures remembered.
func (d *Database) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.failed)
}

// forgetOldest makes room for one. Called with mu held.
func (d *Database) forgetOldest() {
	var oldest key
	var at time.Time
	for k, t := range d.failed {
		if at.IsZero() || t.Before(at) {
			oldest, at = k, t
		}
	}
	delete(d.failed, oldest)
}
