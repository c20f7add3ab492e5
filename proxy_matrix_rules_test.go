package catena_test

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/catena-http/catena/proxy"
)

// want is what is to come of a case.
func (c wireCase) want() wireOutcome {
	if c.cannotBeTold() { // known before anybody is asked for anything
		return wireOutcome{Result: fmt.Sprintf("route.Error: %s carries no IPv6 address", c.proxy)}
	}
	o := wireOutcome{"200", c.wantLookups(), c.wantDials(), c.wantProxy(), c.wantOrigin()}
	switch {
	case c.proxy == proxy.Direct:
	case c.refused():
		o.Origin = nil
		switch {
		case c.isSOCKS():
			o.Result = "SOCKSError, ErrUnauthorized"
		case c.forwarded():
			o.Result = "407" // it is the proxy's response, and a response
		default:
			o.Result = "ProxyError 407" // the origin is https: this is no response of its
		}
	}
	return o
}

func (c wireCase) isSOCKS() bool { return c.proxy >= proxy.SOCKS4 }

// forwarded reports whether the proxy reads the request and passes it on. Only plain
// HTTP/1.1 is for it to read.
func (c wireCase) forwarded() bool {
	return (c.proxy == proxy.HTTP || c.proxy == proxy.HTTPS) && c.protocol == h1
}

// cannotBeTold reports whether the protocol of the proxy has no words for the target.
func (c wireCase) cannotBeTold() bool {
	return (c.proxy == proxy.SOCKS4 || c.proxy == proxy.SOCKS4A) && c.host == wireIPv6
}

// refused reports whether the proxy does not take the credentials. There are no
// challenges in SOCKS, so its proxies get nothing of an authenticator's.
func (c wireCase) refused() bool {
	switch c.credentials {
	case noLogin, wrongLogin, wrongAnswer:
		return true
	case rightAnswer:
		return c.isSOCKS()
	}
	return false
}

// login is what the client has.
func (c wireCase) login() string {
	switch c.credentials {
	case rightLogin, rightAnswer:
		return goodLogin
	case wrongLogin, wrongAnswer:
		return badLogin
	}
	return ""
}

// wantLookups: the origin's name is ours to resolve without a proxy and for SOCKS4,
// and the proxy's name always is.
func (c wireCase) wantLookups() []string {
	var names []string
	if c.proxy != proxy.Direct {
		names = append(names, wireProxyHost)
	}
	if c.host == origin && (c.proxy == proxy.Direct || c.proxy == proxy.SOCKS4) {
		names = append(names, origin)
	}
	return names
}

// wantDials: one socket, to the origin or to the proxy. A challenge is answered on
// the same.
func (c wireCase) wantDials() []string {
	switch {
	case c.proxy != proxy.Direct:
		return []string{wireProxyIPv4 + ":3128"}
	case c.host == origin:
		return []string{net.JoinHostPort(wireIPv4, c.port())}
	}
	return []string{net.JoinHostPort(c.host, c.port())}
}

// target is the origin's host and port.
func (c wireCase) target() string { return net.JoinHostPort(c.host, c.port()) }

// hostField is the origin in a URL and in Host: without a default port.
func (c wireCase) hostField() string {
	if c.host == wireIPv6 {
		return "[" + c.host + "]"
	}
	return c.host
}

// wantOrigin: the request with the origin's credentials, and nothing of the proxy's.
func (c wireCase) wantOrigin() []string {
	version := "HTTP/1.1"
	if c.protocol == h2 || c.protocol == h2c {
		version = "HTTP/2.0"
	}
	return []string{fmt.Sprintf("%s GET /a?b, Host %s, Authorization %s, Cookie %s", version, c.hostField(), originSecret, cookieSecret)}
}

// wantProxy: what each protocol tells.
func (c wireCase) wantProxy() []string {
	switch {
	case c.proxy == proxy.Direct:
		return nil
	case c.forwarded():
		return c.wantForwarded()
	case c.proxy == proxy.SOCKS4, c.proxy == proxy.SOCKS4A:
		return c.thenTunnel(c.wantSOCKS4())
	case c.proxy == proxy.SOCKS5:
		return c.thenTunnel(c.wantSOCKS5()...)
	}
	return c.thenTunnel(c.wantConnect())
}

// wantForwarded: the URL as a whole and both credentials, the proxy's at once or as
// the answer to its challenge.
func (c wireCase) wantForwarded() []string {
	request := func(login string) string {
		if login != "" {
			login = ", Proxy-Authorization " + login
		}
		u := url.URL{Scheme: "http", Host: c.hostField(), Path: "/a", RawQuery: "b"}
		return fmt.Sprintf("GET %s, Authorization %s%s, Cookie %s", &u, originSecret, login, cookieSecret)
	}
	if c.credentials == rightAnswer || c.credentials == wrongAnswer {
		return []string{request(""), request(c.login())}
	}
	return []string{request(c.login())}
}

// wantConnect: host and port, and the proxy's credentials at once, for the
// authenticator is asked ahead. Those that were refused are not sent again.
func (c wireCase) wantConnect() string {
	text := "CONNECT " + c.target()
	if c.login() != "" {
		text += ", Proxy-Authorization " + c.login()
	}
	return text
}

// wantSOCKS4: an address, which for a name is ours to find; a name in SOCKS4A only.
// There is a user and no password.
func (c wireCase) wantSOCKS4() string {
	user, _, _ := strings.Cut(c.userLogin(), ":")
	target := "address " + c.target()
	switch {
	case c.host == origin && c.proxy == proxy.SOCKS4A:
		target = "name " + c.target()
	case c.host == origin:
		target = "address " + net.JoinHostPort(wireIPv4, c.port())
	}
	return fmt.Sprintf("version 4, command 1, user %q, %s", user, target)
}

// wantSOCKS5: the credentials if the proxy chooses them, and the host as it is.
func (c wireCase) wantSOCKS5() []string {
	greeting := "version 5, methods [0]"
	if c.userLogin() != "" {
		greeting = "version 5, methods [0 2]"
	}
	told := []string{greeting}
	if c.userLogin() != "" {
		told = append(told, "login "+c.userLogin())
	}
	if c.refused() {
		return told
	}
	kind := "address"
	if c.host == origin {
		kind = "name"
	}
	return append(told, fmt.Sprintf("command 1, %s %s", kind, c.target()))
}

// userLogin is the login that stands in Proxy.User.
func (c wireCase) userLogin() string {
	if c.credentials == rightLogin || c.credentials == wrongLogin {
		return c.login()
	}
	return ""
}

// thenTunnel: in a tunnel the proxy sees what everybody on the way to the origin sees.
func (c wireCase) thenTunnel(told ...string) []string {
	switch {
	case c.refused():
		return told
	case c.secure():
		return append(told, "TLS")
	case c.protocol == h2c:
		return append(told, "HTTP/2 in clear text")
	}
	return append(told, "HTTP/1.1 in clear text")
}
