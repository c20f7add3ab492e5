package interceptors

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/route"
)

// ValidateRequest reports what is wrong with a request as far as it can be said
// before anything is dialed or written. The error names the field; it quotes no
// header value and no part of a query, which may be secret.
//
// Content-Length, Transfer-Encoding, Trailer and Host found in req.Header are
// checked like the others but not sent, as in net/http: the request's fields of
// these names count.
//
// A valid request costs no allocation, but for a host that is not written in
// its canonical form.
func ValidateRequest(req *http.Request) error {
	switch {
	case req == nil:
		return errors.New("the request is nil")
	case req.URL == nil:
		return errors.New("the request has no URL")
	}
	if err := validateMethod(req); err != nil {
		return err
	}
	if err := validateURL(req.URL); err != nil {
		return err
	}
	if err := validateHost(req.Host); err != nil {
		return err
	}
	if err := validateFields("header", req.Header); err != nil {
		return err
	}
	if err := validateTrailer(req.Trailer); err != nil {
		return err
	}
	return validateBody(req)
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

func validateMethod(req *http.Request) error {
	switch method := req.Method; {
	case method == "": // GET
	case !httpguts.ValidHeaderFieldName(method): // a token too (RFC 9110 9.1)
		return fmt.Errorf("invalid method %q", method)
	case method == http.MethodConnect:
		return errors.New("method CONNECT is not for requests: a proxy that is set is asked for tunnels as needed")
	case method == http.MethodTrace && hasBody(req):
		return errors.New("a TRACE request must not have a body") // RFC 9110 9.3.8
	}
	return nil
}

// validateURL leaves Path and RawPath alone: a RawPath that is no encoding of Path is
// not used, and what Path holds is escaped on the way out.
func validateURL(u *url.URL) error {
	if _, err := route.NewAddress(u, nil); err != nil {
		return fmt.Errorf("invalid URL: %w", err)
	}
	for _, part := range [...]struct{ name, text string }{
		{"Opaque", u.Opaque},
		{"RawQuery", u.RawQuery},
	} {
		for i := 0; i < len(part.text); i++ {
			if c := part.text[i]; c <= ' ' || c == 0x7f {
				return fmt.Errorf("invalid URL: %s has the character %q at byte %d: it must be escaped", part.name, c, i)
			}
		}
	}
	return nil
}

func validateHost(host string) error {
	ascii, err := asciiHost(host)
	if err != nil {
		return fmt.Errorf("invalid Host %q: %w", host, err)
	}
	if !httpguts.ValidHostHeader(ascii) {
		return fmt.Errorf("invalid Host %q: it has a character no host has", host)
	}
	return nil
}

// validateFields checks names (RFC 9110 5.1) and values (5.5).
func validateFields(section string, fields http.Header) error {
	for name, values := range fields {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("invalid %s field name %q", section, name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				i := strings.IndexFunc(value, isControl)
				return fmt.Errorf("invalid value of the %s field %q: it has the character %q at byte %d", section, name, value[i], i)
			}
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// validateTrailer refuses also what would speak of the framing after the fact
// (RFC 9110 6.5.1).
func validateTrailer(trailer http.Header) error {
	for name := range trailer {
		switch fieldOf(name) {
		case fieldContentLength, fieldTransferEncoding, fieldTrailer:
			return fmt.Errorf("the field %q can't stand in a trailer", name)
		}
	}
	return validateFields("trailer", trailer)
}

func validateBody(req *http.Request) error {
	switch {
	case req.ContentLength < -1:
		return fmt.Errorf("invalid ContentLength %d", req.ContentLength)
	case req.ContentLength > 0 && req.Body == nil:
		return fmt.Errorf("ContentLength is %d but the request has no Body", req.ContentLength)
	}
	switch te := req.TransferEncoding; {
	case len(te) == 0, len(te) == 1 && (te[0] == "chunked" || te[0] == "identity"):
		return nil
	default:
		return fmt.Errorf("unsupported TransferEncoding %q: want chunked or none", te)
	}
}
