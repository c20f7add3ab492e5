package catena

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"reflect"
	"sync/atomic"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// traceListener calls the hooks of ctx's httptrace.ClientTrace at a call's
// events; nil where ctx has none. A call that follows redirects or answers
// challenges calls them for each hop. They run on the goroutine that runs the
// call, WroteRequest possibly on that of an HTTP/2 upload.
//
// Differences from net/http's Transport: GetConn names the request's host, also
// where a proxy leads to it. ConnectDone comes before the TLS handshake unless
// connects race, else with the end of the connection's set-up. WasIdle is told of
// HTTP/1.1 connections only, IdleTime never. PutIdleConn is called, without an
// error, when an exchange of HTTP/1.1 ended well enough to leave the connection
// usable; what the pool makes of it is told to a ConnectionListener. An error of
// Got1xxResponse cancels the call, which then fails with context.Canceled.
func traceListener(ctx context.Context) event.Listener {
	hooks := httptrace.ContextClientTrace(ctx)
	if hooks == nil {
		return nil
	}
	return &tracer{hooks: hooks}
}

// tracer serves one call. All but wrote belongs to the goroutine that runs the
// call.
type tracer struct {
	event.NopListener
	hooks *httptrace.ClientTrace

	target  *url.URL         // of the hop; nil: the call's own request is under way
	asked   bool             // GetConn was called, GotConn was not
	taken   event.Connection // a ReuseDecision's
	idle    bool             // taken was in the pool, unused
	conn    event.Connection // of the exchange
	dials   []string         // the connects that are not done
	sending bool             // the request's body began
	last    bool             // the connection can't be used again

	wrote atomic.Bool // WroteRequest was called
}

// getConn calls GetConn when the search for a connection shows first.
func (t *tracer) getConn(c event.Call) {
	if t.asked {
		return
	}
	t.asked = true
	if t.hooks.GetConn == nil {
		return
	}
	u := t.target
	if u == nil {
		u = c.Request().URL
	}
	hostPort := u.Host
	if address, err := route.NewAddress(u, nil); err == nil {
		hostPort = address.HostPort()
	}
	t.hooks.GetConn(hostPort)
}

func (t *tracer) gotConn(conn event.Connection, reused, idle bool) {
	t.asked, t.taken, t.conn = false, nil, conn
	if t.hooks.GotConn == nil {
		return
	}
	info := httptrace.GotConnInfo{Reused: reused, WasIdle: idle}
	if c, ok := conn.(interface{ NetConn() net.Conn }); ok {
		info.Conn = c.NetConn()
	}
	t.hooks.GotConn(info)
}

func (t *tracer) FollowUpDecision(_ event.Call, _ *http.Response, next *http.Request, _ event.Reason) {
	if next != nil {
		t.target = next.URL
	}
}

func (t *tracer) ReuseDecision(c event.Call, conn event.Connection, reused bool, why event.Reason) {
	if !reused {
		return
	}
	t.getConn(c)
	if why == event.ReasonHeld { // no ConnectionAcquired follows
		t.gotConn(conn, true, false)
		return
	}
	t.taken, t.idle = conn, why != event.ReasonDuplicate && !multiplexed(conn)
}

func (t *tracer) ConnectionAcquired(c event.Call, conn event.Connection) {
	t.getConn(c)
	reused := t.taken == conn
	t.gotConn(conn, reused, reused && t.idle)
}

func multiplexed(conn event.Connection) bool { return conn.Protocol() != route.HTTP1 }

func (t *tracer) ConnectionReleased(_ event.Call, conn event.Connection) {
	if t.hooks.PutIdleConn != nil && !t.last && !multiplexed(conn) {
		t.hooks.PutIdleConn(nil)
	}
}

func (t *tracer) ProxySelectStart(c event.Call, _ *url.URL) { t.getConn(c) }

func (t *tracer) DNSStart(c event.Call, host string) {
	t.getConn(c)
	if t.hooks.DNSStart != nil {
		t.hooks.DNSStart(httptrace.DNSStartInfo{Host: host})
	}
}

func (t *tracer) DNSEnd(_ event.Call, _ string, addrs []netip.Addr, err error) {
	if t.hooks.DNSDone == nil {
		return
	}
	info := httptrace.DNSDoneInfo{Err: err}
	for _, a := range addrs {
		info.Addrs = append(info.Addrs, net.IPAddr{IP: a.AsSlice(), Zone: a.Zone()})
	}
	t.hooks.DNSDone(info)
}

func (t *tracer) ConnectStart(c event.Call, addr string, _ proxy.Proxy) {
	t.getConn(c)
	t.dials = append(t.dials, addr)
	if t.hooks.ConnectStart != nil {
		t.hooks.ConnectStart("tcp", addr)
	}
}

