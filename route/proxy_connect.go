package route

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// ProxyError is an HTTP or HTTPS proxy's refusal to open a tunnel: it answered
// CONNECT with something other than success (RFC 9110 9.3.6), and no 407 that could
// be answered. [errors.As] finds it. [errors.Is] finds it by status in a ProxyError
// that has nothing but a StatusCode.
type ProxyError struct {
	// StatusCode is the proxy's answer, such as 403, 407 or 502.
	StatusCode int
	// Head is the answer's head, with the CONNECT in Request; its Body is
	// http.NoBody. It is the proxy's word, never the origin's.
	Head *http.Response
	// Body is what was read of the answer's content, a few KiB at most; it may be
	// incomplete or empty.
	Body []byte
	// Proxy is the proxy, without its password.
	Proxy proxy.Proxy
	// Target is the "host:port" that the tunnel was to lead to.
	Target string
}

// Error names the proxy and its answer, and for a 407 the schemes that the proxy
// would take.
func (e *ProxyError) Error() string {
	status := fmt.Sprint(e.StatusCode)
	if text := http.StatusText(e.StatusCode); text != "" {
		status += " " + text
	}
	if wants := e.schemes(); wants != "" {
		status += " (it takes " + wants + ")"
	}
	return fmt.Sprintf("proxy %s refused a tunnel to %s: %s", e.Proxy, e.Target, status)
}

// schemes lists at most as many schemes as there are in use.
func (e *ProxyError) schemes() string {
	if e.StatusCode != http.StatusProxyAuthRequired || e.Head == nil {
		return ""
	}
	const most = 8
	var names []string
	for _, c := range auth.Challenges(e.Head.Header, "Proxy-Authenticate") {
		if len(names) < most && len(c.Scheme) <= len("SCRAM-SHA-256-PLUS") && !slices.Contains(names, c.Scheme) {
			names = append(names, c.Scheme)
		}
	}
	return strings.Join(names, ", ")
}

// Is reports whether target is a ProxyError of the same status that says nothing else.
func (e *ProxyError) Is(target error) bool {
	t, ok := target.(*ProxyError)
	return ok && t.StatusCode == e.StatusCode &&
		t.Head == nil && t.Body == nil && t.Proxy == proxy.Proxy{} && t.Target == ""
}

// ownConnectFields are the fields that a CONNECT has from us, or can't have: it has
// no content, and what is about the connection is the engine's.
var ownConnectFields = map[string]bool{
	"Connection":        true,
	"Content-Length":    true,
	"Expect":            true,
	"Host":              true,
	"Keep-Alive":        true,
	"Proxy-Connection":  true,
	"Te":                true,
	"Trailer":           true,
	"Transfer-Encoding": true,
	"Upgrade":           true,
}

func checkConnectHeader(h http.Header) error {
	for name, values := range h {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return fmt.Errorf("proxy connect header has the malformed name %q", name)
		case ownConnectFields[http.CanonicalHeaderKey(name)]:
			return fmt.Errorf("proxy connect header must not have %s", http.CanonicalHeaderKey(name))
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("proxy connect header has a malformed value of %s", name)
			}
		}
	}
	return nil
}
