package http1

import (
	"net/http"
	"net/url"
	"strings"
)

// putTarget writes the request target (RFC 9112 3.2): origin-form, as
// url.URL.RequestURI has it, or absolute-form where the exchange asks for it. It
// never has a fragment nor, unless Opaque spells it, user information.
func (c *Conn) putTarget(method string, u *url.URL) {
	path := u.Opaque
	switch {
	case strings.HasPrefix(path, "//"):
		// An authority of the caller's: it is in absolute-form already.
		c.putString(u.Scheme)
		c.putString(":")
	case path == "" && u.Path == "*" && method == http.MethodOptions:
		// The server as a whole: in absolute-form it has no path at all.
		if c.x.AbsoluteForm {
			c.putOrigin(u)
		} else {
			c.putString("*")
		}
		return
	case path == "":
		path = u.EscapedPath()
		if c.x.AbsoluteForm {
			c.putOrigin(u)
		}
		if !strings.HasPrefix(path, "/") {
			c.putString("/")
		}
	case c.x.AbsoluteForm && path[0] == '/':
		c.putOrigin(u)
	}
	c.putString(path)
	if u.ForceQuery || u.RawQuery != "" {
		c.putString("?")
		c.putString(u.RawQuery)
	}
}

// putOrigin writes the URL's scheme and authority. Not the Host field's: the
// proxy goes where the URL says (RFC 9112 3.2.2).
func (c *Conn) putOrigin(u *url.URL) {
	c.putString(u.Scheme)
	c.putString("://")
	host, _ := wireHost(u.Host) // checked before anything was buffered
	c.putString(host)
}
