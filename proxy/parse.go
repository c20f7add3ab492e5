package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// schemes is what Parse reads before "://".
var schemes = map[string]Type{
	"direct":  Direct,
	"http":    HTTP,
	"https":   HTTPS,
	"socks4":  SOCKS4,
	"socks4a": SOCKS4A,
	"socks5":  SOCKS5,
	"socks5h": SOCKS5,
}

// Parse reads a proxy's address, as it stands in configurations and in HTTP_PROXY:
//
//	http://user:password@proxy.test:3128
//	socks5://[2001:db8::1]
//	proxy.test:3128
//	direct
//
// The schemes are http, https, socks4, socks4a, socks5 and socks5h (the same as socks5: the proxy
// resolves names); without one it is http. Scheme and host are read without regard to case, and a host
// in Unicode becomes its ASCII form (RFC 5891). An IPv6 address stands in brackets, its zone after "%"
// or "%25". Without a port it is the default of [Proxy]. User and password are percent-decoded; a '/',
// '?' or '#' in them must be encoded, and a ':' in the user. They must be such as the type can carry (see
// [Proxy]). A single "/" at the end is ignored, as is white space around the whole.
//
// The error says what is wrong and shows neither the password nor anything that may be a piece of it.
func Parse(s string) (Proxy, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return Proxy{}, errors.New("proxy address is empty")
	}
	if strings.EqualFold(s, Direct.String()) {
		return Proxy{}, nil
	}
	scheme, rest, found := strings.Cut(s, "://")
	if !found {
		scheme, rest = HTTP.String(), s
	}
	t, known := schemes[strings.ToLower(scheme)]
	switch {
	case !known:
		return Proxy{}, unknownScheme(scheme)
	case t == Direct && strings.Trim(rest, "/") != "":
		return Proxy{}, errors.New("direct proxy takes no address")
	case t == Direct:
		return Proxy{}, nil
	}
	authority, err := cutAuthority(rest)
	if err != nil {
		return Proxy{}, err
	}
	p := Proxy{Type: t}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if p.User, err = parseUser(authority[:at]); err != nil {
			return Proxy{}, err
		}
		authority = authority[at+1:]
	}
	host, port, err := splitHostPort(authority)
	if err != nil {
		return Proxy{}, err
	}
	if p.Host, err = parseHost(host); err != nil {
		return Proxy{}, err
	}
	if p.Port, err = parsePort(port, t); err != nil {
		return Proxy{}, err
	}
	if err := p.Validate(); err != nil {
		return Proxy{}, err
	}
	return p, nil
}

// unknownScheme shows the scheme only where it looks like one: what stands before "://" in a bad
// address may be a user and the start of a password.
func unknownScheme(scheme string) error {
	const want = "want http, https, socks4, socks4a, socks5, socks5h or direct"
	if strings.ContainsFunc(scheme, func(r rune) bool { return r != '+' && !isUnreserved(r) }) {
		return errors.New("proxy scheme is malformed: " + want)
	}
	return fmt.Errorf("proxy scheme %q is not supported: %s", scheme, want)
}

// cutAuthority returns the user info, host and port that s is to consist of. A path, query or fragment
// is refused, not ignored: it may be the rest of a password, and then what stands before is no host.
func cutAuthority(s string) (string, error) {
	end := strings.IndexAny(s, "/?#")
	switch {
	case end < 0:
		return s, nil
	case strings.ContainsRune(s[end:], '@'):
		return "", errors.New("proxy user info has a '/', '?' or '#' that is not percent-encoded")
	case s[end:] != "/":
		return "", errors.New("proxy address has a path, query or fragment")
	}
	return s[:end], nil
}

// parseUser returns nil for an empty s, which asks for no credentials.
func parseUser(s string) (*url.Userinfo, error) {
	if s == "" {
		return nil, nil
	}
	rawName, rawPassword, hasPassword := strings.Cut(s, ":")
	name, err := unescapeUser(rawName)
	if err != nil {
		return nil, err
	}
	if !hasPassword {
		return url.User(name), nil
	}
	password, err := unescapeUser(rawPassword)
	if err != nil {
		return nil, err
	}
	return url.UserPassword(name, password), nil
}

// unescapeUser refuses control characters, which would end a field in some of the handshakes.
func unescapeUser(s string) (string, error) {
	plain, err := url.PathUnescape(s)
	if err != nil {
		return "", errors.New("proxy user info has a malformed percent-encoding")
	}
	if strings.ContainsFunc(plain, isControl) {
		return "", errors.New("proxy user info has a control character")
	}
	return plain, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// isUnreserved tells the characters that never need percent-encoding (RFC 3986 section 2.3).
func isUnreserved(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~", r)
}

// splitHostPort leaves the brackets on an IPv6 address. port is "" if there is none.
func splitHostPort(s string) (host, port string, err error) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", "", errors.New("proxy host lacks the closing ']'")
		}
		host, port = s[:end+1], s[end+1:]
		if port != "" && port[0] != ':' {
			return "", "", errors.New("proxy host is followed by something other than a port")
		}
		return host, strings.TrimPrefix(port, ":"), nil
	}
	host, port, _ = strings.Cut(s, ":")
	if strings.ContainsRune(port, ':') {
		return "", "", errors.New("proxy host has too many colons: an IPv6 address needs brackets")
	}
	return host, port, nil
}

func parseHost(s string) (string, error) {
	if s == "" {
		return "", errors.New("proxy address has no host")
	}
	if s[0] == '[' {
		return parseIPv6(s[1 : len(s)-1])
	}
	ascii, err := hostToASCII(s)
	if err != nil {
		return "", err
	}
	for _, r := range ascii {
		if isControl(r) || strings.ContainsRune(" !\"#$%&'()*+,/:;<=>?@[\\]^`{|}~", r) {
			return "", fmt.Errorf("proxy host has the character %q", r)
		}
	}
	return strings.ToLower(ascii), nil
}

// hostToASCII returns s itself if it is ASCII.
func hostToASCII(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", errors.New("proxy host is not UTF-8")
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return s, nil
	}
	ascii, err := idna.Lookup.ToASCII(s)
	if err != nil || ascii == "" { // some characters are mapped to nothing
		return "", errors.New("proxy host is no valid international domain name")
	}
	return ascii, nil
}

func parseIPv6(s string) (string, error) {
	if addr, zone, found := strings.Cut(s, "%25"); found {
		s = addr + "%" + zone
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || !addr.Is6() {
		return "", errors.New("proxy host in brackets is no IPv6 address")
	}
	if strings.ContainsFunc(addr.Zone(), func(r rune) bool { return !isUnreserved(r) }) {
		return "", errors.New("proxy host has a malformed zone")
	}
	return addr.String(), nil
}

// parsePort does not show the port in its error: it is a password where the "@host" was forgotten.
func parsePort(s string, t Type) (int, error) {
	if s == "" {
		return t.defaultPort(), nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, errors.New("proxy port is not a number from 1 to 65535")
	}
	return int(n), nil
}
