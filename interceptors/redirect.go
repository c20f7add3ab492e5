package interceptors

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

// redirect is a response with a 3xx that may lead elsewhere.
type redirect struct{ follower }

// next is the request to the response's Location (RFC 9110 15.4); nil: the
// response is the answer.
func (r redirect) next() (*http.Request, event.Reason) {
	if !r.config.FollowRedirects {
		return nil, event.ReasonNotFollowed
	}
	req := r.resp.Request
	to := r.target()
	if to == nil {
		return nil, event.ReasonBadLocation
	}
	if to.Scheme != req.URL.Scheme && !r.config.FollowSSLRedirects {
		return nil, event.ReasonSSLRedirect
	}
	next := *req
	next.URL = to
	next.Header = req.Header.Clone()
	next.Method = redirectMethod(r.resp.StatusCode, req.Method)
	if next.Method != req.Method {
		r.dropBody(&next)
	}
	if sameOrigin(req.URL, to) {
		// However Location is written, it is the same server.
		to.User = req.URL.User
	} else {
		r.dropCredentials(&next)
	}
	return &next, event.ReasonRedirect
}

// target is where Location leads; nil where it is missing, ambiguous, malformed
// or of another scheme.
func (r redirect) target() *url.URL {
	locations := r.resp.Header["Location"]
	if len(locations) == 0 || locations[0] == "" {
		return nil
	}
	for _, other := range locations[1:] {
		if other != locations[0] {
			return nil
		}
	}
	from := r.resp.Request.URL
	ref, err := url.Parse(escapeStray(locations[0]))
	if err != nil {
		return nil
	}
	to := from.ResolveReference(ref)
	if to.Scheme != "http" && to.Scheme != "https" || to.Opaque != "" {
		return nil
	}
	if _, err := route.NewAddress(to, nil); err != nil {
		return nil
	}
	to.User = nil
	if !strings.Contains(locations[0], "#") {
		to.Fragment, to.RawFragment = from.Fragment, from.RawFragment // RFC 9110 10.2.2
	}
	return to
}

// escapeStray escapes percent signs that begin no escape: what servers send is
// followed where it can be understood.
func escapeStray(location string) string {
	if !strings.Contains(location, "%") {
		return location
	}
	var b strings.Builder
	for i := 0; i < len(location); i++ {
		b.WriteByte(location[i])
		if location[i] == '%' && !(i+2 < len(location) && isHex(location[i+1]) && isHex(location[i+2])) {
			b.WriteString("25")
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// redirectMethod is the method that follows a redirect: 307 and 308 keep it, the
// others turn it into GET, but for methods that ask for a document by a body.
func redirectMethod(code int, method string) string {
	switch {
	case method == "", method == "GET", method == "HEAD", method == "PROPFIND":
		return method
	case code == http.StatusTemporaryRedirect, code == http.StatusPermanentRedirect:
		return method
	case method == "QUERY" && code != http.StatusSeeOther:
		return method
	}
	return "GET"
}

// dropBody takes the body and the fields that speak of it out of next.
func (r redirect) dropBody(next *http.Request) {
	next.Body, next.GetBody, next.ContentLength = nil, nil, 0
	next.TransferEncoding, next.Trailer = nil, nil
	for _, field := range []string{
		"Content-Type", "Content-Length", "Content-Encoding", "Content-Language",
		"Content-Location", "Transfer-Encoding", "Expect",
	} {
		next.Header.Del(field)
	}
}

// sameOrigin reports whether a and b have scheme, host and port in common.
func sameOrigin(a, b *url.URL) bool {
	x, err := route.NewAddress(a, nil)
	if err != nil {
		return false
	}
	y, err := route.NewAddress(b, nil)
	return err == nil && x == y
}

// dropCredentials takes out of next what was meant for the server before: the
// secret fields, those with credentials among them, and a Host set by the user.
func (r redirect) dropCredentials(next *http.Request) {
	next.Host = ""
	maps.DeleteFunc(next.Header, func(field string, _ []string) bool { return r.secrets.IsSecret(field) })
}
