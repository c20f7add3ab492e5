package chain

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// Attempt is one failed try of a call.
type Attempt = connection.Attempt

// ErrTooManyFollowUps is why a call fails that Config.MaxFollowUps cuts off. It is
// a *connection.ProtocolError.
var ErrTooManyFollowUps error = &connection.ProtocolError{Reason: "too many follow-up requests"}

// CallError is why a call failed. Its text is one sentence about the failure that
// decided; %+v adds the tree of attempts. It is a net.Error. Unwrap gives the
// deciding failure alone: errors.Is(err, context.Canceled) means that the call
// was canceled, not that some attempt was.
type CallError struct {
	// Method and URL are the call's, the URL without secrets.
	Method, URL string
	// Attempts are the failed tries, oldest first; empty where the call failed
	// before or beside any: an invalid request, a closed client, an interceptor.
	Attempts []Attempt
	// Err is the failure that decided.
	Err error

	unnamed bool // the text does not begin with Method and URL
}

// Unnamed is err, a *CallError as NewCallError made it, with a text that leaves out
// method and URL; another error stays as it is. An engine part without a promise.
func Unnamed(err error) error {
	e, ok := err.(*CallError)
	if !ok {
		return err
	}
	unnamed := *e // listeners have the other one
	unnamed.unnamed = true
	return &unnamed
}

// NewCallError wraps err, unless it wraps a CallError already. An engine part
// without a promise to users.
func NewCallError(call event.Call, attempts []Attempt, err error) error {
	var known *CallError
	if errors.As(err, &known) {
		return err
	}
	req := call.Request()
	e := &CallError{Attempts: attempts, Err: err}
	if req != nil {
		if e.Method = req.Method; e.Method == "" {
			e.Method = "GET"
		}
		if req.URL != nil {
			e.URL = call.RedactedURL(req.URL)
		}
	}
	return e
}

// decided is the place of the try that failed with the deciding error, -1 where
// none did.
func (e *CallError) decided() int {
	for i := len(e.Attempts) - 1; i >= 0; i-- {
		if errors.Is(e.Err, e.Attempts[i].Err) {
			return i
		}
	}
	return -1
}

func (e *CallError) Error() string {
	var b strings.Builder
	if subject := strings.TrimSpace(e.Method + " " + e.URL); subject != "" && !e.unnamed {
		b.WriteString(subject + ": ")
	}
	i := e.decided()
	if i < 0 { // the attempts, if any, are not to blame
		b.WriteString(e.Err.Error())
		return b.String()
	}
	a := &e.Attempts[i]
	b.WriteString(phrase(a))
	b.WriteString(e.Err.Error())
	if n := len(e.Attempts); n > 1 {
		fmt.Fprintf(&b, " (%s of %d attempts)", place(i, n), n)
	}
	if !a.Retried && a.Why == event.ReasonMayHaveBeenActedOn && a.Written {
		b.WriteString("; the request may have been acted on and is not sent again")
	}
	return b.String()
}

func place(i, n int) string {
	switch i {
	case n - 1:
		return "the last"
	case 0:
		return "the first"
	}
	return "one"
}

// phrase says what was tried, unless the error itself says it.
func phrase(a *Attempt) string {
	switch {
	case errors.Is(a.Err, connection.ErrPriorKnowledge):
		return "" // nothing was connected to
	case a.Step == event.StepProxySelect:
		return "" // the error says it
	case a.Step == event.StepQueue:
		return "wait for a connection: "
	}
	said := a.Err.Error()
	named := a.Addr == "" || strings.Contains(said, a.Addr)
	switch a.Step {
	case event.StepWrite:
		return "write the request" + where(a, named, " to ") + ": "
	case event.StepRead:
		return "read the response" + where(a, named, " from ") + ": "
	case event.StepTLS:
		return "TLS handshake" + where(a, named, " with ") + ": "
	case event.StepConnect:
		if !a.Proxy.IsDirect() && !strings.Contains(said, a.Proxy.String()) {
			return "connect to proxy " + a.Proxy.String() + ": "
		}
	}
	switch {
	case named:
		return ""
	case a.Step == event.StepDNS:
		return "look up " + a.Addr + ": "
	case a.Step == event.StepProxy && overHTTP(a.Proxy):
		return "ask proxy " + a.Proxy.String() + " for a tunnel: "
	}
	return "connect" + where(a, named, " to ") + ": "
}

// where says which address a step was about, in most cases the origin's. What an
// HTTP proxy carries may be for the proxy or for the origin: Addr is the proxy's.
func where(a *Attempt, named bool, preposition string) string {
	switch {
	case a.Step == event.StepTLS && overHTTP(a.Proxy):
		return " with the origin through proxy " + a.Proxy.String()
	case named:
		return ""
	case a.Proxy.IsDirect():
		return preposition + a.Addr
	case overHTTP(a.Proxy):
		return " through proxy " + a.Proxy.String()
	}
	return preposition + a.Addr + " through " + a.Proxy.String()
}

func overHTTP(p proxy.Proxy) bool { return p.Type == proxy.HTTP || p.Type == proxy.HTTPS }

// Unwrap is the failure that decided.
func (e *CallError) Unwrap() error { return e.Err }

// Timeout reports whether a timeout decided.
func (e *CallError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// Temporary is Timeout, as the standard library's newer errors have it.
func (e *CallError) Temporary() bool { return e.Timeout() }

// Format prints the sentence and, for %+v, one line for each attempt.
func (e *CallError) Format(s fmt.State, verb rune) {
	switch {
	case verb == 'q':
		fmt.Fprintf(s, "%q", e.Error())
		return
	case verb != 'v' || !s.Flag('+'):
		io.WriteString(s, e.Error())
		return
	}
	io.WriteString(s, e.Error())
	for i, a := range e.Attempts {
		fmt.Fprintf(s, "\n  %d. %s", i+1, describe(a))
	}
}

func describe(a Attempt) string {
	var b strings.Builder
	b.WriteString(string(a.Step))
	if a.Addr != "" {
		b.WriteString(" " + a.Addr)
	}
	if !a.Proxy.IsDirect() {
		b.WriteString(" via " + a.Proxy.String())
	}
	if a.Reused {
		b.WriteString(", reused connection")
	}
	if a.Written {
		b.WriteString(", request written")
	}
	fmt.Fprintf(&b, ", %v: %v; ", a.Duration.Round(10_000), a.Err)
	if a.Retried {
		b.WriteString("tried again: ")
	} else {
		b.WriteString("not tried again: ")
	}
	b.WriteString(string(a.Why))
	return b.String()
}
