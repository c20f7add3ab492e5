package chain

import (
	"fmt"
	"net/http"
	"reflect"
	"runtime"

	"github.com/catena-http/catena/event"
)

// Interceptor is a link of the chain. It is used by many calls at a time.
type Interceptor interface {
	// Intercept answers c.Request(), as a rule with what c.Proceed returns.
	// Either the response or the error is not nil. The response's body is the
	// caller's to close. An answer of its own needs a StatusCode; Request, Status,
	// Proto, Header and Body are filled in where it has no Request.
	Intercept(c Chain) (*http.Response, error)
}

// InterceptorFunc makes an Interceptor of a function.
type InterceptorFunc func(c Chain) (*http.Response, error)

// Intercept calls f.
func (f InterceptorFunc) Intercept(c Chain) (*http.Response, error) { return f(c) }

// Chain is a call as one interceptor sees it. It is valid until Intercept
// returns. The interface may grow: a fake embeds Chain.
type Chain interface {
	// Request is the request to answer. Its context is the call's: done when the
	// call is canceled, times out or is over. Read-only: an interceptor that
	// changes it hands a clone to Proceed.
	Request() *http.Request
	// Proceed hands req to the next link. Its context governs the links below
	// and the response's body. Not safe for concurrent use.
	Proceed(req *http.Request) (*http.Response, error)
	// Call is the call.
	Call() event.Call
	// Connection carries the request; nil to an application interceptor.
	Connection() event.Connection
	// Config are the settings in force. Read-only: With changes them.
	Config() *Config
	// With is this chain with settings that change has changed, for the links
	// below. In a network interceptor it is too late: Proceed fails then.
	With(change func(*Config)) Chain
}

// name tells the application which interceptor an error is about.
func name(i Interceptor) string {
	if s, ok := i.(fmt.Stringer); ok {
		return s.String()
	}
	if f, ok := i.(InterceptorFunc); ok {
		if fn := runtime.FuncForPC(reflect.ValueOf(f).Pointer()); fn != nil {
			return fn.Name()
		}
	}
	return fmt.Sprintf("%T", i)
}
