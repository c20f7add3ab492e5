package lifetime

import (
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
