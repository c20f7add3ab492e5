package auth

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"

	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/proxy"
)

// space is who credentials are for: an origin or a proxy, written so that two names of one are equal.
type space string

// spaceOf is who refused resp.Request by resp.
func spaceOf(via proxy.Proxy, resp *http.Response) space {
	return spaceFor(via, resp.StatusCode, resp.Request)
}

// spaceFor is who answers req by status, 401 or 407: the origin, or the proxy on the way there.
func spaceFor(via proxy.Proxy, status int, req *http.Request) space {
	if status == http.StatusProxyAuthRequired {
		return space("proxy " + via.Type.String() + "://" + strings.ToLower(via.Addr()))
	}
	return originOf(req.URL)
}

// originOf is the origin of u (RFC 9110 section 4.3.1).
func originOf(u *url.URL) space {
	if u == nil {
		return ""
	}
	scheme := strings.ToLower(u.Scheme)
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return space(scheme + "://" + canonicalHost(u.Hostname()) + ":" + port)
}

// canonicalHost is host in lower case and A-labels, an IP address in its canonical text.
func canonicalHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		return ascii
	}
	return strings.ToLower(host)
}

// requestTarget is the target in req's request line (RFC 9112 section 3.2) as the one that refused it by
// status sees it: a proxy sees the URL in full, or the host and port of a CONNECT; an origin sees the path
// and the query, also where a proxy has forwarded them.
func requestTarget(req *http.Request, status int) string {
	u := req.URL
	if req.Method == http.MethodConnect {
		return connectTarget(req)
	}
	whole := status == http.StatusProxyAuthRequired
	if u.Path == "*" && u.Opaque == "" && req.Method == http.MethodOptions {
		if whole {
			return absolute(u, "")
		}
		return "*"
	}
	target := u.RequestURI() // Opaque of the form //host/path is absolute in it
	if u.Opaque == "" && !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	if whole && strings.HasPrefix(target, "/") {
		return absolute(u, target)
	}
	return target
}

func absolute(u *url.URL, target string) string {
	host := canonicalHost(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	return u.Scheme + "://" + wire.WithoutZone(host) + target
}

func connectTarget(req *http.Request) string {
	for _, name := range []string{req.URL.Opaque, req.URL.Host} {
		if name != "" {
			return name
		}
	}
	return req.Host
}
