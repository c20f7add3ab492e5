package main

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// schemes are the ways to authenticate that are allowed. None is Basic alone.
type schemes struct{ basic, digest bool }

// wait reports whether credentials can be sent only after a challenge has come.
func (s schemes) wait() bool { return s.digest }

// answer is an authenticator for one login that waits, and remembers who asked.
func (s schemes) answer(l login) auth.Preemptive {
	a := auth.Digest(l.user, l.password)
	if s.basic {
		a = auth.Strongest(a, auth.Basic(l.user, l.password))
	}
	return auth.Store(a)
}

// logins authenticates with origins: those that the command line has a login for,
// and those in the .netrc. Calls run one after the other, each on the goroutine that
// also adds to named; so there is no lock.
type logins struct {
	schemes schemes
	netrc   netrc
	named   map[string]login // by origin
	answers map[login]auth.Preemptive
}

// name gives an origin a login of the command line.
func (l *logins) name(u *url.URL, of login) {
	if l.named == nil {
		l.named = map[string]login{}
	}
	l.named[originOf(u)] = of
}

// Authorize sends ahead what may be: Basic credentials of the .netrc, and others to
// origins that have asked.
func (l *logins) Authorize(req *http.Request) error {
	of, ok := l.find(req)
	switch {
	case !ok:
		return nil
	case !l.schemes.wait():
		req.SetBasicAuth(of.user, of.password)
		return nil
	}
	return l.answer(of).Authorize(req)
}

// Authenticate answers the challenge of an origin that there is a login for. Basic
// alone is no answer: it was sent ahead.
func (l *logins) Authenticate(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
	of, ok := l.find(resp.Request)
	if !ok || !l.schemes.wait() {
		return nil, nil
	}
	return l.answer(of).Authenticate(via, resp)
}

// Observe learns the next nonce of Digest.
func (l *logins) Observe(via proxy.Proxy, resp *http.Response) {
	if of, ok := l.find(resp.Request); ok && l.schemes.wait() {
		if o, ok := l.answer(of).(auth.Observer); ok {
			o.Observe(via, resp)
		}
	}
}

func (l *logins) answer(of login) auth.Preemptive {
	a, ok := l.answers[of]
	if !ok {
		a = l.schemes.answer(of)
		if l.answers == nil {
			l.answers = map[login]auth.Preemptive{}
		}
		l.answers[of] = a
	}
	return a
}

// find returns the login for a request. What a redirect may lead to is not the user's
// choice: there the .netrc counts by name only, without its default, and never in
// clear text after https.
func (l *logins) find(req *http.Request) (login, bool) {
	if of, ok := l.named[originOf(req.URL)]; ok {
		return of, true
	}
	first, secured := req, false
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
		secured = secured || first.URL.Scheme == "https"
	}
	if secured && req.URL.Scheme != "https" {
		return login{}, false
	}
	own := canonicalHost(req.URL.Hostname()) == canonicalHost(first.URL.Hostname())
	return l.netrc.find(req.URL.Hostname(), "", own)
}

// originOf is scheme, host and port.
func originOf(u *url.URL) string {
	return u.Scheme + "://" + canonicalHost(u.Hostname()) + ":" + strconv.Itoa(portOf(u))
}

// logIn gives a request the credentials that the command line has for it: of -u, or
// of its URL.
func (c *command) logIn(req *http.Request) {
	of, ok := c.loginOf(req.URL)
	switch {
	case !ok:
	case c.options.schemes.wait():
		c.logins.name(req.URL, of)
		req.URL.User = nil // else the library sends it as Basic
	default:
		req.SetBasicAuth(of.user, of.password)
	}
}

func (c *command) loginOf(u *url.URL) (login, bool) {
	if c.options.user != "" {
		user, password, _ := strings.Cut(c.options.user, ":")
		return login{user, password}, true
	}
	if u.User == nil {
		return login{}, false
	}
	of := login{user: u.User.Username()}
	password, has := u.User.Password()
	of.password = password
	if kept, ok := c.logins.netrc.find(u.Hostname(), of.user, true); ok && !has && of.user != "" {
		of = kept
	}
	return of, true
}
