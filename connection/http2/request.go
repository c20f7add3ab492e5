package http2

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/internal/wire"
)

// A message is what goes on the wire of a request. It shares the request's
// maps, and is not kept beyond WriteRequestHeaders.
type message struct {
	method, scheme, authority, path string
	header, trailer                 http.Header
	protocol                        string // of an extended CONNECT
}

// outgoing checks req and makes the message of it.
func outgoing(req *http.Request, secure bool) (message, error) {
	m := message{method: req.Method, scheme: "http", header: req.Header}
	if secure {
		m.scheme = "https"
	}
	if m.method == "" {
		m.method = http.MethodGet
	}
	if !httpguts.ValidHeaderFieldName(m.method) {
		return m, fmt.Errorf("method %q can not be sent", m.method)
	}
	if req.URL == nil {
		return m, errors.New("request has no URL")
	}
	var err error
	if m.authority, err = authority(req); err != nil {
		return m, err
	}
	if m.path, err = path(req.URL); err != nil {
		return m, err
	}
	for name, values := range req.Header {
		if err := validField(name, values); err != nil {
			return m, err
		}
	}
	m.trailer, err = trailerFields(req.Trailer)
	return m, err
}

// authority is the value of :authority (RFC 9113 8.3.1), without the zone of
// an IPv6 address, which means something on this host only (RFC 6874 1).
func authority(req *http.Request) (string, error) {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	host = wire.WithoutZone(host)
	ascii, err := httpguts.PunycodeHostPort(host)
	if err != nil {
		return "", fmt.Errorf("host %q can not be sent: %w", host, err)
	}
	if ascii == "" || !httpguts.ValidHostHeader(ascii) {
		return "", fmt.Errorf("host %q can not be sent", host)
	}
	return ascii, nil
}

// path is the value of :path. An opaque part in absolute form ("//host/path")
// loses its authority, which HTTP/2 has a field for.
func path(u *url.URL) (string, error) {
	p := u.EscapedPath()
	if u.Opaque != "" {
		p = u.Opaque
		if rest, absolute := strings.CutPrefix(p, "//"); absolute {
			p = "/"
			if slash := strings.IndexByte(rest, '/'); slash >= 0 {
				p = rest[slash:]
			}
		}
	}
	if p == "" {
		p = "/"
	}
	if u.ForceQuery || u.RawQuery != "" {
		p += "?" + u.RawQuery
	}
	if p[0] != '/' && p != "*" {
		return "", fmt.Errorf("%q can not be sent as a :path", p)
	}
	for i := range len(p) {
		if p[i] <= ' ' || p[i] == 0x7f {
			return "", fmt.Errorf("%q can not be sent as a :path", p)
		}
	}
	return p, nil
}

// connectionField reports whether a field speaks of an HTTP/1.1 connection or of
// its framing (RFC 9113 8.2.2), or is written by us.
func connectionField(lower string) bool {
	switch lower {
	case "connection", "content-length", "host", "http2-settings", "keep-alive", "proxy-connection",
		"te", // except for "trailers"
		"trailer", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// sends returns the values of a field that are sent.
func (m *message) sends(lower string, values []string) []string {
	switch {
	case lower == "te":
		if httpguts.HeaderValuesContainsToken(values, "trailers") {
			return trailersOnly
		}
		return nil
	case lower == "user-agent":
		if len(values) == 0 || values[0] == "" {
			return nil
		}
		return values[:1]
	case m.protocol != "" && lower == "sec-websocket-key":
		return nil // HTTP/2 says it otherwise (RFC 8441 5)
	case connectionField(lower) || nominated(m.header, lower):
		return nil
	}
	return values
}

var trailersOnly = []string{"trailers"}

// nominated reports whether h's Connection field lists name, which makes it a
// field of this connection (RFC 9110 7.6.1).
func nominated(h http.Header, name string) bool {
	connection, ok := h["Connection"]
	return ok && httpguts.HeaderValuesContainsToken(connection, name)
}

// trailerFields copies h without what may not stand in a trailer section
// (RFC 9110 6.5.1). Nil stays nil.
func trailerFields(h http.Header) (http.Header, error) {
	if h == nil {
		return nil, nil
	}
	out := make(http.Header, len(h))
	for name, values := range h {
		if err := validField(name, values); err != nil {
			return nil, err
		}
		if !connectionField(lowerName(name)) {
			out[name] = append([]string(nil), values...)
		}
	}
	return out, nil
}

// validField names the field in its error and never the value, which may be a
// secret.
func validField(name string, values []string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("header field name %q can not be sent", name)
	}
	for _, v := range values {
		if !httpguts.ValidHeaderFieldValue(v) {
			return fmt.Errorf("the value of header field %q can not be sent", name)
		}
	}
	return nil
}

// lowerNames has the fields that requests usually have.
var lowerNames = func() map[string]string {
	names := make(map[string]string)
	for _, lower := range strings.Fields(`accept accept-charset accept-encoding accept-language authorization
		cache-control content-encoding content-language content-length content-type cookie date expect forwarded from
		grpc-accept-encoding grpc-encoding grpc-timeout host idempotency-key if-match if-modified-since if-none-match
		if-range if-unmodified-since origin pragma proxy-authorization range referer te trailer traceparent tracestate
		transfer-encoding upgrade user-agent via x-forwarded-for x-forwarded-host x-forwarded-proto x-request-id
		connection keep-alive proxy-connection`) {
		names[http.CanonicalHeaderKey(lower)] = lower
	}
	return names
}()

// lowerName is the name of a field as HTTP/2 has it.
func lowerName(name string) string {
	if lower, ok := lowerNames[name]; ok {
		return lower
	}
	return strings.ToLower(name)
}

func sortedNames(h http.Header) []string { return slices.Sorted(maps.Keys(h)) }
