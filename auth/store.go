package auth

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/catena-http/catena/proxy"
)

const (
	maxStoreSpaces = 512     // origins and proxies
	maxStoreRealms = 8       // of each
	maxStoreName   = 1 << 10 // bytes of a realm or a path, which the server chooses
	maxStoreValue  = 8 << 10 // bytes of credentials
)

// Store returns a, with a memory of the origins (scheme, host and port) that asked for credentials and of
// the realms in which. From then on credentials go ahead of the refusal, to these origins and to no
// others: a call whose first request has them needs no second one. Among several realms of an origin the
// one is taken that asked for the nearest directory of the path; all paths of an origin with one realm
// count as that realm's.
//
// What is sent ahead is made for the request: a count of the newest nonce by [Digest], the present token
// by [Bearer]; an [AuthenticatorFunc]'s last Authorization is repeated, but not one of scheme Digest. Where
// a is itself [Preemptive], it is asked, for the remembered origins only. Credentials that are refused are
// forgotten, until a answers the refusal.
//
// A proxy's authenticator may be a Store too: credentials go ahead of a CONNECT, and of a plain request,
// to a proxy that has asked before. Other proxies are a's to decide (see [PreemptiveScheme]).
//
// It remembers the 512 origins and proxies last used. Put a Store around [Strongest], not into it.
func Store(a Authenticator) Preemptive { return &store{inner: a} }

type store struct {
	inner Authenticator

	mu     sync.Mutex              // guards realms
	realms recent[space, []stored] // of origins and proxies, the last one to ask first
}

// stored is a realm that asked, and what it was answered.
type stored struct {
	target
	directory string // of the path that asked, with a slash at the end
	value     string // the credentials sent last
}

func (s *store) Authenticate(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
	_, answer := fieldsOf(resp)
	if answer == "" || resp.Request == nil || resp.Request.URL == nil {
		return s.inner.Authenticate(via, resp)
	}
	to := spaceOf(via, resp)
	if isPreemptive(resp) {
		next := resp.Request.Clone(resp.Request.Context())
		if ok, err := s.send(to, next, answer); err != nil {
			return nil, err
		} else if ok {
			return next, nil
		}
	} else if refused := resp.Request.Header.Get(answer); refused != "" {
		s.forget(to, resp, refused)
	}
	next, err := s.inner.Authenticate(via, resp)
	if err != nil || next == nil || Repeats(resp, next) {
		return nil, err
	}
	if next.URL == resp.Request.URL || originOf(next.URL) == originOf(resp.Request.URL) {
		s.remember(to, resp, next.Header.Get(answer))
	}
	return next, nil
}

// isPreemptive reports whether resp was made up before a CONNECT.
func isPreemptive(resp *http.Response) bool {
	return resp.StatusCode == http.StatusProxyAuthRequired &&
		slices.ContainsFunc(Challenges(resp.Header, "Proxy-Authenticate"), func(c Challenge) bool { return c.Is(PreemptiveScheme) })
}

// Authorize sets Authorization in a request to a remembered origin.
func (s *store) Authorize(req *http.Request) error {
	if req.URL == nil || req.Header.Get("Authorization") != "" {
		return nil
	}
	to := originOf(req.URL)
	if p, ok := s.inner.(Preemptive); ok {
		if _, known := s.find(to, req); !known {
			return nil
		}
		return p.Authorize(req)
	}
	_, err := s.send(to, req, "Authorization")
	return err
}

// send sets the field in req if to is remembered and there are credentials.
func (s *store) send(to space, req *http.Request, answer string) (sent bool, err error) {
	entry, ok := s.find(to, req)
	if !ok {
		return false, nil
	}
	value, err := s.valueFor(entry, req)
	if err != nil || value == "" {
		return false, err
	}
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	req.Header.Set(answer, value)
	s.note(entry.target, value)
	return true, nil
}

