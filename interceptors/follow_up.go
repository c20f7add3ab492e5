package interceptors

import (
	"net/http"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/redact"
	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/proxy"
)

// follower works out what follows one response.
type follower struct {
	config   *chain.Config
	secrets  *redact.Secrets
	resp     *http.Response
	exchange *connection.Exchange // nil where no connection was used
}

// next is the request that follows, its body not yet rewound; nil: none, why.
func (f follower) next() (*http.Request, event.Reason, error) {
	code := f.resp.StatusCode
	if !follows(code) {
		return nil, event.ReasonFinal, nil
	}
	if !f.config.FollowUps {
		return nil, event.ReasonNotFollowed, nil
	}
	switch code {
	case http.StatusUnauthorized:
		return f.authenticate(f.config.Authenticator, event.ReasonAuthenticate)
	case http.StatusProxyAuthRequired:
		return f.authenticateProxy()
	case http.StatusRequestTimeout:
		return f.afterTimeout()
	case http.StatusServiceUnavailable:
		return f.afterUnavailable()
	case http.StatusExpectationFailed:
		return f.withoutExpect()
	default:
		next, why := redirect{f}.next()
		return next, why, nil
	}
}

// follows reports whether a status asks for another request.
func follows(code int) bool {
	switch code {
	case 300, 301, 302, 303, 307, 308, 401, 407, 408, 417, 503:
		return true
	}
	return false
}

// via is the proxy that the response came through.
func (f follower) via() proxy.Proxy {
	if f.exchange == nil {
		return proxy.Proxy{}
	}
	return f.exchange.Connection().Route().Proxy
}

func (f follower) authenticate(a auth.Authenticator, why event.Reason) (*http.Request, event.Reason, error) {
	if a == nil {
		return nil, event.ReasonAuthenticatorDone, nil
	}
	next, err := a.Authenticate(f.via(), f.resp)
	if err != nil {
		return nil, event.ReasonFailed, err
	}
	if next == nil {
		return nil, event.ReasonAuthenticatorDone, nil
	}
	if f.repeats(next) {
		return nil, event.ReasonRepeated, nil
	}
	if next == f.resp.Request {
		next = again(next)
	}
	return next, why, nil
}

// repeats reports whether next has the credentials that were just refused: once is
// enough. They may be those of a URL, the request's or the proxy's, which the
// links below send.
func (f follower) repeats(next *http.Request) bool {
	user, field := f.resp.Request.URL.User, "Authorization"
	if f.resp.StatusCode == http.StatusProxyAuthRequired {
		user, field = f.via().User, "Proxy-Authorization"
	}
	if user != nil && f.resp.Request.Header.Get(field) == "" {
		return next.Header.Get(field) == basic(user)
	}
	return auth.Repeats(f.resp, next)
}

// authenticateProxy answers the 407 of a plain HTTP proxy. One that comes from an
// origin is not its to send (RFC 9110 15.5.8).
func (f follower) authenticateProxy() (*http.Request, event.Reason, error) {
	if f.exchange == nil || !f.exchange.Connection().Route().Forwarded() {
		return nil, event.ReasonFailed, wire.Protocolf("status 407 from an origin: no proxy is in use that could ask for authentication")
	}
	return f.authenticate(f.config.Network.ProxyAuthenticator, event.ReasonProxyAuthenticate)
}

// again is the same request once more.
func again(req *http.Request) *http.Request {
	next := *req
	return &next
}

// repeated reports whether the response before had the same status: once is
// enough.
func (f follower) repeated() bool {
	prior := f.resp.Request.Response
	return prior != nil && prior.StatusCode == f.resp.StatusCode
}

func (f follower) afterTimeout() (*http.Request, event.Reason, error) {
	after, asked := f.resp.Header["Retry-After"]
	switch {
	case !f.config.RetryOnConnectionFailure:
		return nil, event.ReasonRetryDisabled, nil
	case f.repeated():
		return nil, event.ReasonRepeated, nil
	case asked && !isZero(after):
		return nil, event.ReasonRetryAfter, nil
	}
	return again(f.resp.Request), event.ReasonRequestTimeout, nil
}

func (f follower) afterUnavailable() (*http.Request, event.Reason, error) {
	switch {
	case !isZero(f.resp.Header["Retry-After"]):
		return nil, event.ReasonRetryAfter, nil
	case f.repeated():
		return nil, event.ReasonRepeated, nil
	}
	return again(f.resp.Request), event.ReasonServiceUnavailable, nil
}

func isZero(retryAfter []string) bool {
	return len(retryAfter) == 1 && retryAfter[0] == "0"
}

// withoutExpect repeats a request whose Expect the server cannot meet (RFC 9110
// 15.5.18).
func (f follower) withoutExpect() (*http.Request, event.Reason, error) {
	if _, expects := f.resp.Request.Header["Expect"]; !expects {
		return nil, event.ReasonFinal, nil
	}
	next := again(f.resp.Request)
	next.Header = next.Header.Clone()
	next.Header.Del("Expect")
	return next, event.ReasonExpectationFailed, nil
}
