package event

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/catena-http/catena/proxy"
)

// Listener is told every step of a call and the reason of every decision.
//
// A call without retries or follow-ups on a new connection gives
//
//	CallStart
//	  ProxySelectStart ProxySelectEnd
//	  DNSStart DNSEnd
//	  ConnectStart
//	    SecureConnectStart SecureConnectEnd
//	  ConnectEnd
//	  ConnectionAcquired
//	    RequestHeadersStart RequestHeadersEnd
//	    RequestBodyStart RequestBodyEnd
//	    ResponseHeadersStart ResponseHeadersEnd
//	    ResponseBodyStart ResponseBodyEnd
//	  ConnectionReleased
//	CallEnd
//
// with a FollowUpDecision once the response's head is there. On a pooled
// connection everything from ProxySelectStart to ConnectEnd is missing.
//
// Every Start has exactly one End or Failed, also when the step fails, the call
// is canceled or times out, or an interceptor panics. A call ends with exactly
// one CallEnd or CallFailed, after the last event of the response body; nothing
// follows it but a Canceled.
//
// Events of a call come from the goroutine that runs it (that of Execute, then
// that of the body's reader), one at a time, except Canceled, which comes from
// the goroutine that cancels, and the events of an HTTP/2 request body that is
// still being sent when Execute returns. No event is sent with a lock held: a
// listener may call back into the client. A listener that blocks, blocks its
// call.
//
// Arguments are read-only and, except the Call, valid during the method only.
// Proxies in them carry no password.
//
// Implementations embed NopListener, which seals the interface so that events
// can be added.
type Listener interface {
	// CallStart: Execute or Enqueue began.
	CallStart(c Call)

	// DispatcherQueueStart: an enqueued call has to wait for the dispatcher's
	// limits. A call that starts at once has no queue events.
	DispatcherQueueStart(c Call)
	// DispatcherQueueEnd: the call left the queue, to run or to fail.
	DispatcherQueueEnd(c Call)

	// ProxySelectStart: no pooled connection served, the selector is asked for
	// the proxies of u, which has scheme, host and port only.
	ProxySelectStart(c Call, u *url.URL)
	// ProxySelectEnd: the selector answered, or failed with err.
	ProxySelectEnd(c Call, u *url.URL, proxies []proxy.Proxy, err error)

	// DNSStart: host, the origin's or the proxy's, is looked up. There is no
	// lookup for an IP literal, nor of the origin where a proxy resolves it.
	DNSStart(c Call, host string)
	// DNSEnd: the addresses in the resolver's order, or err.
	DNSEnd(c Call, host string, addrs []netip.Addr, err error)

	// ConnectStart: a connection to addr is attempted; "192.0.2.1:443", or
	// "host:443" where a SOCKS proxy resolves the name. What is said to a proxy to
	// get through it lies between this and the end, as far as it shows: a 407 to a
	// CONNECT by its FollowUpDecision, TLS with an HTTPS proxy as below.
	ConnectStart(c Call, addr string, p proxy.Proxy)
	// SecureConnectStart: a TLS handshake begins: with the origin, or before that
	// with an HTTPS proxy. A tunnel through an HTTPS proxy has both in one connect,
	// one after the other.
	SecureConnectStart(c Call)
	// SecureConnectEnd: the handshake and its checks are done, or failed with
	// err; state is nil then.
	SecureConnectEnd(c Call, state *tls.ConnectionState, err error)
	// ConnectEnd: the connection stands and speaks protocol; "" where it ended
	// without one and another follows by the same route, as after a tunnel's 407
	// with close.
	ConnectEnd(c Call, addr string, p proxy.Proxy, protocol string)
	// ConnectFailed: the attempt failed. protocol is "" where none was agreed on.
	ConnectFailed(c Call, addr string, p proxy.Proxy, protocol string, err error)

	// ConnectionAcquired: the call holds conn, new or pooled. A follow-up that
	// keeps the connection has no second event.
	ConnectionAcquired(c Call, conn Connection)
	// ConnectionReleased: the call let go of conn.
	ConnectionReleased(c Call, conn Connection)

	// RequestHeadersStart: the head of a request is about to be written.
	RequestHeadersStart(c Call)
	// RequestHeadersEnd: the head of req, the network request, was written,
	// possibly to a buffer that leaves with the body.
	RequestHeadersEnd(c Call, req *http.Request)
	// RequestBodyStart: the request's body is about to be written.
	RequestBodyStart(c Call)
	// RequestBodyEnd: n bytes of body were written, and its end.
	RequestBodyEnd(c Call, n int64)
	// RequestFailed: writing the head or the body failed. The response may
	// still be read. At most once an exchange.
	RequestFailed(c Call, err error)

	// ResponseHeadersStart: the first byte of the response has arrived.
	ResponseHeadersStart(c Call)
	// InformationalResponse: an interim response (1xx) was read.
	InformationalResponse(c Call, code int, h http.Header)
	// ResponseHeadersEnd: the head of resp, the network response, was read.
	ResponseHeadersEnd(c Call, resp *http.Response)
	// ResponseBodyStart: the first bytes of the body were read, or its end or
	// Close came before any.
	ResponseBodyStart(c Call)
	// ResponseBodyEnd: the body was read to its end or closed, after n bytes as
	// they came off the wire (compressed, without chunk framing).
	ResponseBodyEnd(c Call, n int64)
	// ResponseFailed: reading the head or the body failed. Not necessarily the
	// end of the call.
	ResponseFailed(c Call, err error)

	// CallEnd: the call is over, its body read or closed.
	CallEnd(c Call)
	// CallFailed: the call is over with err, the one the application gets.
	CallFailed(c Call, err error)
	// Canceled: Cancel was called for the first time; possibly before CallStart
	// or after CallEnd.
	Canceled(c Call)

	// RetryDecision: an attempt failed with err; it is made again or not, why.
	RetryDecision(c Call, err error, retry bool, why Reason)
	// FollowUpDecision: resp is followed by next; nil: it is the call's answer. A
	// proxy's 407 to a CONNECT has one too, within the connect: there next is the
	// next CONNECT, and nil means that the proxy is given up.
	FollowUpDecision(c Call, resp *http.Response, next *http.Request, why Reason)
	// ReuseDecision: a pooled or held connection was taken or passed over.
	ReuseDecision(c Call, conn Connection, reused bool, why Reason)
	// RouteDecision: a route was taken, or postponed or dropped. addr is as in
	// ConnectStart.
	RouteDecision(c Call, addr string, p proxy.Proxy, taken bool, why Reason)

	sealedListener()
}

