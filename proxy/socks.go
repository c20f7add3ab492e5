package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Handshake asks the SOCKS proxy p, to which conn is a fresh connection, to connect
// to addr: "host:port", an IPv6 address in brackets. After it conn leads to addr, and
// not a byte beyond the proxy's reply was read from it. p's credentials are sent where
// the proxy asks for them (SOCKS5) or at once (SOCKS4 and SOCKS4A).
//
// The error is a *[SOCKSError]; conn is then of no more use, and the caller's to
// close. When ctx ends, Handshake returns at once, and the SOCKSError has ctx's error.
// It has no timeout of its own. Nobody else may use conn or set its deadlines
// meanwhile; there is none after a success.
//
// An engine part without a promise to users.
func Handshake(ctx context.Context, conn net.Conn, p Proxy, addr string) error {
	t := &talk{conn: conn, proxy: p}
	stop := context.AfterFunc(ctx, func() { interrupt(conn) })
	err := t.shake(addr)
	if !stop() {
		// Even if everything went well: the deadline may have come after the last
		// read, or is still to come.
		t.code, err = 0, ctx.Err()
	}
	if err != nil {
		return &SOCKSError{Proxy: p.Redacted(), Target: addr, Code: t.code, Err: err}
	}
	return nil
}

// interrupt makes what waits for conn fail: by a deadline that has passed, which ends
// the wait and no more, or else by closing it.
func interrupt(conn net.Conn) {
	if conn.SetDeadline(time.Unix(1, 0)) != nil {
		conn.Close()
	}
}

// ErrUnauthorized is in the errors of a SOCKS proxy that did not accept the
// credentials, or that wants some and got none. [errors.Is] finds it.
var ErrUnauthorized = errors.New("the SOCKS proxy did not accept the credentials")

// SOCKSError says why a SOCKS proxy did not connect us.
type SOCKSError struct {
	Proxy  Proxy  // without its password
	Target string // the "host:port" that was asked for

	// Code is the reply code by which the proxy refused (RFC 1928 section 6 for
	// SOCKS5; 91 to 93 in SOCKS4), and 0 where it came to no reply.
	Code byte
	// Err is the meaning of Code, or what else went wrong: the target or the
	// credentials can't be expressed in this version of SOCKS, the proxy did not
	// keep to it or closed the connection, reading or writing failed, the context ended.
	Err error
}

// Error is one sentence; it has no password in it.
func (e *SOCKSError) Error() string {
	return fmt.Sprintf("proxy %s did not connect to %s: %v", e.Proxy, e.Target, e.Err)
}

// Unwrap returns Err.
func (e *SOCKSError) Unwrap() error { return e.Err }

// unauthorized is an error that is ErrUnauthorized, in words that say why.
type unauthorized string

func (u unauthorized) Error() string        { return string(u) }
func (u unauthorized) Is(target error) bool { return target == ErrUnauthorized }

// target is what a proxy is asked to connect to: an address, or a name.
type target struct {
	addr netip.Addr // not valid: name counts
	name string
	port uint16
}

// maxSOCKSName is the longest name in bytes: SOCKS5 writes its length in one byte.
// SOCKS4A sets no limit, and no host needs more.
const maxSOCKSName = 255

// parseTarget reads "host:port".
func parseTarget(addr string) (target, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return target{}, errors.New("the target is not a host and a port")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return target{}, errors.New("the target's port is not a number from 1 to 65535")
	}
	t := target{name: host, port: uint16(n)}
	if ip, err := netip.ParseAddr(host); err == nil {
		t.addr, t.name = ip.Unmap(), ""
	}
	switch {
	case t.addr.Zone() != "":
		return target{}, errors.New("the target's address has a zone, which SOCKS can't carry and which means nothing to a proxy")
	case t.addr.IsValid():
	case t.name == "":
		return target{}, errors.New("the target has no host")
	case len(t.name) > maxSOCKSName:
		return target{}, fmt.Errorf("the target's name has %d bytes, of which SOCKS carries at most %d", len(t.name), maxSOCKSName)
	case strings.IndexByte(t.name, 0) >= 0:
		return target{}, errors.New("the target's name has a NUL")
	}
	return t, nil
}

// talk is one handshake. One goroutine uses it.
type talk struct {
	conn  net.Conn
	proxy Proxy
	code  byte                   // see SOCKSError.Code
	buf   [maxSOCKSName + 2]byte // what was read last
}

// shake writes nothing before it is known that everything can be said.
func (t *talk) shake(addr string) error {
	if err := t.proxy.Validate(); err != nil {
		return err
	}
	to, err := parseTarget(addr)
	if err != nil {
		return err
	}
	switch t.proxy.Type {
	case SOCKS5:
		return t.socks5(to)
	case SOCKS4, SOCKS4A:
		return t.socks4(to)
	}
	return errors.New("it is no SOCKS proxy")
}

// read returns the next n bytes, at most len(t.buf), until the next read. what
// names them.
func (t *talk) read(n int, what string) ([]byte, error) {
	b := t.buf[:n]
	_, err := io.ReadFull(t.conn, b)
	switch err {
	case nil:
		return b, nil
	case io.EOF, io.ErrUnexpectedEOF:
		return nil, fmt.Errorf("it closed the connection before the end of its %s: %w", what, io.ErrUnexpectedEOF)
	}
	return nil, fmt.Errorf("read its %s: %w", what, err)
}

func (t *talk) write(b []byte, what string) error {
	if _, err := t.conn.Write(b); err != nil {
		return fmt.Errorf("write the %s: %w", what, err)
	}
	return nil
}

// wrongVersion is the error of an answer that begins with got instead of want.
func wrongVersion(what string, got, want byte) error {
	if got == 'H' {
		return fmt.Errorf("its %s begins with 'H': it seems to be an HTTP server", what)
	}
	return fmt.Errorf("its %s has version %d instead of %d", what, got, want)
}
