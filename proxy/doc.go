// Package proxy says how a call gets out of the house: straight to the origin, or through an HTTP,
// HTTPS or SOCKS proxy.
//
// A [Proxy] names one way out. A [Selector] lists the ways for a URL, best first; [Fixed] and
// [FromEnvironment] are the usual ones and [SelectorFunc] makes one of a function. Selecting is a
// decision only: nothing in this package looks up a name or opens a connection to select.
//
// Who learns what of a call differs by [Type]. The origin's name is resolved by the proxy, except for
// [SOCKS4], which is told an address. An HTTP or HTTPS proxy reads requests for http URLs and answers
// them in the origin's stead; of everything else a proxy sees host and port, and passes bytes on.
//
// The SOCKS handshakes live here too ([Handshake]); their failures are a [*SOCKSError].
//
// # Passwords
//
// [Proxy.String] never shows a password, nor does an error of [Parse]. The User field keeps it, since
// the connection needs it; what is handed to listeners and put in errors is [Proxy.Redacted].
package proxy
