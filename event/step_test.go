package event_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/catena-http/catena/event"
)

func TestTimeoutError(t *testing.T) {
	for _, step := range []event.Step{event.StepQueue, event.StepProxySelect, event.StepDNS, event.StepConnect,
		event.StepProxy, event.StepTLS, event.StepWrite, event.StepRead, event.StepCall} {
		t.Run(string(step), func(t *testing.T) {
			err := fmt.Errorf("attempt: %w", &event.TimeoutError{Step: step, After: 1500 * time.Millisecond})
			ofCall := step == event.StepCall
			if got := errors.Is(err, context.DeadlineExceeded); got != ofCall {
				t.Errorf("is context.DeadlineExceeded: %v, want %v", got, ofCall)
			}
			if got := errors.Is(err, os.ErrDeadlineExceeded); got == ofCall {
				t.Errorf("is os.ErrDeadlineExceeded: %v, want %v", got, !ofCall)
			}
			if errors.Is(err, context.Canceled) {
				t.Error("is context.Canceled")
			}
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Error("is no net.Error that says timeout")
			}
			if want := "attempt: " + string(step) + " timeout after 1.5s"; err.Error() != want {
				t.Errorf("reads %q, want %q", err, want)
			}
		})
	}
}
