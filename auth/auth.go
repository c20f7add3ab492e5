package auth

import (
	"net/http"

	"github.com/catena-http/catena/proxy"
)

// PreemptiveScheme is the scheme of the challenge in a 407 that no proxy sent: it is made up before
// the first CONNECT to a proxy, to ask the proxy's authenticator for credentials ahead of any refusal.
// An authenticator that answers nil is asked again when the proxy really refuses. Not yet: this version
// sends no CONNECT.
const PreemptiveScheme = "Catena-Preemptive"

// Authenticator answers challenges. It is used by many calls at once.
type Authenticator interface {
	// Authenticate answers resp, a 401 or 407, with a clone of resp.Request plus credentials, or with nil
	// to give up: then the caller gets resp, or an error where the refusal came to a CONNECT. An error
	// ends the call.
	//
	// Body and Response of the answer are not the authenticator's business: the body is rewound and
	// Response set after it returns. resp.Request carries the call's context, a CONNECT's too, and an
	// authenticator that waits obeys it. resp is read-only and its body is not to be read.
	//
	// via is the proxy in use, with its password; Proxy{} is none.
	Authenticate(via proxy.Proxy, resp *http.Response) (*http.Request, error)
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
