package http1

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/catena-http/catena/internal/wire"
)

// frame decides how the body of a response ends (RFC 9112 6.3) and what the
// response says about the connection (9.3), and gives it its body:
//
//   - an interim response has none; the final one is still to come;
//   - a 2xx to CONNECT has none: what follows is the tunnel's, and a length or
//     a transfer coding in it means nothing (RFC 9110 9.3.6);
//   - the answer to HEAD, 204 and 304 have none, whatever they announce;
//   - a transfer coding has to be chunked and nothing else; it wins over a
//     Content-Length, and then the connection is not used again;
//   - a Content-Length given several times has to be the same each time;
//   - otherwise the body ends with the connection.
func (c *Conn) frame(m *message) error {
	r := &m.response
	r.Body = http.NoBody
	if c.tunnel && r.StatusCode/100 == 2 {
		c.switched = true
		c.responseDone()
		return nil
	}
	r.Close = takeClose(r)
	chunked, err := takeCoding(r)
	if err != nil {
		return err
	}
	length, err := takeLength(r.Header)
	if err != nil {
		return err
	}
	if chunked {
		m.coding[0] = "chunked"
		r.TransferEncoding = m.coding[:1:1]
		r.Trailer = takeTrailerNames(r.Header)
	}

	if c.head {
		r.ContentLength = length
	}
	if r.StatusCode < 200 {
		return c.interim(r)
	}
	c.keepAlive = keepAliveOf(r.Header)
	switch {
	case r.Close, chunked && length >= 0:
		c.spoiled = true
	case r.StatusCode == http.StatusNoContent && (chunked || length > 0):
		// Content announced where there can be none: who knows what follows.
		c.spoiled = true
	}
	c.giveBody(m, chunked, length)
	return nil
}

// giveBody gives a final response its body. length is less than 0 where none was
// announced.
func (c *Conn) giveBody(m *message, chunked bool, length int64) {
	r := &m.response
	switch code := r.StatusCode; {
	case c.head, code == http.StatusNoContent, code == http.StatusNotModified:
		c.responseDone()
	case chunked:
		r.ContentLength = -1
		delete(r.Header, "Content-Length")
		c.open(m, chunkedBody, 0)
	case length > 0:
		r.ContentLength = length
		c.open(m, sizedBody, length)
	case length == 0:
		c.responseDone()
	default:
		r.ContentLength = -1
		r.Close = true
		c.spoiled = true
		c.open(m, closeBody, 0)
	}
}

// interim accepts a 1xx. A 101 is the last response of HTTP on the connection and
// answers only a request that asked for it (RFC 9110 7.8).
func (c *Conn) interim(r *http.Response) error {
	if r.StatusCode != http.StatusSwitchingProtocols {
		return nil
	}
	if !c.wantUpgrade {
		return wire.Protocolf("the server switches protocols (status 101), which the request did not ask for")
	}
	c.switched = true
	c.responseDone()
	return nil
}

// takeClose reports whether the server ends the connection after the response: by
// its word in HTTP/1.1, unless it says otherwise in HTTP/1.0. The word itself
// becomes Response.Close and leaves the header, as in net/http.
func takeClose(r *http.Response) bool {
	options := r.Header["Connection"]
	asked := hasToken(options, "close")
	if r.ProtoMinor == 0 {
		return asked || !hasToken(options, "keep-alive")
	}
	if asked {
		delete(r.Header, "Connection")
	}
	return asked
}

// takeCoding removes Transfer-Encoding from the header and reports whether it is
// chunked. identity, which older servers send, is as good as none.
func takeCoding(r *http.Response) (chunked bool, err error) {
	codings, ok := r.Header["Transfer-Encoding"]
	if !ok {
		return false, nil
	}
	delete(r.Header, "Transfer-Encoding")
	if r.ProtoMinor == 0 {
		return false, wire.Protocolf("transfer coding in an HTTP/1.0 response")
	}
	if len(codings) == 1 {
		switch {
		case sameToken(codings[0], "chunked"):
			return true, nil
		case sameToken(codings[0], "identity"):
			return false, nil
		}
	}
	return false, wire.Protocolf("unsupported transfer coding %s", quote([]byte(strings.Join(codings, ", "))))
}

// takeLength returns the Content-Length, -1 where there is none. It may be a list
// of lengths that all are the same, which becomes one (RFC 9110 8.6).
func takeLength(h http.Header) (int64, error) {
	lists := h["Content-Length"]
	length, count := int64(-1), 0
	for _, list := range lists {
		for rest, more := list, true; more; {
			var element string
			element, rest, more = cutElement(rest)
			n, ok := parseLength(element)
			if !ok {
				return 0, wire.Protocolf("malformed Content-Length %s", quote([]byte(list)))
			}
			if count > 0 && n != length {
				return 0, wire.Protocolf("contradictory Content-Length %s", quote([]byte(strings.Join(lists, ", "))))
			}
			length = n
			count++
		}
	}
	if count > 1 {
		first, _, _ := strings.Cut(lists[0], ",")
		h["Content-Length"] = []string{trimOWS(first)}
	}
	return length, nil
}

// parseLength takes 1*DIGIT that fit an int64.
func parseLength(s string) (int64, bool) {
	for _, ch := range []byte(s) {
		if ch < '0' || ch > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// takeTrailerNames moves the names announced in Trailer from the header to where
// their values will be (RFC 9110 6.6.2).
func takeTrailerNames(h http.Header) http.Header {
	lists, ok := h["Trailer"]
	if !ok {
		return nil
	}
	delete(h, "Trailer")
	var trailer http.Header
	for _, list := range lists {
		for more := true; more; {
			var name string
			name, list, more = cutElement(list)
			if !isToken(name) || isFraming(name) {
				continue
			}
			if trailer == nil {
				trailer = make(http.Header)
			}
			trailer[http.CanonicalHeaderKey(name)] = nil
		}
	}
	return trailer
}

// keepAliveOf reads the hint of a Keep-Alive field: "timeout=5, max=100".
func keepAliveOf(h http.Header) time.Duration {
	for _, list := range h["Keep-Alive"] {
		for more := true; more; {
			var element string
			element, list, more = cutElement(list)
			name, value, _ := strings.Cut(element, "=")
			if !sameToken(trimOWS(name), "timeout") {
				continue
			}
			if n, ok := parseLength(trimOWS(value)); ok && n <= int64(time.Duration(1<<63-1)/time.Second) {
				return time.Duration(n) * time.Second
			}
		}
	}
	return 0
}
