package event_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

var (
	errRefused   = errors.New("refused")
	ignoreTime   = cmpopts.IgnoreFields(event.Event{}, "At")
	compareAddrs = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	compareUsers = cmp.AllowUnexported(url.Userinfo{})
	compareErrs  = cmpopts.EquateErrors()
)

// TestRecorderKeepsEveryEvent calls every method the interface has: each leaves
// one event of its name, with the call's number, and no secret.
func TestRecorderKeepsEveryEvent(t *testing.T) {
	for m := range exported[event.Listener]() {
		t.Run(m.Name, func(t *testing.T) {
			r := event.NewRecorder()
			reflect.ValueOf(r).MethodByName(m.Name).Call(samples(m.Type))
			wantOne(t, r.Events(), m.Name, 1, 2)
		})
	}
}

func TestConnectionRecorderKeepsEveryEvent(t *testing.T) {
	for m := range exported[event.ConnectionListener]() {
		t.Run(m.Name, func(t *testing.T) {
			r := event.NewConnectionRecorder()
			reflect.ValueOf(r).MethodByName(m.Name).Call(samples(m.Type))
			wantOne(t, r.Events(), m.Name, 2, 1)
		})
	}
}

// wantOne checks the single event that samples led to: where there is a call or
// a connection, its number is that of the parameter's place.
func wantOne(t *testing.T, events []event.Event, name string, call, conn uint64) {
	t.Helper()
	if len(events) != 1 || events[0].Name != name {
		t.Fatalf("recorded %v, want one %s", events, name)
	}
	e := events[0]
	if e.At.IsZero() {
		t.Error("At is not set")
	}
	if e.CallID == 0 && e.ConnectionID == 0 {
		t.Errorf("%v names neither a call nor a connection", e)
	}
	if e.CallID != 0 && e.CallID != call {
		t.Errorf("CallID is %d, want %d", e.CallID, call)
	}
	if e.ConnectionID != 0 && e.ConnectionID != conn {
		t.Errorf("ConnectionID is %d, want %d", e.ConnectionID, conn)
	}
	for _, s := range []string{e.String(), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e)} {
		if strings.Contains(s, "hunter2") {
			t.Errorf("a secret is shown: %s", s)
		}
		if strings.Contains(s, "\n") {
			t.Errorf("more than one line: %s", s)
		}
	}
	for _, p := range append(e.Proxies, e.Proxy) {
		if _, has := p.User.Password(); has {
			t.Errorf("the password of %v is kept", p)
		}
	}
}

// recorded lists what is kept of each event, and its line.
var recorded = []struct {
	name string
	send func(l event.Listener, c event.Call)
	want event.Event
	line string
}{
	{
		"CallStart",
		func(l event.Listener, c event.Call) { l.CallStart(c) },
		event.Event{Method: "GET", URL: "http://example.com/?token=masked"},
		"CallStart call=7 method=GET url=http://example.com/?token=masked",
	},
	{
		"ProxySelectEnd",
		func(l event.Listener, c event.Call) {
			u := &url.URL{Scheme: "http", Host: "example.com", Path: "/"}
			l.ProxySelectEnd(c, u, []proxy.Proxy{{Type: proxy.HTTP, Host: "proxy.test", User: url.UserPassword("me", "hunter2")}, {}}, nil)
		},
		event.Event{URL: "http://example.com/", Proxies: []proxy.Proxy{{Type: proxy.HTTP, Host: "proxy.test", User: url.User("me")}, {}}},
		"ProxySelectEnd call=7 url=http://example.com/ proxies=http://me@proxy.test:80,direct",
	},
	{
		"DNSEnd",
		func(l event.Listener, c event.Call) {
			l.DNSEnd(c, "example.com", []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}, nil)
		},
		event.Event{Host: "example.com", Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}},
		"DNSEnd call=7 host=example.com addrs=192.0.2.1,2001:db8::1",
	},
	{
		"ConnectFailed",
		func(l event.Listener, c event.Call) {
			l.ConnectFailed(c, "192.0.2.9:1080", proxy.Proxy{Type: proxy.SOCKS5, Host: "socks.test"}, "", fmt.Errorf("dial: %w", errRefused))
		},
		event.Event{Addr: "192.0.2.9:1080", Proxy: proxy.Proxy{Type: proxy.SOCKS5, Host: "socks.test"}, Err: errRefused},
		`ConnectFailed call=7 addr=192.0.2.9:1080 proxy=socks5://socks.test:1080 err="dial: refused"`,
	},
	{
		"SecureConnectEnd",
		func(l event.Listener, c event.Call) { l.SecureConnectEnd(c, nil, errRefused) },
		event.Event{Err: errRefused},
		"SecureConnectEnd call=7 err=refused",
	},
	{
		"ConnectionAcquired",
		func(l event.Listener, c event.Call) { l.ConnectionAcquired(c, fakeConnection{4}) },
		event.Event{ConnectionID: 4, Addr: "192.0.2.1:443", Protocol: "h2"},
		"ConnectionAcquired call=7 conn=4 addr=192.0.2.1:443 protocol=h2",
	},
	{
		"ResponseBodyEnd",
		func(l event.Listener, c event.Call) { l.ResponseBodyEnd(c, 0) },
		event.Event{},
		"ResponseBodyEnd call=7 bytes=0",
	},
	{
		"InformationalResponse",
		func(l event.Listener, c event.Call) {
			l.InformationalResponse(c, 103, http.Header{"Link": {"</a.css>; rel=preload"}})
		},
		event.Event{Code: 103},
		"InformationalResponse call=7 code=103",
	},
	{
		"CallFailed",
		func(l event.Listener, c event.Call) { l.CallFailed(c, errors.New("two\nlines of \"text\"")) },
		event.Event{Err: cmpopts.AnyError},
		`CallFailed call=7 err="two\nlines of \"text\""`,
	},
	{
		"RetryDecision",
		func(l event.Listener, c event.Call) { l.RetryDecision(c, errRefused, false, event.ReasonNoMoreRoutes) },
		event.Event{Err: errRefused, Why: event.ReasonNoMoreRoutes},
		"RetryDecision call=7 retry=false why=no-more-routes err=refused",
	},
	{
		"FollowUpDecision",
		func(l event.Listener, c event.Call) {
			next := newCall(1, "https://me:hunter2@example.com/b").req
			l.FollowUpDecision(c, &http.Response{StatusCode: 302}, next, event.ReasonRedirect)
		},
		event.Event{Method: "GET", URL: "https://me:xxxxx@example.com/b", Code: 302, Taken: true, Why: event.ReasonRedirect},
		"FollowUpDecision call=7 method=GET url=https://me:xxxxx@example.com/b code=302 followed=true why=redirect",
	},
	{
		"RouteDecision",
		func(l event.Listener, c event.Call) {
			l.RouteDecision(c, "192.0.2.1:80", proxy.Proxy{}, true, event.ReasonNext)
		},
		event.Event{Addr: "192.0.2.1:80", Taken: true, Why: event.ReasonNext},
		"RouteDecision call=7 addr=192.0.2.1:80 taken=true why=next",
	},
}

