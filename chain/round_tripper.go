package chain

import (
	"context"
	"errors"
	"net/http"
)

// FromRoundTripper makes an interceptor of existing middleware for net/http:
// wrap, called once, gets the rest of the chain as next and returns the
// middleware around it. The middleware must keep the request's context, or one
// derived from it, when it calls next.
func FromRoundTripper(wrap func(next http.RoundTripper) http.RoundTripper) Interceptor {
	if wrap == nil {
		panic("catena: FromRoundTripper: wrap is nil")
	}
	i := &fromRoundTripper{}
	if i.wrapped = wrap(restOfChain{i}); i.wrapped == nil {
		panic("catena: FromRoundTripper: wrap returned nil")
	}
	return i
}

type fromRoundTripper struct{ wrapped http.RoundTripper }

// Intercept lets the middleware find this chain again by the request's context.
func (i *fromRoundTripper) Intercept(c Chain) (*http.Response, error) {
	req := c.Request()
	return i.wrapped.RoundTrip(req.WithContext(context.WithValue(req.Context(), chainKey{i}, c)))
}

func (i *fromRoundTripper) String() string { return "FromRoundTripper" }

type chainKey struct{ of *fromRoundTripper }

// restOfChain is the links below as a RoundTripper.
type restOfChain struct{ of *fromRoundTripper }

func (r restOfChain) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(chainKey(r)).(Chain)
	if !ok {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, errors.New("a RoundTripper made an interceptor by FromRoundTripper replaced the request's context instead of deriving from it")
	}
	return c.Proceed(req)
}
