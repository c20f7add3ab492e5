package catena

import (
	"errors"
	"fmt"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
)

var (
	// ErrClosed is why a call of a closed client fails.
	ErrClosed = errors.New("the client is closed")
	// ErrAlreadyExecuted is why a call fails that was executed or enqueued before.
	// Clone gives one that can be.
	ErrAlreadyExecuted = errors.New("the call was executed already")
	// ErrTooManyFollowUps is why a call fails that WithMaxFollowUps cuts off.
	ErrTooManyFollowUps = chain.ErrTooManyFollowUps
)

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
var InfoOf = chain.InfoOf

// PanicError is what an enqueued call fails with whose interceptor, or other code
// of the application's, panicked.
type PanicError struct {
	// Value is what was panicked with.
	Value any
	// Stack is the goroutine's stack at that moment, as debug.Stack has it.
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is Value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
