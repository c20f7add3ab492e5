package interceptors

import (
	"fmt"
	"net/http"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// authorizer sees to the credentials of one call's requests that are not answers to a challenge.
type authorizer struct {
	origin, proxy made        // in Authorization and in Proxy-Authorization
	via           proxy.Proxy // of the last response
	proxyVia      proxy.Proxy // that proxy was made for
}

// made is what an authenticator, not the application, has set in a field last.
type made struct {
	value string
	sent  bool
}

// forProxy is what was made last for a proxy; nil: nothing.
func (a *authorizer) forProxy() *chain.ProxyAuthorization {
	if a.proxy.value == "" {
		return nil
	}
	return &chain.ProxyAuthorization{Value: a.proxy.value, Via: a.proxyVia}
}

// asSent is req, which resp answers, without what was made for another proxy than
// the one that it went through in the end, and with what was sent to that one ahead:
// authenticators take what is in a refused request for refused.
func (a *authorizer) asSent(req *http.Request, resp *http.Response, x *connection.Exchange, made *chain.ProxyAuthorization) *http.Request {
	if made != nil && made.Ahead && resp.StatusCode == http.StatusProxyAuthRequired {
		resp.Request = withAhead(req, made)
		return resp.Request
	}
	if x == nil || !a.forProxy().Strays(req.Header, x.Connection().Route().Proxy) {
		return req
	}
	own := *req
	own.Header = req.Header.Clone()
	own.Header.Del("Proxy-Authorization")
	resp.Request = &own
	return &own
}

// withAhead is req with what was sent ahead.
func withAhead(req *http.Request, made *chain.ProxyAuthorization) *http.Request {
	own := *req
	own.Header = req.Header.Clone()
	if own.Header == nil {
		own.Header = http.Header{}
	}
	own.Header.Set("Proxy-Authorization", made.Value)
	return &own
}

// prepare is req as it is to be sent: with credentials ahead of a challenge, and without those that were good
// for an earlier request, or an earlier try, only. It changes nothing in req.
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
	a.origin.sent, a.proxy.sent = true, true
	if own == req {
		return req, nil
	}
	return own, ValidateRequest(own)
}

// renew replaces what was made for an earlier request and is in this one too.
func (a *authorizer) renew(req *http.Request, config *chain.Config) (*http.Request, error) {
	var err error
	if a.origin.isSentIn(req, "Authorization") {
		if req, err = auth.Renew(config.Authenticator, a.via, req, http.StatusUnauthorized); err != nil {
			return nil, err
		}
		a.origin = made{value: req.Header.Get("Authorization")}
	}
	if a.proxy.isSentIn(req, "Proxy-Authorization") {
		if req, err = auth.Renew(config.Network.ProxyAuthenticator, a.proxyVia, req, http.StatusProxyAuthRequired); err != nil {
			return nil, err
		}
		a.proxy = made{value: req.Header.Get("Proxy-Authorization")}
	}
	return req, nil
}

// isSentIn reports whether req would send in field what was made and sent before.
func (m made) isSentIn(req *http.Request, field string) bool {
	return m.sent && m.value != "" && req.Header.Get(field) == m.value
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
	a.origin = made{value: own.Header.Get("Authorization")}
	return own, nil
}

// aheadOfProxy asks a Preemptive for credentials for the plain proxy that req is about
// to be sent to, ahead of a refusal; nil: none are known, or wanted.
func aheadOfProxy(req *http.Request, r *route.Route, config *chain.Config) (*chain.ProxyAuthorization, error) {
	if !config.FollowUps || !r.Forwarded() || r.Proxy.User != nil || hasProxyAuthorization(req.Header) {
		return nil, nil
	}
	p, ok := config.Network.ProxyAuthenticator.(auth.Preemptive)
	if !ok {
		return nil, nil
	}
	answer, err := p.Authenticate(r.Proxy, auth.PreemptiveChallenge(req))
	if err != nil {
		return nil, fmt.Errorf("authenticate with proxy %s: %w", r.Shown, err)
	}
	if answer == nil || answer.Header.Get("Proxy-Authorization") == "" {
		return nil, nil
	}
	value := answer.Header.Get("Proxy-Authorization")
	if !httpguts.ValidHeaderFieldValue(value) {
		return nil, fmt.Errorf("authenticate with proxy %s: the credentials have a control character", r.Shown)
	}
	return &chain.ProxyAuthorization{Value: value, Via: r.Proxy, Ahead: true}, nil
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
		a.origin = made{value: next.Header.Get("Authorization")}
	case event.ReasonProxyAuthenticate:
		a.proxy, a.proxyVia = made{value: next.Header.Get("Proxy-Authorization")}, a.via
	}
}

// observe shows a response to the authenticators that want to see it; the proxy's sees with it what went
// ahead. x is nil where no connection was used.
func (a *authorizer) observe(resp *http.Response, x *connection.Exchange, config *chain.Config, made *chain.ProxyAuthorization) {
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
		if made != nil && made.Ahead {
			seen := *resp
			seen.Request = withAhead(resp.Request, made)
			resp = &seen
		}
		o.Observe(a.via, resp)
	}
}
