package event

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/catena-http/catena/proxy"
)

// Event is what a Recorder kept of one event. It holds copies: nothing in it is
// only valid during the listener's method. Which fields are set depends on the
// event; those that do not apply are zero. Read-only.
type Event struct {
	// Name is the name of the listener's method: "DNSStart".
	Name string
	// At is when the event was recorded.
	At time.Time
	// CallID is the call's; 0 for the events of a connection alone.
	CallID uint64

	// Method and URL are the request's: the application's (CallStart), the one on
	// the wire (RequestHeadersEnd), or the next one (FollowUpDecision, empty if
	// there is none). ProxySelectStart and ProxySelectEnd have a URL only. The
	// call has redacted URL.
	Method, URL string
	// Host is the name that is looked up.
	Host string
	// Addrs are the addresses of DNSEnd.
	Addrs []netip.Addr
	// Proxies are the choice of ProxySelectEnd.
	Proxies []proxy.Proxy

	// Addr is where a connection goes: of connect events and RouteDecision as
	// they give it, of a Connection its RemoteAddr.
	Addr string
	// Proxy is the way there, without a password.
	Proxy proxy.Proxy
	// Protocol is what the connection speaks; of SecureConnectEnd, what ALPN chose.
	Protocol string
	// TLSVersion is the version agreed on by SecureConnectEnd: "TLS 1.3".
	TLSVersion string
	// ConnectionID is the connection's.
	ConnectionID uint64

	// Code is the status of a response.
	Code int
	// Bytes is the size of the body that ended.
	Bytes int64
	// Err is the failure; of RetryDecision, the one decided on.
	Err error

	// Taken is the outcome of a decision: retried, followed, reused or taken.
	Taken bool
	// Why is the reason of a decision, or of what became of a connection.
	Why Reason
}

// IsDecision reports whether e is one of the four decisions. They say why a call
// does what its other events tell.
func (e Event) IsDecision() bool {
	switch e.Name {
	case "RetryDecision", "FollowUpDecision", "ReuseDecision", "RouteDecision":
		return true
	}
	return false
}

// String is e on one line, name first: "ConnectEnd call=3 addr=192.0.2.1:443
// protocol=h2". It shows the fields that are set, but not At; values with
// spaces, quotes or unprintable characters are quoted as in Go. Passwords and
// the call's secrets in URLs are masked; the text of Err is as the error gives it.
func (e Event) String() string {
	l := line{}
	l.WriteString(e.Name)
	l.number("call", e.CallID)
	l.number("conn", e.ConnectionID)
	l.text("method", e.Method)
	l.text("url", e.URL)
	l.text("host", e.Host)
	l.text("addrs", join(e.Addrs))
	l.text("proxies", join(e.Proxies))
	l.text("addr", e.Addr)
	if !e.Proxy.IsDirect() {
		l.text("proxy", e.Proxy.String())
	}
	l.text("protocol", e.Protocol)
	l.text("tls", e.TLSVersion)
	l.number("code", uint64(max(e.Code, 0)))
	switch e.Name {
	case "RequestBodyEnd", "ResponseBodyEnd":
		l.text("bytes", strconv.FormatInt(e.Bytes, 10))
	case "RetryDecision":
		l.text("retry", strconv.FormatBool(e.Taken))
	case "FollowUpDecision":
		l.text("followed", strconv.FormatBool(e.Taken))
	case "ReuseDecision":
		l.text("reused", strconv.FormatBool(e.Taken))
	case "RouteDecision":
		l.text("taken", strconv.FormatBool(e.Taken))
	}
	l.text("why", string(e.Why))
	if e.Err != nil {
		l.text("err", e.Err.Error())
	}
	return l.String()
}

// line builds " key=value" pairs, leaving out those that are zero.
type line struct{ strings.Builder }

func (l *line) number(key string, n uint64) {
	if n != 0 {
		l.text(key, strconv.FormatUint(n, 10))
	}
}

func (l *line) text(key, value string) {
	if value == "" {
		return
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
		value = strconv.Quote(value)
	}
	l.WriteByte(' ')
	l.WriteString(key)
	l.WriteByte('=')
	l.WriteString(value)
}

func join[T interface{ String() string }](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.String()
	}
	return strings.Join(texts, ",")
}
