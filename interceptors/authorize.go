package interceptors

import (
	"fmt"
	"net/http"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// authorizer sees to the credentials of one call's requests that are not answers to a challenge.
type authorizer struct {
	// What an authenticator, not the application, has set last: in Authorization and in
	// Proxy-Authorization.
	made, madeProxy string
	via             proxy.Proxy // of the last response
}

// prepare is req as it is to be sent: with credentials ahead of a challenge, and without those that were good
// for an earlier request only. It changes nothing in req.
func (a *authorizer) prepare(req *http.Request, config *chain.Config) (*http.Request, error) {
	if !config.FollowUps {
		return req, nil
	}
	own, err := a.renew(req, config)
	if err == nil {
		own, err = a.ahead(own, config)
	}
	if err != nil {
		return nil, fmt.Errorf("authorize the request ahead of a challenge: %w", err)
	}
	if own == req {
		return req, nil
	}
	return own, ValidateRequest(own)
}

// renew replaces what an authenticator made for the request before this one.
func (a *authorizer) renew(req *http.Request, config *chain.Config) (*http.Request, error) {
	if req.Response == nil || req.Response.Request == nil {
		return req, nil
	}
	before := req.Response.Request.Header
	var err error
	if v := req.Header.Get("Authorization"); v != "" && v == a.made && v == before.Get("Authorization") {
		if req, err = auth.Renew(config.Authenticator, a.via, req, http.StatusUnauthorized); err != nil {
			return nil, err
		}
		a.made = req.Header.Get("Authorization")
	}
	if v := req.Header.Get("Proxy-Authorization"); v != "" && v == a.madeProxy && v == before.Get("Proxy-Authorization") {
		if req, err = auth.Renew(config.Network.ProxyAuthenticator, a.via, req, http.StatusProxyAuthRequired); err != nil {
			return nil, err
		}
		a.madeProxy = req.Header.Get("Proxy-Authorization")
	}
	return req, nil
}

// ahead asks a Preemptive for credentials.
func (a *authorizer) ahead(req *http.Request, config *chain.Config) (*http.Request, error) {
	p, ok := config.Authenticator.(auth.Preemptive)
	if !ok || req.URL.User != nil || hasAuthorization(req.Header) {
		return req, nil
	}
	own := req.Clone(req.Context())
	if own.Header == nil {
		own.Header = http.Header{}
	}
	if err := p.Authorize(own); err != nil {
		return nil, err
	}
	a.made = own.Header.Get("Authorization")
	return own, nil
}

func hasAuthorization(h http.Header) bool {
	for name := range h {
		if fieldOf(name) == fieldAuthorization {
			return true
		}
	}
	return false
}

// note remembers what an authenticator made of a refused request.
func (a *authorizer) note(next *http.Request, why event.Reason) {
	switch why {
	case event.ReasonAuthenticate:
		a.made = next.Header.Get("Authorization")
	case event.ReasonProxyAuthenticate:
		a.madeProxy = next.Header.Get("Proxy-Authorization")
	}
}

// observe shows a response to the authenticators that want to see it. x is nil where no connection was used.
func (a *authorizer) observe(resp *http.Response, x *connection.Exchange, config *chain.Config) {
	if !config.FollowUps {
		return
	}
	forwarded := false
	a.via = proxy.Proxy{}
	if x != nil {
		r := x.Connection().Route()
		a.via, forwarded = r.Proxy, r.Forwarded()
	}
	if o, ok := config.Authenticator.(auth.Observer); ok {
		o.Observe(a.via, resp)
	}
	if !forwarded {
		return
	}
	if o, ok := config.Network.ProxyAuthenticator.(auth.Observer); ok {
		o.Observe(a.via, resp)
	}
}
