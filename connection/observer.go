package connection

import (
	"sync"

	"github.com/catena-http/catena/event"
)

// observer sends a connection's events to its Network's listener, one at a time
// and in the order in which they were announced, with no lock held: whoever
// announces while another sends leaves the event to that one.
type observer struct {
	listener event.ConnectionListener // nil: nobody listens

	mu      sync.Mutex // guards the fields below
	sending bool
	queue   []func(event.ConnectionListener)
	retired bool // NoNewExchanges was announced
	ended   bool // Closed was
}

func newObserver(l event.ConnectionListener) observer {
	if l == (event.NopConnectionListener{}) {
		return observer{}
	}
	return observer{listener: l}
}

func (o *observer) connected(c *RealConnection) {
	if o.listener != nil {
		o.send(nil, func(l event.ConnectionListener) { l.Connected(c) })
	}
}

func (o *observer) acquired(c *RealConnection, call event.Call) {
	if o.listener != nil {
		o.send(nil, func(l event.ConnectionListener) { l.Acquired(c, call) })
	}
}

func (o *observer) released(c *RealConnection, call event.Call) {
	if o.listener != nil {
		o.send(nil, func(l event.ConnectionListener) { l.Released(c, call) })
	}
}

func (o *observer) noNewExchanges(c *RealConnection, why event.Reason) {
	if o.listener != nil {
		o.send(&o.retired, func(l event.ConnectionListener) { l.NoNewExchanges(c, why) })
	}
}

func (o *observer) closed(c *RealConnection, why event.Reason) {
	if o.listener != nil {
		o.send(&o.ended, func(l event.ConnectionListener) { l.Closed(c, why) })
	}
}

// send announces an event, unless it is one that comes once and has come. To see
// that and to take a place in the order is one step: whoever finds
// NoNewExchanges announced may go on to Closed.
func (o *observer) send(once *bool, event func(event.ConnectionListener)) {
	o.mu.Lock()
	if once != nil {
		if *once {
			o.mu.Unlock()
			return
		}
		*once = true
	}
	o.queue = append(o.queue, event)
	if o.sending {
		o.mu.Unlock()
		return
	}
	o.sending = true
	defer func() { // also of a listener that panics
		o.sending = false
		o.mu.Unlock()
	}()
	for len(o.queue) > 0 {
		next := o.queue[0]
		o.queue = o.queue[1:]
		o.tell(next)
	}
}

// tell sends one event, without mu, which is held.
func (o *observer) tell(event func(event.ConnectionListener)) {
	o.mu.Unlock()
	defer o.mu.Lock()
	event(o.listener)
}
