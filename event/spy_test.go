package event_test

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// notes keeps the calls of methods, each as its name and its arguments.
type notes struct{ got [][]any }

func (n *notes) note(name string, args ...any) { n.got = append(n.got, append([]any{name}, args...)) }

// spy notes every event with the very arguments it was given.
type spy struct {
	event.SealedListener
	notes
}

var _ event.Listener = (*spy)(nil)

func (s *spy) CallStart(c event.Call)                    { s.note("CallStart", c) }
func (s *spy) DispatcherQueueStart(c event.Call)         { s.note("DispatcherQueueStart", c) }
func (s *spy) DispatcherQueueEnd(c event.Call)           { s.note("DispatcherQueueEnd", c) }
func (s *spy) ProxySelectStart(c event.Call, u *url.URL) { s.note("ProxySelectStart", c, u) }
func (s *spy) ProxySelectEnd(c event.Call, u *url.URL, proxies []proxy.Proxy, err error) {
	s.note("ProxySelectEnd", c, u, proxies, err)
}
func (s *spy) DNSStart(c event.Call, host string) { s.note("DNSStart", c, host) }
func (s *spy) DNSEnd(c event.Call, host string, addrs []netip.Addr, err error) {
	s.note("DNSEnd", c, host, addrs, err)
}
func (s *spy) ConnectStart(c event.Call, addr string, p proxy.Proxy) {
	s.note("ConnectStart", c, addr, p)
}
func (s *spy) SecureConnectStart(c event.Call) { s.note("SecureConnectStart", c) }
func (s *spy) SecureConnectEnd(c event.Call, state *tls.ConnectionState, err error) {
	s.note("SecureConnectEnd", c, state, err)
}
func (s *spy) ConnectEnd(c event.Call, addr string, p proxy.Proxy, protocol string) {
	s.note("ConnectEnd", c, addr, p, protocol)
}
func (s *spy) ConnectFailed(c event.Call, addr string, p proxy.Proxy, protocol string, err error) {
	s.note("ConnectFailed", c, addr, p, protocol, err)
}
func (s *spy) ConnectionAcquired(c event.Call, conn event.Connection) {
	s.note("ConnectionAcquired", c, conn)
}
func (s *spy) ConnectionReleased(c event.Call, conn event.Connection) {
	s.note("ConnectionReleased", c, conn)
}
func (s *spy) RequestHeadersStart(c event.Call)                  { s.note("RequestHeadersStart", c) }
func (s *spy) RequestHeadersEnd(c event.Call, req *http.Request) { s.note("RequestHeadersEnd", c, req) }
func (s *spy) RequestBodyStart(c event.Call)                     { s.note("RequestBodyStart", c) }
func (s *spy) RequestBodyEnd(c event.Call, n int64)              { s.note("RequestBodyEnd", c, n) }
func (s *spy) RequestFailed(c event.Call, err error)             { s.note("RequestFailed", c, err) }
func (s *spy) ResponseHeadersStart(c event.Call)                 { s.note("ResponseHeadersStart", c) }
func (s *spy) InformationalResponse(c event.Call, code int, h http.Header) {
	s.note("InformationalResponse", c, code, h)
}
func (s *spy) ResponseHeadersEnd(c event.Call, resp *http.Response) {
	s.note("ResponseHeadersEnd", c, resp)
}
func (s *spy) ResponseBodyStart(c event.Call)         { s.note("ResponseBodyStart", c) }
func (s *spy) ResponseBodyEnd(c event.Call, n int64)  { s.note("ResponseBodyEnd", c, n) }
func (s *spy) ResponseFailed(c event.Call, err error) { s.note("ResponseFailed", c, err) }
func (s *spy) CallEnd(c event.Call)                   { s.note("CallEnd", c) }
func (s *spy) CallFailed(c event.Call, err error)     { s.note("CallFailed", c, err) }
func (s *spy) Canceled(c event.Call)                  { s.note("Canceled", c) }
func (s *spy) RetryDecision(c event.Call, err error, retry bool, why event.Reason) {
	s.note("RetryDecision", c, err, retry, why)
}
func (s *spy) FollowUpDecision(c event.Call, resp *http.Response, next *http.Request, why event.Reason) {
	s.note("FollowUpDecision", c, resp, next, why)
}
func (s *spy) ReuseDecision(c event.Call, conn event.Connection, reused bool, why event.Reason) {
	s.note("ReuseDecision", c, conn, reused, why)
}
func (s *spy) RouteDecision(c event.Call, addr string, p proxy.Proxy, taken bool, why event.Reason) {
	s.note("RouteDecision", c, addr, p, taken, why)
}

// connectionSpy is spy for a ConnectionListener.
type connectionSpy struct {
	event.SealedListener
	notes
}

var _ event.ConnectionListener = (*connectionSpy)(nil)

func (s *connectionSpy) Connected(conn event.Connection)              { s.note("Connected", conn) }
func (s *connectionSpy) Acquired(conn event.Connection, c event.Call) { s.note("Acquired", conn, c) }
func (s *connectionSpy) Released(conn event.Connection, c event.Call) { s.note("Released", conn, c) }
func (s *connectionSpy) NoNewExchanges(conn event.Connection, why event.Reason) {
	s.note("NoNewExchanges", conn, why)
}
func (s *connectionSpy) Closed(conn event.Connection, why event.Reason) { s.note("Closed", conn, why) }
