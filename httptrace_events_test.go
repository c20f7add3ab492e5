package catena

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// TestHooksAtFedEvents covers what a server on loopback does not do.
func TestHooksAtFedEvents(t *testing.T) {
	const one, two = "192.0.2.1:443", "192.0.2.2:443"
	broken := errors.New("broken")
	direct := proxy.Proxy{}
	get := requestTo("https://host.test/")
	for _, test := range []struct {
		name string
		feed func(l event.Listener, c *Call)
		want []string
	}{
		{"lookup and failing over", func(l event.Listener, c *Call) {
			l.ProxySelectStart(c, get.URL)
			l.ProxySelectEnd(c, get.URL, []proxy.Proxy{direct}, nil)
			l.DNSStart(c, "host.test")
			l.DNSEnd(c, "host.test", []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1%lo")}, nil)
			l.ConnectStart(c, one, direct)
			l.ConnectFailed(c, one, direct, "", broken)
			l.RetryDecision(c, broken, true, event.ReasonNextRoute)
			l.ConnectStart(c, two, direct)
			l.SecureConnectStart(c)
			l.SecureConnectEnd(c, nil, broken)
			l.ConnectFailed(c, two, direct, "", broken)
		}, []string{
			"GetConn host.test:443", "DNSStart host.test", "DNSDone [{192.0.2.1 } {fe80::1 lo}] <nil>",
			"ConnectStart tcp " + one, "ConnectDone tcp " + one + " broken",
			"ConnectStart tcp " + two, "ConnectDone tcp " + two + " <nil>",
			"TLSHandshakeStart", "TLSHandshakeDone complete=false broken",
		}},
		{"failed lookup", func(l event.Listener, c *Call) {
			l.DNSStart(c, "host.test")
			l.DNSEnd(c, "host.test", nil, broken)
		}, []string{"GetConn host.test:443", "DNSStart host.test", "DNSDone [] broken"}},
		{"racing connects", func(l event.Listener, c *Call) {
			l.ConnectStart(c, one, direct)
			l.ConnectStart(c, two, direct)
			l.SecureConnectStart(c)
			l.SecureConnectEnd(c, &tls.ConnectionState{HandshakeComplete: true}, nil)
			l.ConnectFailed(c, one, direct, "", context.Canceled)
			l.ConnectEnd(c, two, direct, "http/1.1")
		}, []string{
			"GetConn host.test:443", "ConnectStart tcp " + one, "ConnectStart tcp " + two,
			"TLSHandshakeStart", "TLSHandshakeDone complete=true <nil>",
			"ConnectDone tcp " + one + " context canceled", "ConnectDone tcp " + two + " <nil>",
		}},
		{"stale connection", func(l event.Listener, c *Call) {
			stale, fresh := &fakeConnection{id: 1}, &fakeConnection{id: 2}
			l.ReuseDecision(c, &fakeConnection{id: 3}, false, event.ReasonUnhealthy)
			l.ReuseDecision(c, stale, true, event.ReasonPooled)
			l.ConnectionAcquired(c, stale)
			l.RequestHeadersStart(c)
			l.RequestFailed(c, broken)
			l.ConnectionReleased(c, stale)
			l.ConnectStart(c, one, direct)
			l.ConnectEnd(c, one, direct, "http/1.1")
			l.ConnectionAcquired(c, fresh)
			l.RequestHeadersStart(c)
			l.RequestHeadersEnd(c, get)
			l.ResponseFailed(c, broken)
			l.ConnectionReleased(c, fresh)
		}, []string{
			"GetConn host.test:443", "GotConn reused=true idle=true", "WroteRequest broken",
			"GetConn host.test:443", "ConnectStart tcp " + one, "ConnectDone tcp " + one + " <nil>",
			"GotConn reused=false idle=false", "WroteHeaders", "WroteRequest <nil>",
		}},
		{"lost to another connection", func(l event.Listener, c *Call) {
			other := &fakeConnection{id: 1, protocol: "h2"}
			l.ConnectStart(c, one, direct)
			l.ConnectEnd(c, one, direct, "h2")
			l.ReuseDecision(c, other, true, event.ReasonDuplicate)
			l.ConnectionAcquired(c, other)
		}, []string{
			"GetConn host.test:443", "ConnectStart tcp " + one, "ConnectDone tcp " + one + " <nil>",
			"GotConn reused=true idle=false",
		}},
		{"close asked for", func(l event.Listener, c *Call) {
			conn, closing := &fakeConnection{id: 1}, requestTo("https://host.test/")
			closing.Close = true
			l.ConnectionAcquired(c, conn)
			l.RequestHeadersStart(c)
			l.RequestHeadersEnd(c, closing)
			l.ResponseHeadersStart(c)
			l.ResponseHeadersEnd(c, &http.Response{StatusCode: 200})
			l.ConnectionReleased(c, conn)
		}, []string{
			"GetConn host.test:443", "GotConn reused=false idle=false", "WroteHeaders", "WroteRequest <nil>", "GotFirstResponseByte",
		}},
		{"another host", func(l event.Listener, c *Call) {
			first, second := &fakeConnection{id: 1}, &fakeConnection{id: 2}
			l.ConnectionAcquired(c, first)
			l.FollowUpDecision(c, &http.Response{}, requestTo("http://[::1]/"), event.ReasonRedirect)
			l.ReuseDecision(c, first, false, event.ReasonOtherHost)
			l.ConnectionReleased(c, first)
			l.ConnectionAcquired(c, second)
		}, []string{
			"GetConn host.test:443", "GotConn reused=false idle=false", "PutIdleConn <nil>",
			"GetConn [::1]:80", "GotConn reused=false idle=false",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, err := New()
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			call := client.NewCall(get)
			log := &hookLog{}
			test.feed(traceListener(httptrace.WithClientTrace(t.Context(), log.trace())), call)
			got, _ := log.take(nil)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("hooks (-want +got):\n%s", diff)
			}
			test.feed(traceListener(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{})), call) // skips all
		})
	}
}