// connectDone ends a connect that is not done yet.
func (t *tracer) connectDone(addr string, err error) {
	for i, dial := range t.dials {
		if dial == addr {
			t.dials = append(t.dials[:i], t.dials[i+1:]...)
			if t.hooks.ConnectDone != nil {
				t.hooks.ConnectDone("tcp", addr, err)
			}
			return
		}
	}
}

func (t *tracer) ConnectEnd(_ event.Call, addr string, _ proxy.Proxy, _ string) {
	t.connectDone(addr, nil)
}

func (t *tracer) ConnectFailed(_ event.Call, addr string, _ proxy.Proxy, _ string, err error) {
	t.connectDone(addr, err)
}

func (t *tracer) SecureConnectStart(event.Call) {
	if len(t.dials) == 1 { // of several, nobody tells which one
		t.connectDone(t.dials[0], nil)
	}
	if t.hooks.TLSHandshakeStart != nil {
		t.hooks.TLSHandshakeStart()
	}
}

func (t *tracer) SecureConnectEnd(_ event.Call, state *tls.ConnectionState, err error) {
	if t.hooks.TLSHandshakeDone == nil {
		return
	}
	if state == nil {
		state = &tls.ConnectionState{}
	}
	t.hooks.TLSHandshakeDone(*state, err)
}

func (t *tracer) RequestHeadersStart(event.Call) {
	t.sending, t.last = false, false
	t.wrote.Store(false)
}

func (t *tracer) RequestHeadersEnd(_ event.Call, req *http.Request) {
	t.last = req.Close
	if t.hooks.WroteHeaderField != nil && t.conn != nil {
		wroteFields(req, multiplexed(t.conn), t.hooks.WroteHeaderField)
	}
	if t.hooks.WroteHeaders != nil {
		t.hooks.WroteHeaders()
	}
	switch {
	case bodySizeOf(req) == 0:
		t.wroteRequest(nil)
	case expectsContinue(req) && t.hooks.Wait100Continue != nil:
		t.hooks.Wait100Continue()
	}
}

func (t *tracer) RequestBodyStart(event.Call) { t.sending = true }

func (t *tracer) RequestBodyEnd(event.Call, int64) { t.wroteRequest(nil) }

func (t *tracer) RequestFailed(_ event.Call, err error) {
	if t.conn != nil && !multiplexed(t.conn) { // else it may be an upload's goroutine
		t.last = true
	}
	t.wroteRequest(err)
}

func (t *tracer) wroteRequest(err error) {
	if !t.wrote.Swap(true) && t.hooks.WroteRequest != nil {
		t.hooks.WroteRequest(httptrace.WroteRequestInfo{Err: err})
	}
}

// unsent ends a request whose body the server did not ask for.
func (t *tracer) unsent(err error) {
	if !t.sending && !t.wrote.Load() {
		t.last = true
		t.wroteRequest(err)
	}
}

func (t *tracer) ResponseHeadersStart(event.Call) {
	if t.hooks.GotFirstResponseByte != nil {
		t.hooks.GotFirstResponseByte()
	}
}

func (t *tracer) InformationalResponse(c event.Call, code int, h http.Header) {
	if code == http.StatusContinue && t.hooks.Got100Continue != nil {
		t.hooks.Got100Continue()
	}
	if t.hooks.Got1xxResponse == nil {
		return
	}
	if err := t.hooks.Got1xxResponse(code, textproto.MIMEHeader(h)); err != nil {
		if c, ok := c.(*Call); ok {
			c.Cancel()
		}
	}
}

func (t *tracer) ResponseHeadersEnd(_ event.Call, resp *http.Response) {
	t.last = t.last || resp.Close || resp.StatusCode == http.StatusSwitchingProtocols
	t.unsent(nil)
}

func (t *tracer) ResponseFailed(_ event.Call, err error) {
	t.last = true
	t.unsent(err)
}

// untraced is ctx without the hooks that package net would call: those of a
// ClientTrace for names and sockets, which the tracer calls itself. The
// ClientTrace stays to be found.
func untraced(ctx context.Context) context.Context {
	if httptrace.ContextClientTrace(ctx) == nil {
		return ctx
	}
	return withoutNetHooks{ctx}
}

type withoutNetHooks struct{ context.Context }

// Value hides the key that httptrace leaves for package net, which nobody else
// can name.
func (c withoutNetHooks) Value(key any) any {
	if k := reflect.TypeOf(key); k != nil && k.PkgPath() == "internal/nettrace" && k.Name() == "TraceKey" {
		return nil
	}
	return c.Context.Value(key)
}
