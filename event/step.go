package event

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Step names the part of a call that failed or timed out.
type Step string

// The steps of a call, in their order.
const (
	StepQueue       Step = "queue"       // waiting in the Dispatcher or for the pool's limit
	StepProxySelect Step = "proxyselect" // asking the proxy selector
	StepDNS         Step = "dns"         // looking a name up
	StepConnect     Step = "connect"     // opening the socket
	StepProxy       Step = "proxy"       // talking to the proxy
	StepTLS         Step = "tls"         // the TLS handshake and its checks
	StepWrite       Step = "write"       // writing the request
	StepRead        Step = "read"        // waiting for or reading the response
	StepCall        Step = "call"        // the call as a whole
)

// TimeoutError is a timeout of ours. It is a net.Error. The call timeout (Step
// "call") is a context.DeadlineExceeded to errors.Is, the others are an
// os.ErrDeadlineExceeded; a bare context.DeadlineExceeded is the caller's own.
type TimeoutError struct {
	// Step is what took too long.
	Step Step
	// After is the timeout as it was set.
	After time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s timeout after %v", e.Step, e.After)
}

// Timeout reports true.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary reports true, as net's timeouts do.
func (e *TimeoutError) Temporary() bool { return true }

// Is makes errors.Is find the deadline error that fits the step.
func (e *TimeoutError) Is(target error) bool {
	if e.Step == StepCall {
		return target == context.DeadlineExceeded
	}
	return target == os.ErrDeadlineExceeded
}