// valueFor is what a sends to a realm; what it sent before where it makes nothing new, unless that was for
// one request only.
func (s *store) valueFor(entry stored, req *http.Request) (string, error) {
	if a, ok := s.inner.(sender); ok {
		if value, err := a.ahead(entry.target, req); value != "" || err != nil {
			return value, err
		}
	}
	if isForOneRequest(entry.value) {
		return "", nil
	}
	return entry.value, nil
}

// find is the realm that a request to a remembered space belongs to.
func (s *store) find(to space, req *http.Request) (best stored, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.realms.use(to)
	if known == nil {
		return stored{}, false
	}
	path := directoryOf(req)
	for i, e := range *known {
		inside := strings.HasPrefix(path, e.directory)
		if i == 0 || inside && (!strings.HasPrefix(path, best.directory) || len(e.directory) > len(best.directory)) {
			best = e
		}
	}
	return best, true
}

// note keeps what was sent, so that its refusal is known for one of it.
func (s *store) note(to target, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.realms.use(to.space)
	if known == nil {
		return
	}
	for i := range *known {
		if e := &(*known)[i]; e.target == to {
			e.value = value
		}
	}
}

// remember keeps the answer to resp.
func (s *store) remember(to space, resp *http.Response, value string) {
	scheme, _, _ := strings.Cut(value, " ")
	e := stored{
		target:    target{to, realmOf(resp, value), scheme, resp.StatusCode},
		directory: directoryOf(resp.Request),
		value:     value,
	}
	if value == "" || len(value) > maxStoreValue || len(e.realm) > maxStoreName {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.realms.useOrAdd(to, maxStoreSpaces)
	*known = slices.DeleteFunc(*known, func(old stored) bool { return old.target == e.target })
	*known = slices.Insert(*known, 0, e)
	if len(*known) > maxStoreRealms {
		*known = (*known)[:maxStoreRealms]
	}
}

// forget drops the realms that refused credentials belong to, but for those that did not refuse them: another
// realm did, because they were sent to a place of its own.
func (s *store) forget(to space, resp *http.Response, refused string) {
	challenge, _ := fieldsOf(resp)
	challenges := Challenges(resp.Header, challenge)
	digest, ok := parseCredentials(refused)
	isDigest := ok && digest.Is("Digest")
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.realms.use(to)
	if known == nil {
		return
	}
	*known = slices.DeleteFunc(*known, func(e stored) bool {
		its := e.value == refused || isDigest && isForOneRequest(e.value) && e.realm == digest.Params["realm"]
		return its && !anotherAsks(challenges, e.target)
	})
	if len(*known) == 0 {
		s.realms.forget(to)
	}
}

// anotherAsks reports whether challenges of the scheme of to are all for other realms than that of to.
func anotherAsks(challenges []Challenge, to target) bool {
	another := false
	for _, c := range challenges {
		realm, named := c.Params["realm"]
		switch {
		case !c.Is(to.scheme) || !named:
		case realm == to.realm:
			return false
		default:
			another = true
		}
	}
	return another
}

// Observe lets a see the response.
func (s *store) Observe(via proxy.Proxy, resp *http.Response) {
	if o, ok := s.inner.(Observer); ok {
		o.Observe(via, resp)
	}
}

func (s *store) ahead(to target, req *http.Request) (string, error) {
	if a, ok := s.inner.(sender); ok {
		return a.ahead(to, req)
	}
	return "", nil
}

// realmOf is the realm that credentials answer: the one they name, or that of the challenge of their scheme.
func realmOf(resp *http.Response, value string) string {
	sent, ok := parseCredentials(value)
	if !ok {
		return ""
	}
	if realm, named := sent.Params["realm"]; named {
		return realm
	}
	challenge, _ := fieldsOf(resp)
	for _, c := range Challenges(resp.Header, challenge) {
		if c.Is(sent.Scheme) {
			return c.Params["realm"]
		}
	}
	return ""
}

// directoryOf is the path of req up to the last slash.
func directoryOf(req *http.Request) string {
	path := req.URL.EscapedPath()
	path = path[:strings.LastIndexByte(path, '/')+1]
	if path == "" || len(path) > maxStoreName {
		return "/"
	}
	return path
}
