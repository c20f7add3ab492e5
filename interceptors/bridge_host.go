package interceptors

import (
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/route"
)

// nameServer sets n's Host, what the request names to the server, to what the
// application set or to the URL's. The URL's is in the form that addresses have,
// in n.URL too, so that one server has one name in the pool, in Host and in what
// a proxy is asked for.
func (n *networkRequest) nameServer(req *http.Request) error {
	canonical, err := canonicalHostPort(req.URL)
	if err != nil {
		return err
	}
	if canonical != req.URL.Host {
		u := *req.URL
		u.Host = canonical
		n.URL = &u
	}
	if req.Host == "" || req.Host == req.URL.Host {
		n.Host, err = asciiHost(canonical)
	} else {
		n.Host, err = asciiHost(req.Host)
	}
	return err
}

// canonicalHostPort is u.Host with the host as route.CanonicalHost has it, and
// the port as it is written.
func canonicalHostPort(u *url.URL) (string, error) {
	host, port := u.Host, ""
	literal := strings.IndexByte(host, '[') >= 0
	if literal || strings.IndexByte(host, ':') >= 0 {
		host, port = u.Hostname(), u.Port()
	}
	canonical, err := route.CanonicalHost(host)
	if err != nil {
		return "", err
	}
	if canonical == host && !literal && !strings.HasSuffix(u.Host, ":") {
		return u.Host, nil
	}
	if strings.IndexByte(canonical, ':') >= 0 {
		canonical = "[" + canonical + "]"
	}
	if port != "" {
		canonical += ":" + port
	}
	return canonical, nil
}

// asciiHost is a host, and port, in A-labels and without a zone, which means
// nothing to the server (RFC 6874 4).
func asciiHost(host string) (string, error) {
	return httpguts.PunycodeHostPort(wire.WithoutZone(host))
}