func TestRecorderEvents(t *testing.T) {
	c := newCall(7, "http://example.com/?token=hunter2")
	for _, test := range recorded {
		t.Run(test.name, func(t *testing.T) {
			r := event.NewRecorder()
			test.send(r, c)
			want := test.want
			want.Name, want.CallID = test.name, 7
			got := r.Events()[0]
			if diff := cmp.Diff(want, got, ignoreTime, compareAddrs, compareUsers, compareErrs); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if got.String() != test.line {
				t.Errorf("line\n%s\nwant\n%s", got, test.line)
			}
		})
	}
}

func TestRecorderNamesLeaveDecisionsOut(t *testing.T) {
	r := event.NewRecorder()
	var want []string
	for m := range exported[event.Listener]() {
		reflect.ValueOf(r).MethodByName(m.Name).Call(samples(m.Type))
		if !strings.HasSuffix(m.Name, "Decision") {
			want = append(want, m.Name)
		}
	}
	if diff := cmp.Diff(want, r.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	r.Reset()
	if got := r.Names(); len(got) != 0 {
		t.Errorf("after Reset: %v", got)
	}
}

// TestRecorderKeepsCopies changes what a method was given after it returned.
func TestRecorderKeepsCopies(t *testing.T) {
	r := event.NewRecorder()
	c := newCall(7, "http://example.com/")
	addrs := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	proxies := []proxy.Proxy{{Type: proxy.HTTP, Host: "proxy.test"}}
	req := newCall(1, "http://example.com/a").req
	r.DNSEnd(c, "example.com", addrs, nil)
	r.ProxySelectEnd(c, req.URL, proxies, nil)
	r.RequestHeadersEnd(c, req)
	before := fmt.Sprint(r.Events())
	addrs[0], proxies[0], req.URL.Path, req.Method = netip.Addr{}, proxy.Proxy{}, "/changed", "PUT"
	r.Events()[0] = event.Event{}
	if after := fmt.Sprint(r.Events()); after != before {
		t.Errorf("the events changed from\n%s\nto\n%s", before, after)
	}
}

func TestRecorderServesManyCalls(t *testing.T) {
	r := event.NewRecorder()
	var calls sync.WaitGroup
	for id := range uint64(8) {
		calls.Go(func() {
			c := newCall(id+1, "http://example.com/")
			for range 50 {
				r.CallStart(c)
				r.CallEnd(c)
			}
		})
	}
	calls.Wait()
	events := r.Events()
	if len(events) != 800 {
		t.Errorf("recorded %d events, want 800", len(events))
	}
	for i := 1; i < len(events); i++ {
		if events[i].At.Before(events[i-1].At) {
			t.Fatalf("event %d is earlier than the one before it", i)
		}
	}
}
