package main

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// TestTimeline lays out every kind of event, connects that overlap among them.
func TestTimeline(t *testing.T) {
	p := proxy.Proxy{Type: proxy.HTTP, Host: "proxy.test", Port: 3128}
	const a, b = "192.0.2.1:3128", "192.0.2.2:3128"
	broken := errors.New("broken")
	events := []event.Event{
		{Name: "CallStart", Method: "POST", URL: "https://example.test/"},
		{Name: "DispatcherQueueStart"},
		{Name: "DispatcherQueueEnd"},
		{Name: "ReuseDecision", ConnectionID: 1, Why: event.ReasonUnhealthy},
		{Name: "ProxySelectStart", URL: "https://example.test/"},
		{Name: "ProxySelectEnd", URL: "https://example.test/", Proxies: []proxy.Proxy{p, {}}},
		{Name: "DNSStart", Host: "proxy.test"},
		{Name: "DNSEnd", Host: "proxy.test", Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}},
		{Name: "RouteDecision", Addr: a, Proxy: p, Taken: true, Why: event.ReasonNext},
		{Name: "ConnectStart", Addr: a, Proxy: p},
		{Name: "ConnectStart", Addr: b, Proxy: p},
		{Name: "ConnectFailed", Addr: a, Proxy: p, Err: broken},
		{Name: "SecureConnectStart"},
		{Name: "SecureConnectEnd", TLSVersion: "TLS 1.3", Protocol: "h2"},
		{Name: "ConnectEnd", Addr: b, Proxy: p, Protocol: "h2"},
		{Name: "ConnectionAcquired", ConnectionID: 2, Addr: b, Proxy: p, Protocol: "h2"},
		{Name: "RequestHeadersStart"},
		{Name: "RequestHeadersEnd", Method: "POST", URL: "https://example.test/"},
		{Name: "RequestBodyStart"},
		{Name: "RequestBodyEnd", Bytes: 0},
		{Name: "ResponseHeadersStart"},
		{Name: "InformationalResponse", Code: 103},
		{Name: "ResponseHeadersEnd", Code: 401},
		{Name: "ResponseBodyStart"},
		{Name: "ResponseBodyEnd", Bytes: 12},
		{Name: "FollowUpDecision", Taken: true, Why: event.ReasonAuthenticate, Code: 401, Method: "POST", URL: "https://example.test/"},
		{Name: "RequestHeadersStart"},
		{Name: "RequestFailed", Err: broken},
		{Name: "ResponseFailed", Err: broken},
		{Name: "RetryDecision", Why: event.ReasonNoMoreRoutes, Err: broken},
		{Name: "ConnectionReleased", ConnectionID: 2, Addr: b, Proxy: p, Protocol: "h2"},
		{Name: "CallFailed", Err: broken},
		{Name: "Canceled"},
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range events {
		events[i].At = start.Add(time.Duration(i*i) * time.Millisecond)
	}
	var plain, rooms strings.Builder
	writeTimeline(&plain, events, false)
	golden(t, "testdata/timeline.txt", plain.String())
	writeTimeline(&rooms, events, true)
	golden(t, "testdata/timeline_rooms.txt", rooms.String())
	for _, line := range strings.Split(plain.String(), "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %q ends with a space", line)
		}
	}

	var none strings.Builder
	if writeTimeline(&none, nil, true); none.Len() > 0 {
		t.Errorf("a call that did not begin shows %q", none.String())
	}
}

// TestTrace: each call has its timeline, a failed one too, and the bodies are
// all there is on standard output.
func TestTrace(t *testing.T) {
	s := serve(t, binary)
	got := catenaRun(t, "", "--trace", s.URL+"/a", "http://"+closedPort(t), s.URL+"/b")
	if got.code != exitConnect || got.stdout != "/a/b" {
		t.Errorf("exit code %d, output %q", got.code, got.stdout)
	}
	golden(t, "testdata/trace.txt", normal(got.stderr))
}
