package interceptors

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/route"
)

// networkHost is the host and port that the request names to the server: what
// the application set, or the URL's, in the form of addresses. A zone means
// nothing to the server and is left out (RFC 6874 4).
func networkHost(req *http.Request) (string, error) {
	if req.Host != "" && req.Host != req.URL.Host {
		return asciiHost(req.Host)
	}
	host, port := req.URL.Host, ""
	literal := strings.IndexByte(host, '[') >= 0
	if literal || strings.IndexByte(host, ':') >= 0 {
		host, port = req.URL.Hostname(), req.URL.Port()
	}
	canonical, err := route.CanonicalHost(host)
	if err != nil {
		return "", err
	}
	if canonical == host && !literal && !strings.HasSuffix(req.URL.Host, ":") {
		return req.URL.Host, nil
	}
	canonical, _, _ = strings.Cut(canonical, "%")
	if strings.IndexByte(canonical, ':') >= 0 {
		canonical = "[" + canonical + "]"
	}
	if port != "" {
		canonical += ":" + port
	}
	return canonical, nil
}

// asciiHost is a host, and port, of the application's in A-labels and without a
// zone.
func asciiHost(host string) (string, error) {
	if zone := strings.IndexByte(host, '%'); zone >= 0 && strings.HasPrefix(host, "[") {
		if end := strings.IndexByte(host, ']'); end > zone {
			host = host[:zone] + host[end:]
		}
	}
	return httpguts.PunycodeHostPort(host)
}
