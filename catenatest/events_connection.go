package catenatest

import (
	"errors"
	"fmt"

	"github.com/catena-http/catena/event"
)

// connectionRules are the rules of CheckConnectionEvents.
type connectionRules struct {
	connected, retired, closed bool
	users                      map[uint64]bool // the calls that hold it
}

func (r *connectionRules) next(e event.Event) error {
	if r.closed {
		return errors.New("the connection was closed")
	}
	if e.Name == "Closed" {
		return r.close(e)
	}
	if (e.Name == "Connected") == r.connected {
		return errors.New("the first event of a connection is Connected, once")
	}
	switch e.Name {
	case "Connected":
		r.connected = true
	case "Acquired":
		if r.users[e.CallID] {
			return errors.New("the call holds the connection already")
		}
		r.users[e.CallID] = true
	case "Released":
		if !r.users[e.CallID] {
			return errors.New("the call does not hold the connection")
		}
		delete(r.users, e.CallID)
	case "NoNewExchanges":
		if r.retired {
			return errors.New("it came before")
		}
		r.retired = true
		return because(e)
	default:
		return errors.New("no such event is known")
	}
	return nil
}

func (r *connectionRules) close(e event.Event) error {
	r.closed = true
	switch {
	case !r.connected && e.Why != event.ReasonConnectFailed:
		return errors.New("a connection that stood begins with Connected")
	case len(r.users) > 0:
		return fmt.Errorf("calls that have not released it: %d", len(r.users))
	}
	return because(e)
}

func (r *connectionRules) end() error { return nil }
