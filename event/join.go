package event

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/catena-http/catena/proxy"
)

// Join makes one Listener of several. Each event goes to every one of them, in
// the order given, on the goroutine that sends it. A nil and a NopListener are
// dropped, the parts of a joined listener take its place; none left gives
// NopListener{}, one left is returned as it is.
//
// A listener that panics, panics through the joined one: those after it miss the
// event, and the panic goes on to whoever sent it.
func Join(listeners ...Listener) Listener {
	var all joined
	for _, l := range listeners {
		switch l := l.(type) {
		case nil, NopListener, *NopListener:
		case joined:
			all = append(all, l...)
		default:
			all = append(all, l)
		}
	}
	switch len(all) {
	case 0:
		return NopListener{}
	case 1:
		return all[0]
	}
	return all
}

// joined holds two listeners or more, never changed after Join. It does not
// embed NopListener: the compiler then asks for every method that Listener gets.
type joined []Listener

var _ Listener = joined(nil)

func (j joined) CallStart(c Call) {
	for _, l := range j {
		l.CallStart(c)
	}
}

func (j joined) DispatcherQueueStart(c Call) {
	for _, l := range j {
		l.DispatcherQueueStart(c)
	}
}

func (j joined) DispatcherQueueEnd(c Call) {
	for _, l := range j {
		l.DispatcherQueueEnd(c)
	}
}

func (j joined) ProxySelectStart(c Call, u *url.URL) {
	for _, l := range j {
		l.ProxySelectStart(c, u)
	}
}

func (j joined) ProxySelectEnd(c Call, u *url.URL, proxies []proxy.Proxy, err error) {
	for _, l := range j {
		l.ProxySelectEnd(c, u, proxies, err)
	}
}

func (j joined) DNSStart(c Call, host string) {
	for _, l := range j {
		l.DNSStart(c, host)
	}
}

func (j joined) DNSEnd(c Call, host string, addrs []netip.Addr, err error) {
	for _, l := range j {
		l.DNSEnd(c, host, addrs, err)
	}
}

func (j joined) ConnectStart(c Call, addr string, p proxy.Proxy) {
	for _, l := range j {
		l.ConnectStart(c, addr, p)
	}
}

func (j joined) SecureConnectStart(c Call) {
	for _, l := range j {
		l.SecureConnectStart(c)
	}
}

func (j joined) SecureConnectEnd(c Call, state *tls.ConnectionState, err error) {
	for _, l := range j {
		l.SecureConnectEnd(c, state, err)
	}
}

func (j joined) ConnectEnd(c Call, addr string, p proxy.Proxy, protocol string) {
	for _, l := range j {
		l.ConnectEnd(c, addr, p, protocol)
	}
}

func (j joined) ConnectFailed(c Call, addr string, p proxy.Proxy, protocol string, err error) {
	for _, l := range j {
		l.ConnectFailed(c, addr, p, protocol, err)
	}
}

func (j joined) ConnectionAcquired(c Call, conn Connection) {
	for _, l := range j {
		l.ConnectionAcquired(c, conn)
	}
}

func (j joined) ConnectionReleased(c Call, conn Connection) {
	for _, l := range j {
		l.ConnectionReleased(c, conn)
	}
}

func (j joined) RequestHeadersStart(c Call) {
	for _, l := range j {
		l.RequestHeadersStart(c)
	}
}

func (j joined) RequestHeadersEnd(c Call, req *http.Request) {
	for _, l := range j {
		l.RequestHeadersEnd(c, req)
	}
}

func (j joined) RequestBodyStart(c Call) {
	for _, l := range j {
		l.RequestBodyStart(c)
	}
}

func (j joined) RequestBodyEnd(c Call, n int64) {
	for _, l := range j {
		l.RequestBodyEnd(c, n)
	}
}

func (j joined) RequestFailed(c Call, err error) {
	for _, l := range j {
		l.RequestFailed(c, err)
	}
}

func (j joined) ResponseHeadersStart(c Call) {
	for _, l := range j {
		l.ResponseHeadersStart(c)
	}
}

func (j joined) InformationalResponse(c Call, code int, h http.Header) {
	for _, l := range j {
		l.InformationalResponse(c, code, h)
	}
}

func (j joined) ResponseHeadersEnd(c Call, resp *http.Response) {
	for _, l := range j {
		l.ResponseHeadersEnd(c, resp)
	}
}

func (j joined) ResponseBodyStart(c Call) {
	for _, l := range j {
		l.ResponseBodyStart(c)
	}
}

func (j joined) ResponseBodyEnd(c Call, n int64) {
	for _, l := range j {
		l.ResponseBodyEnd(c, n)
	}
}

func (j joined) ResponseFailed(c Call, err error) {
	for _, l := range j {
		l.ResponseFailed(c, err)
	}
}

func (j joined) CallEnd(c Call) {
	for _, l := range j {
		l.CallEnd(c)
	}
}

func (j joined) CallFailed(c Call, err error) {
	for _, l := range j {
		l.CallFailed(c, err)
	}
}

func (j joined) Canceled(c Call) {
	for _, l := range j {
		l.Canceled(c)
	}
}

func (j joined) RetryDecision(c Call, err error, retry bool, why Reason) {
	for _, l := range j {
		l.RetryDecision(c, err, retry, why)
	}
}

func (j joined) FollowUpDecision(c Call, resp *http.Response, next *http.Request, why Reason) {
	for _, l := range j {
		l.FollowUpDecision(c, resp, next, why)
	}
}

func (j joined) ReuseDecision(c Call, conn Connection, reused bool, why Reason) {
	for _, l := range j {
		l.ReuseDecision(c, conn, reused, why)
	}
}

func (j joined) RouteDecision(c Call, addr string, p proxy.Proxy, taken bool, why Reason) {
	for _, l := range j {
		l.RouteDecision(c, addr, p, taken, why)
	}
}

func (joined) sealedListener() {}
