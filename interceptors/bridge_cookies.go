package interceptors

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/chain"
)

// jarOf is the jar in force, nil for none: the user of a RoundTripper keeps
// cookies himself.
func jarOf(config *chain.Config) http.CookieJar {
	if !config.FollowUps {
		return nil
	}
	return config.CookieJar
}

// jarURL is u as jars are to see it: the paths of cookies are compared as they
// stand on the wire (RFC 6265 5.1.4), so Path is the escaped one.
func jarURL(u *url.URL) *url.URL {
	escaped := u.EscapedPath()
	if escaped == u.Path {
		return u
	}
	wire := *u
	wire.Path, wire.RawPath = escaped, ""
	return &wire
}

// addCookies puts the jar's cookies behind those of the application, in one
// field (RFC 6265 5.4). Values go out octet by octet as they came in.
func (n *networkRequest) addCookies(cookies []*http.Cookie) error {
	if len(cookies) == 0 {
		return nil
	}
	var pairs []string
	for name, values := range n.Header {
		if fieldOf(name) == fieldCookie {
			pairs = append(pairs, slices.DeleteFunc(slices.Clone(values), isEmpty)...)
			delete(n.Header, name)
		}
	}
	for _, c := range cookies {
		if !httpguts.ValidHeaderFieldName(c.Name) || !httpguts.ValidHeaderFieldValue(c.Value) || strings.Contains(c.Value, ";") {
			return fmt.Errorf("the cookie %q of the jar has a name or value that can't be sent", c.Name)
		}
		if c.Quoted {
			pairs = append(pairs, c.Name+`="`+c.Value+`"`)
		} else {
			pairs = append(pairs, c.Name+"="+c.Value)
		}
	}
	n.set("Cookie", strings.Join(pairs, "; "))
	return nil
}

func isEmpty(s string) bool { return s == "" }
