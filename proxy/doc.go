// Package proxy says how a call gets out of the house: straight to the origin, or through an HTTP,
// HTTPS or SOCKS proxy.
//
// A [Proxy] names one way out. A [Selector] lists the ways for a URL, best first; [Fixed] and
// [FromEnvironment] are the usual ones and [SelectorFunc] makes one of a function. Selecting is a
// decision only: nothing in this package looks up a name or opens a connection to select.
//
// The client speaks to plain HTTP proxies, for http URLs. CONNECT tunnels, [HTTPS] and SOCKS proxies
// can be named and selected; a connection by one fails with connection.ErrUnsupportedRoute (not yet).
//
// # Passwords
//
// [Proxy.String] never shows a password, nor does an error of [Parse]. The User field keeps it, since
// the connection needs it; what is handed to listeners and put in errors is [Proxy.Redacted].
package proxy
