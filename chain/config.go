package chain

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/route"
)

// RetryPolicy says which failed requests may be sent again.
type RetryPolicy int

const (
	// RetrySafe sends a request again only if it cannot have been acted on twice:
	// its method is idempotent (RFC 9110 9.2.2) or it carries an Idempotency-Key,
	// or nothing of it was written, or the server said that it was not processed.
	RetrySafe RetryPolicy = iota
	// RetryLikeOkHttp does not ask whether the request may have been acted on: a
	// POST is sent again like a GET.
	RetryLikeOkHttp
)

func (p RetryPolicy) String() string {
	switch p {
	case RetrySafe:
		return "safe"
	case RetryLikeOkHttp:
		return "okhttp"
	}
	return fmt.Sprintf("RetryPolicy(%d)", int(p))
}

// Config are the settings of a call that an application interceptor can change
// for the links below it, by Chain.With. It is small and copied.
type Config struct {
	// ConnectTimeout bounds each step of connecting as a whole: TCP, TLS.
	// ReadTimeout and WriteTimeout bound each wait for the peer, the head of a
	// response as a whole. 0: no bound.
	ConnectTimeout, ReadTimeout, WriteTimeout time.Duration
	// FollowRedirects follows 300, 301, 302, 303, 307 and 308; FollowSSLRedirects
	// also those from https to http and back.
	FollowRedirects, FollowSSLRedirects bool
	// RetryOnConnectionFailure tries again, within RetryPolicy, when a connection
	// fails. It does not keep the addresses of a host from being tried in turn.
	RetryOnConnectionFailure bool
	// TransparentGzip asks for gzip and decodes it, where the request does not
	// speak of encodings or ranges itself.
	TransparentGzip bool
	// MaxFollowUps bounds the redirects, challenges and repetitions of a call.
	MaxFollowUps int
	RetryPolicy  RetryPolicy
	// UserAgent is sent where the request has none; "" sends none.
	UserAgent string
	// Authenticator answers an origin's 401; nil: none does.
	Authenticator auth.Authenticator
	// CookieJar gives and takes cookies; nil: none.
	CookieJar http.CookieJar
	// Network decides how servers are reached. A chain with another one shares no
	// connection with this one.
	Network *route.Network
	// Pool keeps the connections.
	Pool *connection.Pool

	// MaxResponseHeaderBytes and MaxResponseHeaderFields bound the head of a
	// response, and its trailers, each.
	MaxResponseHeaderBytes, MaxResponseHeaderFields int
	// MaxInterimResponses bounds the 1xx responses of a call, those to requests
	// that are tried again or followed up included.
	MaxInterimResponses int
	// ExpectContinueTimeout is how long a request with "Expect: 100-continue"
	// waits for an answer before its body is sent anyway.
	ExpectContinueTimeout time.Duration

	// FollowUps is false for a RoundTripper, whose user follows responses and
	// keeps cookies himself; see Client.RoundTripper.
	FollowUps bool
}

// Validate reports every setting that makes no sense.
func (c *Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"connect timeout", c.ConnectTimeout},
		{"read timeout", c.ReadTimeout},
		{"write timeout", c.WriteTimeout},
		{"expect-continue timeout", c.ExpectContinueTimeout},
	} {
		if d.d < 0 {
			errs = append(errs, fmt.Errorf("%s is negative: %v", d.name, d.d))
		}
	}
	for _, n := range []struct {
		name string
		n    int
		min  int
	}{
		{"follow-up limit", c.MaxFollowUps, 0},
		{"response header limit in bytes", c.MaxResponseHeaderBytes, 1},
		{"response header limit in fields", c.MaxResponseHeaderFields, 1},
		{"interim response limit", c.MaxInterimResponses, 0},
	} {
		if n.n < n.min {
			errs = append(errs, fmt.Errorf("%s is too small: %d", n.name, n.n))
		}
	}
	if c.RetryPolicy != RetrySafe && c.RetryPolicy != RetryLikeOkHttp {
		errs = append(errs, fmt.Errorf("unknown retry policy %v", c.RetryPolicy))
	}
	if c.Network == nil {
		errs = append(errs, errors.New("there is no network"))
	} else if err := c.Network.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Pool == nil {
		errs = append(errs, errors.New("there is no pool"))
	}
	return errors.Join(errs...)
}
