package http1

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/internal/wire"
)

// stackFields is the number of header fields that are sorted without an
// allocation.
const stackFields = 16

// field is a name of a header with its values.
type field struct {
	name   string
	values []string
}

// WriteRequestHeaders buffers the head of req and says how its body will be
// framed: bodySize 0 is no body, a positive one a Content-Length, a negative one
// chunked. Host comes first, then the framing, then the fields of req.Header in
// the order of their names; Host, Content-Length, Transfer-Encoding and Trailer
// found there are left out, since req.Host, bodySize and req.Trailer decide
// (RFC 9112 3.2, 6).
//
// What could break out of its field or of the request line is refused before a
// byte is buffered.
func (c *Conn) WriteRequestHeaders(req *http.Request, bodySize int64) error {
	if c.request != requestIdle {
		return errors.New("the exchange has a request already")
	}
	var array [stackFields]field
	fields := sortedFields(array[:0], req.Header)
	host, err := c.hosts(req)
	if err != nil {
		return err
	}
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	if err := checkHead(method, req.URL, fields); err != nil {
		return err
	}

	c.takeOut()
	c.setRequest(requestOpen)
	c.head, c.tunnel = method == http.MethodHead, method == http.MethodConnect
	c.chunked, c.remaining = bodySize < 0, max(bodySize, 0)

	c.putString(method)
	c.putString(" ")
	c.putTarget(method, req.URL)
	c.putString(" HTTP/1.1\r\n")
	c.putField("Host", host)
	c.putFraming(method, bodySize, req.Trailer)
	c.putFields(fields)
	c.noteConnectionOptions(fields, req.Close)
	c.putString("\r\n")
	return c.writeErr
}

func (c *Conn) setRequest(state requestState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request = state
}

func (c *Conn) putField(name, value string) {
	c.putString(name)
	c.putString(": ")
	c.putString(value)
	c.putString("\r\n")
}

func (c *Conn) putFields(fields []field) {
	for _, f := range fields {
		if !isFraming(f.name) && !sameToken(f.name, "Host") {
			for _, value := range f.values {
				c.putField(f.name, trimOWS(value))
			}
		}
	}
}

// putFraming says where the body ends. A request without one says so only where
// its method makes a server expect one (RFC 9110 8.6).
func (c *Conn) putFraming(method string, bodySize int64, trailer http.Header) {
	switch {
	case bodySize < 0:
		c.putString("Transfer-Encoding: chunked\r\n")
		c.putTrailerNames(trailer)
	case bodySize > 0:
		c.putString("Content-Length: ")
		c.putInt(bodySize, 10)
		c.putString("\r\n")
	case method == http.MethodPost, method == http.MethodPut, method == http.MethodPatch:
		c.putString("Content-Length: 0\r\n")
	}
}

func (c *Conn) putTrailerNames(trailer http.Header) {
	separator := "Trailer: "
	for _, f := range sortedFields(nil, trailer) {
		if isToken(f.name) && !isFraming(f.name) {
			c.putString(separator)
			c.putString(f.name)
			separator = ", "
		}
	}
	if separator == ", " {
		c.putString("\r\n")
	}
}

// noteConnectionOptions remembers what the request asks of the connection, and
// writes the close that is asked for by Request.Close alone.
func (c *Conn) noteConnectionOptions(fields []field, closes bool) {
	var upgrade, protocol bool
	for _, f := range fields {
		switch {
		case sameToken(f.name, "Connection"):
			c.closeAsked = c.closeAsked || hasToken(f.values, "close")
			upgrade = upgrade || hasToken(f.values, "upgrade")
		case sameToken(f.name, "Upgrade"):
			protocol = len(f.values) > 0
		}
	}
	c.wantUpgrade = upgrade && protocol
	if closes && !c.closeAsked {
		c.closeAsked = true
		c.putString("Connection: close\r\n")
	}
}

// sortedFields appends the fields of h in the order of their names.
func sortedFields(fields []field, h http.Header) []field {
	for name, values := range h {
		fields = append(fields, field{name, values})
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields
}

// isFraming reports whether a field tells where the message ends. Such a field is
// written by the codec alone and may not stand in a trailer section (RFC 9110
// 6.5.1).
func isFraming(name string) bool {
	switch len(name) {
	case len("Trailer"):
		return sameToken(name, "Trailer")
	case len("Content-Length"):
		return sameToken(name, "Content-Length")
	case len("Transfer-Encoding"):
		return sameToken(name, "Transfer-Encoding")
	}
	return false
}

// hosts returns the value of the Host field, req.Host or the URL's, and checks
// the URL's where it is to be written too.
func (c *Conn) hosts(req *http.Request) (string, error) {
	if c.x.AbsoluteForm {
		if _, err := wireHost(req.URL.Host); err != nil {
			return "", err
		}
	}
	if req.Host != "" {
		return wireHost(req.Host)
	}
	return wireHost(req.URL.Host)
}

// wireHost is host, and port, as they are written: in ASCII, and without the
// zone of an IPv6 address, which means nothing to the peer (RFC 6874 4).
func wireHost(host string) (string, error) {
	if host == "" {
		return "", errors.New("the request has no host")
	}
	ascii, err := httpguts.PunycodeHostPort(wire.WithoutZone(host))
	if err != nil {
		return "", fmt.Errorf("the request's host %q is not a name: %w", host, err)
	}
	if !isTarget(ascii) {
		return "", fmt.Errorf("invalid character in the request's host %q", host)
	}
	return ascii, nil
}

// checkHead refuses what would change the meaning of the bytes around it. The
// rooms above refuse it with better words; this is for what they miss.
func checkHead(method string, u *url.URL, fields []field) error {
	if !isToken(method) {
		return fmt.Errorf("invalid method %q", method)
	}
	for _, part := range [...]string{u.Scheme, u.Opaque, u.RawQuery} {
		if !isTarget(part) {
			return fmt.Errorf("invalid character in the request target %q", part)
		}
	}
	return checkFields(fields)
}

func checkFields(fields []field) error {
	for _, f := range fields {
		if !isToken(f.name) {
			return fmt.Errorf("invalid header field name %q", f.name)
		}
		for _, value := range f.values {
			if !allOf(value, valueByte) {
				return fmt.Errorf("invalid character in the value of the header field %q", f.name)
			}
		}
	}
	return nil
}
