package connection

import (
	"fmt"
	"net/http"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/event"
	"golang.org/x/net/http/httpguts"
)

func (d *dialer) authenticator() auth.Authenticator {
	return d.route.Address.Network.ProxyAuthenticator
}

// authenticate is the CONNECT that answers the challenge of resp, or nil: none, why.
func (d *dialer) authenticate(resp *http.Response) (*http.Request, event.Reason, error) {
	if d.tunnel.sent >= maxConnects {
		return nil, event.ReasonTooManyFollowUps, nil
	}
	next, err := d.askAuthenticator(resp)
	switch {
	case err != nil:
		return nil, event.ReasonFailed, err
	case next == nil:
		return nil, event.ReasonAuthenticatorDone, nil
	}
	if auth.Repeats(resp, next) {
		return nil, event.ReasonRepeated, nil
	}
	next.Response = resp
	return next, event.ReasonProxyAuthenticate, nil
}

// askAuthenticator is the CONNECT as the authenticator wants it; nil: it gives up.
func (d *dialer) askAuthenticator(resp *http.Response) (*http.Request, error) {
	answer, err := d.authenticator().Authenticate(d.route.Proxy, resp)
	if err == nil && answer != nil {
		err = checkAnswer(answer.Header)
	}
	if err != nil {
		d.foreign = true
		return nil, fmt.Errorf("authenticate with proxy %s: %w", d.route.Shown, err)
	}
	if answer == nil {
		return nil, nil
	}
	next := d.newConnect(resp.Request.Context())
	next.Header = answer.Header.Clone()
	return next, nil
}

// checkAnswer says what can't be sent of an authenticator's header, without showing a
// value.
func checkAnswer(h http.Header) error {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("it set a field of the name %q, which is none", name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("it set the field %q to a value with a control character", name)
			}
		}
	}
	return nil
}
