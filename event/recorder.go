package event

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/catena-http/catena/proxy"
)

// Recorder is a Listener that keeps every event, for tests and for looking into
// a call. One may serve any number of calls at once. It grows until Reset, so it
// is not for a client that runs for days.
type Recorder struct{ log }

var _ Listener = (*Recorder)(nil)

// NewRecorder returns a Recorder without events.
func NewRecorder() *Recorder { return &Recorder{} }

// log is a list of events that any goroutine may add to.
type log struct {
	mu     sync.Mutex // guards events
	events []Event
}

// Events returns a copy of the events recorded so far, in their order.
func (l *log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// Names returns the names of the events recorded so far, without the four
// decisions: "CallStart", "ProxySelectStart", "ProxySelectEnd", ...
func (l *log) Names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for _, e := range l.events {
		if !e.IsDecision() {
			names = append(names, e.Name)
		}
	}
	return names
}

// Reset forgets the events recorded so far.
func (l *log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = nil
}

// add stamps e under the lock, so that the times are in the order of the list.
func (l *log) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.At = time.Now()
	l.events = append(l.events, e)
}

// addOf is add for an event of a call.
func (l *log) addOf(c Call, name string, e Event) {
	e.Name, e.CallID = name, c.ID()
	l.add(e)
}

// of describes a request as c allows it to be shown.
func (e Event) of(c Call, req *http.Request) Event {
	if req == nil {
		return e
	}
	e.Method = req.Method
	if e.Method == "" {
		e.Method = http.MethodGet
	}
	if req.URL != nil {
		e.URL = c.RedactedURL(req.URL)
	}
	return e
}

// on describes the connection.
func (e Event) on(conn Connection) Event {
	e.ConnectionID = conn.ID()
	e.Proxy = conn.Proxy().Redacted()
	e.Protocol = conn.Protocol()
	if a := conn.RemoteAddr(); a != nil {
		e.Addr = a.String()
	}
	return e
}

func (r *Recorder) CallStart(c Call) {
	r.addOf(c, "CallStart", Event{}.of(c, c.Request()))
}
func (r *Recorder) DispatcherQueueStart(c Call) { r.addOf(c, "DispatcherQueueStart", Event{}) }
func (r *Recorder) DispatcherQueueEnd(c Call)   { r.addOf(c, "DispatcherQueueEnd", Event{}) }

func (r *Recorder) ProxySelectStart(c Call, u *url.URL) {
	r.addOf(c, "ProxySelectStart", Event{URL: c.RedactedURL(u)})
}

func (r *Recorder) ProxySelectEnd(c Call, u *url.URL, proxies []proxy.Proxy, err error) {
	var kept []proxy.Proxy
	for _, p := range proxies {
		kept = append(kept, p.Redacted())
	}
	r.addOf(c, "ProxySelectEnd", Event{URL: c.RedactedURL(u), Proxies: kept, Err: err})
}

func (r *Recorder) DNSStart(c Call, host string) { r.addOf(c, "DNSStart", Event{Host: host}) }

func (r *Recorder) DNSEnd(c Call, host string, addrs []netip.Addr, err error) {
	r.addOf(c, "DNSEnd", Event{Host: host, Addrs: slices.Clone(addrs), Err: err})
}

func (r *Recorder) ConnectStart(c Call, addr string, p proxy.Proxy) {
	r.addOf(c, "ConnectStart", Event{Addr: addr, Proxy: p.Redacted()})
}

func (r *Recorder) SecureConnectStart(c Call) { r.addOf(c, "SecureConnectStart", Event{}) }

func (r *Recorder) SecureConnectEnd(c Call, state *tls.ConnectionState, err error) {
	e := Event{Err: err}
	if state != nil {
		e.Protocol, e.TLSVersion = state.NegotiatedProtocol, tls.VersionName(state.Version)
	}
	r.addOf(c, "SecureConnectEnd", e)
}

func (r *Recorder) ConnectEnd(c Call, addr string, p proxy.Proxy, protocol string) {
	r.addOf(c, "ConnectEnd", Event{Addr: addr, Proxy: p.Redacted(), Protocol: protocol})
}

func (r *Recorder) ConnectFailed(c Call, addr string, p proxy.Proxy, protocol string, err error) {
	r.addOf(c, "ConnectFailed", Event{Addr: addr, Proxy: p.Redacted(), Protocol: protocol, Err: err})
}

func (r *Recorder) ConnectionAcquired(c Call, conn Connection) {
	r.addOf(c, "ConnectionAcquired", Event{}.on(conn))
}

func (r *Recorder) ConnectionReleased(c Call, conn Connection) {
	r.addOf(c, "ConnectionReleased", Event{}.on(conn))
}

func (r *Recorder) RequestHeadersStart(c Call) { r.addOf(c, "RequestHeadersStart", Event{}) }

func (r *Recorder) RequestHeadersEnd(c Call, req *http.Request) {
	r.addOf(c, "RequestHeadersEnd", Event{}.of(c, req))
}
func (r *Recorder) RequestBodyStart(c Call) { r.addOf(c, "RequestBodyStart", Event{}) }

func (r *Recorder) RequestBodyEnd(c Call, n int64) {
	r.addOf(c, "RequestBodyEnd", Event{Bytes: n})
}

func (r *Recorder) RequestFailed(c Call, err error) {
	r.addOf(c, "RequestFailed", Event{Err: err})
}
func (r *Recorder) ResponseHeadersStart(c Call) { r.addOf(c, "ResponseHeadersStart", Event{}) }

func (r *Recorder) InformationalResponse(c Call, code int, _ http.Header) {
	r.addOf(c, "InformationalResponse", Event{Code: code})
}

func (r *Recorder) ResponseHeadersEnd(c Call, resp *http.Response) {
	r.addOf(c, "ResponseHeadersEnd", Event{Code: resp.StatusCode})
}
func (r *Recorder) ResponseBodyStart(c Call) { r.addOf(c, "ResponseBodyStart", Event{}) }

func (r *Recorder) ResponseBodyEnd(c Call, n int64) {
	r.addOf(c, "ResponseBodyEnd", Event{Bytes: n})
}

func (r *Recorder) ResponseFailed(c Call, err error) {
	r.addOf(c, "ResponseFailed", Event{Err: err})
}

func (r *Recorder) CallEnd(c Call)               { r.addOf(c, "CallEnd", Event{}) }
func (r *Recorder) CallFailed(c Call, err error) { r.addOf(c, "CallFailed", Event{Err: err}) }
func (r *Recorder) Canceled(c Call)              { r.addOf(c, "Canceled", Event{}) }

func (r *Recorder) RetryDecision(c Call, err error, retry bool, why Reason) {
	r.addOf(c, "RetryDecision", Event{Err: err, Taken: retry, Why: why})
}

func (r *Recorder) FollowUpDecision(c Call, resp *http.Response, next *http.Request, why Reason) {
	e := Event{Taken: next != nil, Why: why}.of(c, next)
	if resp != nil {
		e.Code = resp.StatusCode
	}
	r.addOf(c, "FollowUpDecision", e)
}

func (r *Recorder) ReuseDecision(c Call, conn Connection, reused bool, why Reason) {
	r.addOf(c, "ReuseDecision", Event{Taken: reused, Why: why}.on(conn))
}

func (r *Recorder) RouteDecision(c Call, addr string, p proxy.Proxy, taken bool, why Reason) {
	r.addOf(c, "RouteDecision", Event{Addr: addr, Proxy: p.Redacted(), Taken: taken, Why: why})
}

func (r *Recorder) sealedListener() {}
