package auth

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/catena-http/catena/proxy"
)

// Basic returns an Authenticator that answers Basic challenges with user and password (RFC 7617): an
// origin's 401 in Authorization, a proxy's 407 in Proxy-Authorization, and [PreemptiveScheme] ahead of
// a 407. To all else it answers nil, and also where the refused request carried the same credentials:
// sending them again would change nothing.
//
// The two are sent as UTF-8, which is what charset="UTF-8" in a challenge asks for and what browsers
// do without it. A colon in user and a control character in either can't be sent: Authenticate then
// returns an error, once there is a challenge to answer.
//
// Whoever asks is answered, a server that a redirect leads to included. An [AuthenticatorFunc] around
// it that looks at resp.Request.URL narrows that down.
func Basic(user, password string) Authenticator {
	return &basic{
		value: "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)),
		err:   checkBasic(user, password),
	}
}

// checkBasic returns why the credentials can't be sent, without showing them.
func checkBasic(user, password string) error {
	switch {
	case strings.Contains(user, ":"):
		return errors.New("user name for Basic authentication has a colon")
	case strings.ContainsFunc(user, isControl):
		return errors.New("user name for Basic authentication has a control character")
	case strings.ContainsFunc(password, isControl):
		return errors.New("password for Basic authentication has a control character")
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

var errNoRequest = errors.New("response to authenticate for has no request")

type basic struct {
	value string // of the header field
	err   error  // why value is not to be sent, or nil
}

func (b *basic) Authenticate(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
	challenge, answer := fieldsOf(resp)
	if challenge == "" || !b.answers(Challenges(resp.Header, challenge), resp.StatusCode) {
		return nil, nil
	}
	if b.err != nil {
		return nil, b.err
	}
	if resp.Request == nil {
		return nil, errNoRequest
	}
	if resp.Request.Header.Get(answer) == b.value {
		return nil, nil
	}
	return withField(resp.Request, answer, b.value), nil
}

func (b *basic) answers(challenges []Challenge, status int) bool {
	for _, c := range challenges {
		if c.Is("Basic") || status == http.StatusProxyAuthRequired && c.Is(PreemptiveScheme) {
			return true
		}
	}
	return false
}

func (b *basic) strength(status int, challenges []Challenge) int {
	if b.answers(challenges, status) {
		return strengthBasic
	}
	return 0
}

// fieldsOf names the field that resp's challenges are in and the one for the answer, both "" if resp is
// no refusal.
func fieldsOf(resp *http.Response) (challenge, answer string) {
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return "WWW-Authenticate", "Authorization"
	case http.StatusProxyAuthRequired:
		return "Proxy-Authenticate", "Proxy-Authorization"
	}
	return "", ""
}

// withField returns a clone of req with the header field set, and leaves req as it is.
func withField(req *http.Request, name, value string) *http.Request {
	clone := req.Clone(req.Context())
	if clone.Header == nil {
		clone.Header = make(http.Header)
	}
	clone.Header.Set(name, value)
	return clone
}