// Factory makes the listener of one call; NewCall and Clone call it once for
// each. A nil answer means no listener.
type Factory func(call Call) Listener

// NopListener ignores every event. Embed it and override what you need.
type NopListener struct{}

var _ Listener = NopListener{}

func (NopListener) CallStart(Call)                                               {}
func (NopListener) DispatcherQueueStart(Call)                                    {}
func (NopListener) DispatcherQueueEnd(Call)                                      {}
func (NopListener) ProxySelectStart(Call, *url.URL)                              {}
func (NopListener) ProxySelectEnd(Call, *url.URL, []proxy.Proxy, error)          {}
func (NopListener) DNSStart(Call, string)                                        {}
func (NopListener) DNSEnd(Call, string, []netip.Addr, error)                     {}
func (NopListener) ConnectStart(Call, string, proxy.Proxy)                       {}
func (NopListener) SecureConnectStart(Call)                                      {}
func (NopListener) SecureConnectEnd(Call, *tls.ConnectionState, error)           {}
func (NopListener) ConnectEnd(Call, string, proxy.Proxy, string)                 {}
func (NopListener) ConnectFailed(Call, string, proxy.Proxy, string, error)       {}
func (NopListener) ConnectionAcquired(Call, Connection)                          {}
func (NopListener) ConnectionReleased(Call, Connection)                          {}
func (NopListener) RequestHeadersStart(Call)                                     {}
func (NopListener) RequestHeadersEnd(Call, *http.Request)                        {}
func (NopListener) RequestBodyStart(Call)                                        {}
func (NopListener) RequestBodyEnd(Call, int64)                                   {}
func (NopListener) RequestFailed(Call, error)                                    {}
func (NopListener) ResponseHeadersStart(Call)                                    {}
func (NopListener) InformationalResponse(Call, int, http.Header)                 {}
func (NopListener) ResponseHeadersEnd(Call, *http.Response)                      {}
func (NopListener) ResponseBodyStart(Call)                                       {}
func (NopListener) ResponseBodyEnd(Call, int64)                                  {}
func (NopListener) ResponseFailed(Call, error)                                   {}
func (NopListener) CallEnd(Call)                                                 {}
func (NopListener) CallFailed(Call, error)                                       {}
func (NopListener) Canceled(Call)                                                {}
func (NopListener) RetryDecision(Call, error, bool, Reason)                      {}
func (NopListener) FollowUpDecision(Call, *http.Response, *http.Request, Reason) {}
func (NopListener) ReuseDecision(Call, Connection, bool, Reason)                 {}
func (NopListener) RouteDecision(Call, string, proxy.Proxy, bool, Reason)        {}
func (NopListener) sealedListener()                                              {}
