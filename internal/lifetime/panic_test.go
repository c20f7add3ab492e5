package lifetime_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
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

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		f    func() error
		want string
	}{
		"returns": {func() error { return nil }, "<nil>"},
		"fails":   {func() error { return io.ErrShortWrite }, "short write"},
		"panics":  {func() error { panic("boom") }, "panic: boom"},
		"exits":   {func() error { runtime.Goexit(); return nil }, "the goroutine was ended by runtime.Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan error, 2)
			go lifetime.Run(tc.f, func(err error) { got <- err; close(got) })
			if err := <-got; fmt.Sprint(err) != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if _, again := <-got; again {
				t.Error("done was called twice")
			}
		})
	}
}
