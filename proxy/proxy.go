package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Type is the kind of a proxy: the language that is spoken to it.
type Type int

const (
	// Direct is no proxy: the socket goes to the origin.
	Direct Type = iota
	// HTTP is a proxy reached in clear text. Requests for http URLs are sent to it in absolute form
	// (RFC 9112 section 3.2.2), others go through a CONNECT tunnel (RFC 9110 section 9.3.6).
	HTTP
	// HTTPS is an HTTP proxy reached over TLS.
	HTTPS
	// SOCKS4 is told an IPv4 address; we resolve the origin's name. It has a user but no password.
	SOCKS4
	// SOCKS4A is SOCKS4 with the origin's name resolved by the proxy; IPv6 addresses can't be told.
	SOCKS4A
	// SOCKS5 is RFC 1928, the origin's name resolved by the proxy, with RFC 1929's user and password.
	SOCKS5
)

// kinds holds what there is to know of each Type. The scheme of each is one that Parse reads.
var kinds = [...]struct {
	scheme string
	port   int // where the proxy listens if nothing else is said
}{
	Direct:  {"direct", 0},
	HTTP:    {"http", 80},
	HTTPS:   {"https", 443},
	SOCKS4:  {"socks4", 1080},
	SOCKS4A: {"socks4a", 1080},
	SOCKS5:  {"socks5", 1080},
}

func (t Type) known() bool { return t >= Direct && int(t) < len(kinds) }

// String returns the scheme of t in a proxy's URL, such as "http" or "socks5", and "direct" for Direct.
func (t Type) String() string {
	if !t.known() {
		return "Type(" + strconv.Itoa(int(t)) + ")"
	}
	return kinds[t].scheme
}

// defaultPort returns the port of a proxy that names none, 0 for Direct.
func (t Type) defaultPort() int {
	if !t.known() {
		return 0
	}
	return kinds[t].port
}

// Proxy is one way to an origin. The zero value is the direct one.
//
// A Proxy is a value that is never changed after it was made; any number of goroutines may hold it.
// The operator == compares User by pointer: use [Proxy.Equal] to compare two proxies made apart.
type Proxy struct {
	Type Type
	Host string // name or IP address, an IPv6 address without brackets; empty for Direct
	Port int    // 0 means the default: 80 for HTTP, 443 for HTTPS, 1080 for SOCKS

	// User is sent to the proxy at once, without waiting to be asked; to a SOCKS5 proxy if that chooses
	// the method. nil means no credentials. SOCKS5 takes a user and a password of 1 to 255 bytes each
	// (RFC 1929). SOCKS4 and SOCKS4A take a user without NUL; they know no password and none is sent.
	User *url.Userinfo
}

// IsDirect reports whether p is no proxy.
func (p Proxy) IsDirect() bool { return p.Type == Direct }

// Equal reports whether p and q are the same proxy with the same credentials. A port of 0 equals the
// type's default port.
func (p Proxy) Equal(q Proxy) bool {
	return p.Type == q.Type && p.Host == q.Host && p.EffectivePort() == q.EffectivePort() && equalUser(p.User, q.User)
}

func equalUser(a, b *url.Userinfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Addr returns the "host:port" to connect to, an IPv6 address in brackets, and "" for Direct.
func (p Proxy) Addr() string {
	if p.IsDirect() {
		return ""
	}
	return net.JoinHostPort(p.Host, strconv.Itoa(p.EffectivePort()))
}

// EffectivePort returns Port, or the type's default where that is 0.
func (p Proxy) EffectivePort() int {
	if p.Port != 0 {
		return p.Port
	}
	return p.Type.defaultPort()
}

// String returns p as a URL such as "http://user:xxxxx@proxy.test:3128", always with "xxxxx" in place
// of a password, and "direct" for Direct. [Parse] reads it back, credentials aside.
func (p Proxy) String() string {
	if p.IsDirect() {
		return Direct.String()
	}
	u := url.URL{Scheme: p.Type.String(), User: p.User, Host: p.Addr()}
	return u.Redacted()
}

// GoString keeps the password out of %#v.
func (p Proxy) GoString() string { return fmt.Sprintf("proxy.Proxy(%q)", p.String()) }

// Redacted returns p without its password; the user's name stays. It is p itself if there is no
// password. Two copies made of one p hold two User pointers and so differ by ==: whoever reports a
// proxy several times makes the copy once and keeps it.
func (p Proxy) Redacted() Proxy {
	if p.User == nil {
		return p
	}
	if _, has := p.User.Password(); has {
		p.User = url.User(p.User.Username())
	}
	return p
}

// Validate returns an error that says why p can't be used, or nil. It accepts all that [Parse] returns.
// The error has no password in it.
func (p Proxy) Validate() error {
	switch {
	case !p.Type.known():
		return fmt.Errorf("proxy type %d is unknown", int(p.Type))
	case p.IsDirect() && (p.Host != "" || p.Port != 0 || p.User != nil):
		return errors.New("proxy has an address or a user but its type is direct")
	case p.IsDirect():
		return nil
	case p.Host == "":
		return errors.New("proxy has no host")
	case p.Port < 0 || p.Port > 65535:
		return fmt.Errorf("proxy port %d is outside 1 to 65535", p.Port)
	}
	return p.validateUser()
}

// maxSOCKSUser is what a byte can tell the length of (RFC 1929).
const maxSOCKSUser = 255

// validateUser refuses credentials that the proxy can't be told.
func (p Proxy) validateUser() error {
	if p.User == nil {
		return nil
	}
	user := p.User.Username()
	password, _ := p.User.Password()
	switch p.Type {
	case SOCKS4, SOCKS4A:
		if strings.IndexByte(user, 0) >= 0 {
			return fmt.Errorf("proxy user has a NUL, where %s ends it", p.Type)
		}
	case SOCKS5:
		switch {
		case user == "" || len(user) > maxSOCKSUser:
			return fmt.Errorf("proxy user has %d bytes: socks5 wants 1 to %d", len(user), maxSOCKSUser)
		case password == "" || len(password) > maxSOCKSUser:
			return fmt.Errorf("proxy password is empty or too long: socks5 wants 1 to %d bytes", maxSOCKSUser)
		}
	}
	return nil
}
