package auth

import (
	"net/http"

	"github.com/catena-http/catena/proxy"
)

// PreemptiveScheme is the scheme of the challenge in a 407 that no proxy sent: it is made up before
// the first CONNECT to a proxy, to ask the proxy's authenticator for credentials ahead of any refusal;
// a [Preemptive] is asked so before plain requests too.
// An authenticator that answers nil is asked again when the proxy really refuses.
const PreemptiveScheme = "Catena-Preemptive"

// PreemptiveChallenge is the 407 with [PreemptiveScheme] to req. An engine part without a promise to
// users.
func PreemptiveChallenge(req *http.Request) *http.Response {
	return &http.Response{
		Status: "407 Preemptive Authenticate", StatusCode: http.StatusProxyAuthRequired,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Proxy-Authenticate": {PreemptiveScheme}},
		Body:   http.NoBody, Request: req,
	}
}

// Authenticator answers challenges. It is used by many calls at once.
type Authenticator interface {
	// Authenticate answers resp, a 401 or 407, with a clone of resp.Request plus credentials, or with nil
	// to give up: then the caller gets resp, or an error where the refusal came to a CONNECT. An error
	// ends the call.
	//
	// An answer that repeats the very credentials that were just refused, in a request that differs in
	// nothing else, counts as giving up.
	//
	// Body and Response of the answer are not the authenticator's business: the body is rewound and
	// Response set after it returns. resp.Request carries the call's context, a CONNECT's too, and an
	// authenticator that waits obeys it. resp is read-only and its body is not to be read.
	//
	// via is the proxy in use, with its password; Proxy{} is none.
	Authenticate(via proxy.Proxy, resp *http.Response) (*http.Request, error)
}

// Preemptive is an Authenticator that is also asked before a request is sent: each request of a call, to
// an origin, that has neither Authorization nor user information in its URL, those after redirects
// included. [Store] is one.
type Preemptive interface {
	Authenticator

	// Authorize may set Authorization in req, a copy made for it; it leaves the body alone. An error ends
	// the call. req carries the call's context.
	Authorize(req *http.Request) error
}

// Observer is an Authenticator that is also shown responses, whatever their status: what a server says
// about the next credentials comes with an answer that refused nothing (Authentication-Info, RFC 7615).
type Observer interface {
	Authenticator

	// Observe sees the response to each request of a call, before it is followed or handed out; a proxy's
	// authenticator those that came through a proxy that reads them, and the answers to each CONNECT. resp
	// is read-only, its body is not to be read, and via is as in Authenticate.
	Observe(via proxy.Proxy, resp *http.Response)
}

// AuthenticatorFunc is a function that is an Authenticator.
type AuthenticatorFunc func(via proxy.Proxy, resp *http.Response) (*http.Request, error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
	return f(via, resp)
}

// None gives up at every challenge.
var None Authenticator = none{}

type none struct{}

func (none) Authenticate(proxy.Proxy, *http.Response) (*http.Request, error) { return nil, nil }

// ResponseCount returns how many responses led to resp, itself included: 1 for the first one of a call,
// one more for every redirect and refusal before it; 0 for nil. It follows resp.Request.Response.
//
// An authenticator that fetches new credentials each time uses it to give up:
//
//	if auth.ResponseCount(resp) >= 3 {
//		return nil, nil
//	}
func ResponseCount(resp *http.Response) int {
	n := 0
	for resp != nil {
		n++
		if resp.Request == nil {
			break
		}
		resp = resp.Request.Response
	}
	return n
}
