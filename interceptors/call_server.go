package interceptors

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/route"
)

// watchedBody is the size from which on, and an unknown size always, the response
// is watched for while the request's body is being sent.
const watchedBody = 64 << 10

// CallServer writes the request and reads the response; the last link.
type CallServer struct{}

// Intercept exchanges c.Request() for a response. Its body is still on the
// connection.
func (CallServer) Intercept(c chain.Chain) (*http.Response, error) {
	link := c.(*chain.RealInterceptorChain)
	if link.Run().HasNetwork() {
		if err := ValidateRequest(c.Request()); err != nil { // what they made of it
			return nil, err
		}
	}
	x := link.Exchange()
	req, err := authorizedForProxy(link, x.Connection().Route())
	if err != nil {
		return nil, err
	}
	size := sizeOf(req)
	expect := size != 0 && httpguts.HeaderValuesContainsToken(req.Header["Expect"], "100-continue")
	if err := x.WriteRequestHeaders(req, size, expect); err != nil {
		return answerAfter(x, err)
	}
	if size == 0 {
		return x.ReadResponseHeaders(nil)
	}
	if expect {
		resp, err := awaitContinue(x, c.Config().ExpectContinueTimeout)
		if err != nil {
			return nil, err
		}
		if resp != nil {
			lifetime.OnceBody(req.Body).Close()
			return resp, nil
		}
	}
	return sendBody(x, req, size)
}

// sizeOf is the size of a network request's body: 0 none, -1 unknown. Bridge has
// set the length; a body that came later without one has an unknown length.
func sizeOf(req *http.Request) int64 {
	switch {
	case req.Body == nil, req.Body == http.NoBody:
		return 0
	case req.ContentLength == 0:
		return -1
	}
	return req.ContentLength
}

func sendBody(x *connection.Exchange, req *http.Request, size int64) (*http.Response, error) {
	large := size < 0 || size > watchedBody
	switch {
	case large && !x.Duplex():
		return x.SendBodyWatching(req)
	case large:
		x.StartUpload(req)
	default:
		if err := x.SendBody(req); err != nil {
			return answerAfter(x, err)
		}
	}
	resp, err := x.ReadResponseHeaders(nil)
	if err != nil {
		if own := x.UploadError(); own != nil {
			return nil, own
		}
		return nil, err
	}
	return resp, nil
}

// awaitContinue waits for leave to send the body: a 100, or silence for d. A
// final response instead is returned, and the body is not sent (RFC 9110
// 10.1.1).
func awaitContinue(x *connection.Exchange, d time.Duration) (*http.Response, error) {
	until := time.Now().Add(d)
	any := func(int) bool { return true }
	for {
		answered, err := x.AwaitResponse(time.Until(until))
		if err != nil || !answered {
			return nil, err
		}
		resp, err := x.ReadResponseHeaders(any)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode == http.StatusContinue:
			return nil, nil
		case resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols:
			x.SkipBody()
			return resp, nil
		}
	}
}

// answerAfter looks for a response although the request could not be written to
// its end: a server may answer and close without reading all of it. Where it saw
// nothing of the request, what it says is no answer to it. The failure to write
// stays the one that counts.
func answerAfter(x *connection.Exchange, err error) (*http.Response, error) {
	var own *connection.RequestBodyError
	var unprocessed *connection.UnprocessedError
	var timeout *event.TimeoutError
	if errors.As(err, &own) || errors.As(err, &unprocessed) || errors.As(err, &timeout) || !x.Written() || x.Ended() {
		return nil, err
	}
	x.SkipBody()
	resp, readErr := x.ReadResponseHeaders(nil)
	if readErr != nil {
		return nil, err
	}
	return resp, nil
}

// authorizedForProxy is the request of link with the credentials that are known for
// the proxy of r, if that reads the request.
func authorizedForProxy(link *chain.RealInterceptorChain, r *route.Route) (*http.Request, error) {
	run, req := link.Run(), link.Request()
	ahead, err := aheadOfProxy(req, r, link.Config())
	if err != nil {
		return nil, ended(run.Allocation.Life(), req, err)
	}
	if ahead != nil {
		run.ProxyAuthorization = ahead
	}
	return withProxyAuthorization(req, r, run.ProxyAuthorization), nil
}

// withProxyAuthorization sees to it that Proxy-Authorization goes to a plain HTTP
// proxy, the one field's only reader here, and to nobody else; made to no other than
// the proxy it was made for.
func withProxyAuthorization(req *http.Request, r *route.Route, made *chain.ProxyAuthorization) *http.Request {
	has, forwarded := hasProxyAuthorization(req.Header), r.Forwarded()
	strays := has && (!forwarded || made.Strays(req.Header, r.Proxy))
	var own string
	switch {
	case !forwarded || has && !strays:
	case r.Proxy.User != nil:
		own = basic(r.Proxy.User)
	case made != nil && made.Ahead:
		own = made.Value
	}
	if !strays && own == "" {
		return req
	}
	changed := *req
	changed.Header = req.Header.Clone()
	if strays {
		maps.DeleteFunc(changed.Header, func(name string, _ []string) bool { return isProxyAuthorization(name) })
	}
	if own != "" {
		changed.Header.Set("Proxy-Authorization", own)
	}
	return &changed
}

func hasProxyAuthorization(h http.Header) bool {
	for name := range h {
		if isProxyAuthorization(name) {
			return true
		}
	}
	return false
}

// isProxyAuthorization also knows a name that is not in canonical case.
func isProxyAuthorization(name string) bool {
	const canonical = "Proxy-Authorization"
	return len(name) == len(canonical) && strings.EqualFold(name, canonical)
}

// basic is user's credentials by RFC 7617.
func basic(user *url.Userinfo) string {
	password, _ := user.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
}
