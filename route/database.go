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

// Database remembers the routes that failed, so that they are tried last, until
// one of them connects or five minutes have passed. The zero value is ready.
// Safe for concurrent use.
type Database struct {
	mu     sync.Mutex // guards failed
	failed map[key]time.Time
}

// Failed remembers that r failed.
func (d *Database) Failed(r *Route) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = make(map[key]time.Time)
	}
	k := r.key()
	if _, known := d.failed[k]; !known && len(d.failed) >= maxFailures {
		d.forgetOldest()
	}
	d.failed[k] = time.Now()
}

// Connected forgives r.
func (d *Database) Connected(r *Route) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.failed) > 0 {
		delete(d.failed, r.key())
	}
}

// ShouldPostpone reports whether r failed and was not forgiven since.
func (d *Database) ShouldPostpone(r *Route) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.failed) == 0 {
		return false
	}
	at, failed := d.failed[r.key()]
	if failed && time.Since(at) > failureMemory {
		delete(d.failed, r.key())
		return false
	}
	return failed
}

// Len is the number of routes remembered.
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
