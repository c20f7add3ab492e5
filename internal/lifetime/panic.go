package lifetime

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// PanicError is a panic in code of the application's that ran on a goroutine of
// ours, where nobody above could catch it.
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

// Recover, deferred, turns a panic into *err.
func Recover(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}

// ErrGoexit is how code of the application's ended that ended its goroutine, one of
// ours, by runtime.Goexit.
var ErrGoexit = errors.New("the goroutine was ended by runtime.Goexit")

// Run calls f and then, however f ended, done: with f's error, a *PanicError, or
// ErrGoexit. It is for the goroutines of ours that run the application's code.
func Run(f func() error, done func(error)) {
	err := ErrGoexit
	defer func() { done(err) }()
	err = recovered(f)
}

func recovered(f func() error) (err error) {
	defer Recover(&err)
	return f()
}
