package oracle

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// outgoing makes the message that goes on the wire of req. The result shares
// no map and no URL with req, whose owner may change it once the exchange is
// over.
func outgoing(req *http.Request, secure bool) (*http.Request, error) {
	if req.URL == nil {
		return nil, errors.New("request has no URL")
	}
	host, err := authority(req)
	if err != nil {
		return nil, err
	}
	header, err := requestHeader(req.Header)
	if err != nil {
		return nil, err
	}
	trailer, err := trailerFields(req.Trailer)
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return &http.Request{
		Method:  req.Method,
		URL:     target(req.URL, scheme, host),
		Host:    host,
		Header:  header,
		Trailer: trailer,
	}, nil
}

// authority is the value of :authority (RFC 9113 8.3.1), without the zone of
// an IPv6 address, which means something on this host only (RFC 6874 1).
func authority(req *http.Request) (string, error) {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	if zone := strings.IndexByte(host, '%'); zone >= 0 && strings.HasPrefix(host, "[") {
		if end := strings.IndexByte(host, ']'); end > zone {
			host = host[:zone] + host[end:]
		}
	}
	ascii, err := httpguts.PunycodeHostPort(host)
	if err != nil {
		return "", fmt.Errorf("host %q can not be sent: %w", host, err)
	}
	if ascii == "" || !httpguts.ValidHostHeader(ascii) {
		return "", fmt.Errorf("host %q can not be sent", host)
	}
	return ascii, nil
}

// target keeps of u what makes :path. An opaque part in absolute form
// ("//host/path") loses its authority, which HTTP/2 has a field for.
func target(u *url.URL, scheme, host string) *url.URL {
	out := &url.URL{
		Scheme: scheme, Host: host, Opaque: u.Opaque,
		Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery,
	}
	if rest, absolute := strings.CutPrefix(u.Opaque, "//"); absolute {
		out.Opaque = "/"
		if slash := strings.IndexByte(rest, '/'); slash >= 0 {
			out.Opaque = rest[slash:]
		}
	}
	return out
}

// connectionFields are the fields that speak of an HTTP/1.1 connection or of
// its framing (RFC 9113 8.2.2), and those that the engine writes itself.
var connectionFields = map[string]bool{
	"connection":        true,
	"content-length":    true,
	"host":              true,
	"http2-settings":    true,
	"keep-alive":        true,
	"proxy-connection":  true,
	"te":                true, // except for "trailers"
	"trailer":           true,
	"transfer-encoding": true,
	"upgrade":           true,
}

// requestHeader copies h without its connection-specific fields. The one thing
// it refuses is what could not be told apart from other fields on the wire.
func requestHeader(h http.Header) (http.Header, error) {
	// A User-Agent without values keeps the engine from sending its own.
	out := http.Header{"User-Agent": nil}
	for name, values := range h {
		if err := validField(name, values); err != nil {
			return nil, err
		}
		lower := strings.ToLower(name)
		switch {
		case lower == "te":
			if httpguts.HeaderValuesContainsToken(values, "trailers") {
				out["Te"] = []string{"trailers"}
			}
		case lower == "user-agent":
			if len(values) > 0 && values[0] != "" {
				out["User-Agent"] = values[:1:1]
			}
		case !connectionFields[lower] && !nominated(h, lower):
			out[name] = append([]string(nil), values...)
		}
	}
	return out, nil
}

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
		if !connectionFields[strings.ToLower(name)] {
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
