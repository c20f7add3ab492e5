package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/redact"
)

// writeHeads writes the heads of the responses that led to resp, oldest first,
// and its own.
func writeHeads(w io.Writer, resp *http.Response) error {
	if prior := resp.Request.Response; prior != nil {
		if err := writeHeads(w, prior); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\r\n", protoText(resp.Proto), resp.Status)
	writeFields(&b, "", "\r\n", resp.Proto, resp.Header)
	b.WriteString("\r\n")
	_, err := w.Write(b.Bytes())
	return err
}

// protoText is curl's way to write a version: "HTTP/2", not "HTTP/2.0".
func protoText(proto string) string {
	if proto == "HTTP/2.0" {
		return "HTTP/2"
	}
	return proto
}

// ofConnection are the fields that HTTP/2 does not send (RFC 9113 8.2.2).
var ofConnection = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"}

// writeFields writes h sorted by name; for HTTP/2 in lower case, and without the
// fields that it has not.
func writeFields(b *bytes.Buffer, prefix, end, proto string, h http.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		shown := name
		if strings.HasPrefix(proto, "HTTP/2") {
			if slices.Contains(ofConnection, name) {
				continue
			}
			shown = strings.ToLower(name)
		}
		for _, value := range h[name] {
			fmt.Fprintf(b, "%s%s: %s%s", prefix, shown, value, end)
		}
	}
}

// showWire is -v: a network interceptor that prints each head as it goes over
// the wire, with secrets masked.
func (c *command) showWire(ch chain.Chain) (*http.Response, error) {
	req, conn := ch.Request(), ch.Connection()
	proto := "HTTP/1.1"
	if conn.Protocol() != "http/1.1" {
		proto = "HTTP/2.0"
	}
	var b bytes.Buffer
	b.Write(c.proxies.takeHeads())
	fmt.Fprintf(&b, "* %s\n", c.connectionText(conn))
	showRequest(&b, req, target(ch), proto)
	c.stderr.Write(b.Bytes())

	resp, err := ch.Proceed(req)
	if err != nil {
		return nil, err
	}
	b.Reset()
	showResponse(&b, resp)
	c.stderr.Write(b.Bytes())
	return resp, nil
}

// secrets are those that are masked in what -v shows.
var secrets = redact.New()

func showRequest(b *bytes.Buffer, req *http.Request, target, proto string) {
	fmt.Fprintf(b, "> %s %s %s\n", req.Method, target, protoText(proto))
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	writeFields(b, "> ", "\n", proto, http.Header{"Host": {host}})
	writeFields(b, "> ", "\n", proto, secrets.Header(req.Header))
	b.WriteString(">\n")
}

func showResponse(b *bytes.Buffer, resp *http.Response) {
	fmt.Fprintf(b, "< %s %s\n", protoText(resp.Proto), printable(resp.Status))
	writeFields(b, "< ", "\n", resp.Proto, printableHeader(secrets.Header(resp.Header)))
	b.WriteString("<\n")
}

// target is the request target as it stands on the wire, with secrets masked: the
// URL as a whole for a plain HTTP proxy, its path and query for everybody else.
func target(ch chain.Chain) string {
	u, conn := *ch.Request().URL, ch.Connection()
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	if u.Path == "" && u.Opaque == "" {
		u.Path = "/"
	}
	if u.Opaque == "" && !forwarded(conn, ch.Request()) {
		u.Scheme, u.Host = "", ""
	}
	return ch.Call().RedactedURL(&u)
}

// printable is a peer's text without what a terminal would take for a command.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func printableHeader(h http.Header) http.Header {
	for _, values := range h {
		for i, value := range values {
			values[i] = printable(value)
		}
	}
	return h
}

// connectionText describes a connection in a line, and says whether it was there
// before.
func (c *command) connectionText(conn event.Connection) string {
	text := fmt.Sprintf("connection %d to %v", conn.ID(), conn.RemoteAddr())
	if p := conn.Proxy(); !p.IsDirect() {
		text += ", proxy " + p.String()
	}
	text += ", " + conn.Protocol()
	if c.shown[conn.ID()] {
		return text + ", reused"
	}
	if c.shown == nil {
		c.shown = map[uint64]bool{}
	}
	c.shown[conn.ID()] = true
	return text
}
