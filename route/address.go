package route

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Address is a server reached through a Network. It is comparable and the
// pool's key: calls to equal addresses may share connections.
type Address struct {
	Scheme string // "http" or "https"
	// Host is a name in lower case and A-labels (RFC 5891), a trailing dot kept,
	// or an IP literal without brackets, with its zone.
	Host    string
	Port    int
	Network *Network
}

// NewAddress is the address of u through n. It fails where u has no host, a
// scheme other than http and https, or a host or port that no server can have.
func NewAddress(u *url.URL, n *Network) (Address, error) {
	a := Address{Scheme: u.Scheme, Network: n}
	switch u.Scheme {
	case "http":
		a.Port = 80
	case "https":
		a.Port = 443
	default:
		return a, fmt.Errorf("unsupported scheme %q: want http or https", u.Scheme)
	}
	host, port := u.Host, ""
	if strings.IndexByte(host, ':') >= 0 || strings.IndexByte(host, '[') >= 0 {
		host, port = u.Hostname(), u.Port()
		if bracketed := u.Host[0] == '['; bracketed != (strings.IndexByte(host, ':') >= 0) {
			return a, fmt.Errorf("host %q: brackets belong around an IPv6 address, and only there", u.Host)
		}
	}
	var err error
	if a.Host, err = CanonicalHost(host); err != nil {
		return a, err
	}
	if port != "" {
		p, err := strconv.ParseUint(port, 10, 16)
		if err != nil || p == 0 {
			return a, fmt.Errorf("port %q is out of range: want 1 to 65535", port)
		}
		a.Port = int(p)
	}
	return a, nil
}

// maxHost bounds a host as a URL has it, in bytes: 253 characters of four bytes
// each, and some. Encoding in A-labels takes time by the square of the length,
// and a redirect's host is the peer's.
const maxHost = 1024

// CanonicalHost is host, without brackets or port, as it stands in addresses:
// lower case, in A-labels, a trailing dot kept; an IP literal in its canonical
// text, an IPv4-mapped one as IPv4, with its zone.
func CanonicalHost(host string) (string, error) {
	if host == "" {
		return "", fmt.Errorf("the URL has no host")
	}
	if len(host) > maxHost {
		return "", fmt.Errorf("a host of %d bytes is too long: want at most %d", len(host), maxHost)
	}
	if isPlainHost(host) {
		return host, nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if !isZone(ip.Zone()) {
			return "", fmt.Errorf("host %q has a character no zone has", host)
		}
		return ip.Unmap().String(), nil
	}
	ascii := strings.ToLower(host)
	if !isASCII(ascii) {
		var err error
		if ascii, err = idna.Lookup.ToASCII(host); err != nil {
			return "", fmt.Errorf("host %q is not a name: %w", host, err)
		}
	}
	if !isPlainHost(ascii) {
		return "", fmt.Errorf("host %q has a character no host name has", host)
	}
	return ascii, nil
}

// isPlainHost reports whether host is already canonical: lower-case letters,
// digits, '-', '_' and dots, at most 253 of them without a trailing dot. It
// says no to IP literals of version 6.
func isPlainHost(host string) bool {
	for i := 0; i < len(host); i++ {
		c := host[i]
		if ('a' > c || c > 'z') && ('0' > c || c > '9') && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return host != "" && host[0] != '.' && len(strings.TrimSuffix(host, ".")) <= 253
}

// isZone reports whether s can name an interface: visible ASCII that means
// nothing in a URL or a header, or nothing at all.
func isZone(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] >= 0x7f || strings.IndexByte("%[]/?#@:\\\"<>", s[i]) >= 0 {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// HostPort is "host:port", an IPv6 literal in brackets.
func (a Address) HostPort() string {
	return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
}

// URL is the address as a proxy selector is asked for it and told about it: scheme,
// host and port, and the path "/".
func (a Address) URL() *url.URL {
	return &url.URL{Scheme: a.Scheme, Host: a.HostPort(), Path: "/"}
}

// Secure reports whether the address is reached by TLS.
func (a Address) Secure() bool { return a.Scheme == "https" }

// ServerName is the host as TLS knows it: without a trailing dot or a zone
// (RFC 6066 3, RFC 9844 6).
func (a Address) ServerName() string {
	host := strings.TrimSuffix(a.Host, ".")
	if i := strings.IndexByte(host, '%'); i >= 0 {
		host = host[:i]
	}
	return host
}

func (a Address) String() string { return a.Scheme + "://" + a.HostPort() }
