package catena

import (
	"context"
	"errors"
	"net/http"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
)

var (
	// ErrClosed is why a call of a closed client fails: one that comes too late,
	// and one that Close cancels, which is a context.Canceled too.
	ErrClosed = errors.New("the client is closed")
	// ErrAlreadyExecuted is why a call fails that was executed or enqueued before.
	// Clone gives one that can be.
	ErrAlreadyExecuted = errors.New("the call was executed already")
	// ErrTooManyFollowUps is why a call fails that WithMaxFollowUps cuts off.
	ErrTooManyFollowUps = chain.ErrTooManyFollowUps
)

var errUnmade = &CallError{Err: errors.New("the client was not made by catena.New")}

// closedError is what cancels the calls of a client that is closed.
type closedError struct{}

func (closedError) Error() string { return ErrClosed.Error() }

func (closedError) Unwrap() []error { return []error{ErrClosed, context.Canceled} }

type (
	// CallError is why a call failed: every attempt and the failure that decided.
	CallError = chain.CallError
	// Attempt is one failed try of a call.
	Attempt = chain.Attempt
	// Info is how a response came about.
	Info = chain.Info
	// TimeoutError is a timeout of the client's own.
	TimeoutError = event.TimeoutError
)

// InfoOf is how resp came about; see chain.InfoOf.
func InfoOf(resp *http.Response) (Info, bool) { return chain.InfoOf(resp) }

// PanicError is what a call fails with that met a panic in the application's code
// on a goroutine of the client's: in an interceptor of an enqueued call, in a
// resolver, a dialer or a body.
type PanicError = lifetime.PanicError
