package catena

import (
	"context"
	"sync"

	"github.com/catena-http/catena/internal/linked"
)

// registry is the calls that have begun and not ended, of a client and of those
// derived from it.
type registry struct {
	mu      sync.Mutex // guards the fields below and the calls' nodes
	calls   linked.List[Call]
	changed chan struct{} // closed, and forgotten, when a call ends; nil: nobody waits
}

// add takes a call in, unless its client refuses it.
func (r *registry) add(c *Call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.client.refuses() {
		return false
	}
	r.calls.Add(c, &c.begun)
	return true
}

func (r *registry) remove(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls.Remove(&c.begun) && r.changed != nil {
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
	for c := range r.calls.All() {
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
