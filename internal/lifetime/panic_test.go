package lifetime_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/catena-http/catena/internal/lifetime"
)

func TestRecover(t *testing.T) {
	panicking := func(v any) (err error) {
		defer lifetime.Recover(&err)
		panic(v)
	}
	var p *lifetime.PanicError
	if err := panicking("boom"); !errors.As(err, &p) || p.Value != "boom" || err.Error() != "panic: boom" {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(string(p.Stack), "panic_test.go") {
		t.Errorf("the stack does not show where it happened:\n%s", p.Stack)
	}
	if err := panicking(io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("%v is not the error that was panicked with", err)
	}
	quiet := func() (err error) {
		defer lifetime.Recover(&err)
		return io.ErrShortWrite
	}
	if err := quiet(); err != io.ErrShortWrite {
		t.Errorf("without a panic: %v", err)
	}
}
