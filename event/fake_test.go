package event_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// fakeCall is a Call whose list of secrets is the query parameter "token".
type fakeCall struct {
	id  uint64
	req *http.Request
}

func (c fakeCall) ID() uint64                               { return c.id }
func (c fakeCall) Request() *http.Request                   { return c.req }
func (c fakeCall) RedactedHeader(h http.Header) http.Header { return h.Clone() }

func (c fakeCall) RedactedURL(u *url.URL) string {
	v := *u
	if q := v.Query(); q.Has("token") {
		q.Set("token", "masked")
		v.RawQuery = q.Encode()
	}
	return v.Redacted()
}

// newCall makes call id of a GET.
func newCall(id uint64, url string) fakeCall {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	return fakeCall{id, req}
}

type fakeConnection struct{ id uint64 }

func (c fakeConnection) ID() uint64          { return c.id }
func (c fakeConnection) LocalAddr() net.Addr { return nil }
func (c fakeConnection) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}
}
func (c fakeConnection) Proxy() proxy.Proxy        { return proxy.Proxy{} }
func (c fakeConnection) Protocol() string          { return "h2" }
func (c fakeConnection) TLS() *tls.ConnectionState { return nil }

// sample makes an argument for a parameter of type t, different for each n.
func sample(t reflect.Type, n int) reflect.Value {
	var v any
	switch t {
	case reflect.TypeFor[event.Call]():
		v = newCall(uint64(n), "https://user:hunter2@example.com/?token=hunter2")
	case reflect.TypeFor[event.Connection]():
		v = fakeConnection{uint64(n)}
	case reflect.TypeFor[*url.URL]():
		v = &url.URL{Scheme: "https", Host: "example.com", User: url.UserPassword("user", "hunter2")}
	case reflect.TypeFor[proxy.Proxy]():
		v = proxy.Proxy{Type: proxy.HTTP, Host: "proxy.test", User: url.UserPassword("user", "hunter2")}
	case reflect.TypeFor[[]proxy.Proxy]():
		v = []proxy.Proxy{{Type: proxy.SOCKS5, Host: "socks.test", User: url.UserPassword("user", "hunter2")}, {}}
	case reflect.TypeFor[[]netip.Addr]():
		v = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	case reflect.TypeFor[*tls.ConnectionState]():
		v = &tls.ConnectionState{Version: tls.VersionTLS13, NegotiatedProtocol: "h2"}
	case reflect.TypeFor[http.Header]():
		v = http.Header{"Link": {"hunter2"}}
	case reflect.TypeFor[*http.Request]():
		v = newCall(1, "https://user:hunter2@example.com/next?token=hunter2").req
	case reflect.TypeFor[*http.Response]():
		v = &http.Response{StatusCode: 200 + n}
	case reflect.TypeFor[error]():
		v = fmt.Errorf("failure %d", n)
	case reflect.TypeFor[bool]():
		v = true
	default: // string, int, int64, Reason
		if t.Kind() == reflect.String {
			v = fmt.Sprintf("text-%d", n)
		} else {
			v = 100 + n
		}
	}
	return reflect.ValueOf(v).Convert(t)
}

// samples makes the arguments of a method.
func samples(m reflect.Type) []reflect.Value {
	var args []reflect.Value
	for i := range m.NumIn() {
		args = append(args, sample(m.In(i), i+1))
	}
	return args
}