type fakeConnection struct {
	event.Connection
	id       uint64
	protocol string
}

func (c *fakeConnection) Protocol() string {
	if c.protocol == "" {
		return route.HTTP1
	}
	return c.protocol
}

func TestNoTraceNoListener(t *testing.T) {
	if l := traceListener(t.Context()); l != nil {
		t.Errorf("there is a listener: %v", l)
	}
	if ctx := t.Context(); untraced(ctx) != ctx {
		t.Error("untraced wrapped a context without hooks")
	}
}

// TestNetDoesNotCallTheHooks is the guard of untraced against a package net that
// keeps its hooks elsewhere.
func TestNetDoesNotCallTheHooks(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	log := &hookLog{}
	traced := httptrace.WithClientTrace(t.Context(), log.trace())
	use := func(ctx context.Context) []string {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		net.DefaultResolver.LookupNetIP(ctx, "ip", "localhost")
		calls, _ := log.take(nil)
		return calls
	}
	if calls := use(traced); len(calls) == 0 {
		t.Error("package net calls no hooks: untraced is not needed any more")
	}
	if calls := use(untraced(traced)); len(calls) > 0 {
		t.Errorf("package net called %q", calls)
	}
	if httptrace.ContextClientTrace(untraced(traced)) == nil {
		t.Error("the trace is gone")
	}
	canceled, cancel := context.WithCancel(traced)
	cancel()
	if untraced(canceled).Err() == nil {
		t.Error("the context's end is gone")
	}
}

func TestHeadFieldsOfHTTP2(t *testing.T) {
	req := requestTo("https://host.test/a?b=c")
	req.Method, req.Body, req.ContentLength = "", io.NopCloser(strings.NewReader("body")), 4
	req.Header = http.Header{"X-B": {"1", "2"}, "Connection": {"close"}, "Content-Length": {"9"}, "Empty": nil}
	var got []string
	wroteFields(req, true, func(key string, values []string) { got = append(got, fmt.Sprintf("%s=%q", key, values)) })
	want := []string{
		`:authority=["host.test"]`, `:method=["GET"]`, `:path=["/a?b=c"]`, `:scheme=["https"]`,
		`content-length=["4"]`, `x-b=["1" "2"]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
