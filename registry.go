package catena

import (
	"context"
	"sync"
)

// registry is the calls that have begun and not ended, of a client and of those
// derived from it.
type registry struct {
	mu      sync.Mutex // guards the fields below and the links of the calls
	first   *Call
	changed chan struct{} // closed, and forgotten, when a call ends; nil: nobody waits
}

// add takes a call in, unless its client refuses it.
func (r *registry) add(c *Call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.client.refuses() {
		return false
	}
	c.registered = true
	c.next = r.first
	if r.first != nil {
		r.first.prev = c
	}
	r.first = c
	return true
}

func (r *registry) remove(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.registered {
		return
	}
	c.registered = false
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		r.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// of is the calls of a client and of those derived from it.
func (r *registry) of(client *Client) (calls []*Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ofLocked(client)
}

func (r *registry) ofLocked(client *Client) (calls []*Call) {
	for c := r.first; c != nil; c = c.next {
		if c.client.belongsTo(client) {
			calls = append(calls, c)
		}
	}
	return calls
}

// wait returns when client has no calls, or with ctx's error.
func (r *registry) wait(ctx context.Context, client *Client) error {
	for {
		r.mu.Lock()
		if len(r.ofLocked(client)) == 0 {
			r.mu.Unlock()
			return nil
		}
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
