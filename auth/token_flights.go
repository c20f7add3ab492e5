package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// tokenFlights keeps a token and fetches it where there is none, for all who want it by one call of the
// source. A flight whose callers have all gone is canceled and no longer joined.
type tokenFlights struct {
	source func(ctx context.Context) (string, error)

	mu     sync.Mutex // guards the fields below and the waiters of the flight
	kept   string
	flight *tokenFlight // nil: none is under way
}

type tokenFlight struct {
	waiters int // guarded by tokenFlights.mu
	cancel  context.CancelFunc

	done  chan struct{} // closed when the fields below are set
	token string
	err   error
}

// token is what is kept, or what the source returns. It returns when ctx ends even if the source does not.
func (t *tokenFlights) token(ctx context.Context) (string, error) {
	t.mu.Lock()
	if t.kept != "" {
		defer t.mu.Unlock()
		return t.kept, nil
	}
	f := t.flight
	if f == nil {
		f = t.start(ctx)
	}
	f.waiters++
	t.mu.Unlock()
	defer t.leave(f)
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// drop lets go of a token that was refused.
func (t *tokenFlights) drop(refused string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == refused {
		t.kept = ""
	}
}

func (t *tokenFlights) start(ctx context.Context) *tokenFlight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &tokenFlight{cancel: cancel, done: make(chan struct{})}
	t.flight = f
	go t.run(ctx, f)
	return f
}

// run ends when the source returns, panics or ends the goroutine.
func (t *tokenFlights) run(ctx context.Context, f *tokenFlight) {
	var token string
	err := errors.New("it ended its goroutine")
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
		t.land(f, token, err)
	}()
	token, err = t.source(ctx)
	if err == nil {
		err = checkToken(token)
	}
}

func (t *tokenFlights) land(f *tokenFlight, token string, err error) {
	t.mu.Lock()
	if t.flight == f {
		t.flight = nil
		if err == nil {
			t.kept = token
		}
	}
	t.mu.Unlock()
	f.token, f.err = token, err
	f.cancel()
	close(f.done)
}

func (t *tokenFlights) leave(f *tokenFlight) {
	t.mu.Lock()
	f.waiters--
	abandoned := f.waiters == 0
	if abandoned && t.flight == f {
		t.flight = nil
	}
	t.mu.Unlock()
	if abandoned {
		f.cancel() // without the lock: the source may follow the context by code of its own
	}
}
