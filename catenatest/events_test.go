package catenatest_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Pieces of timelines.
const (
	lookup = "ProxySelectStart ProxySelectEnd DNSStart DNSEnd "
	dial   = lookup + "ConnectStart ConnectEnd ConnectionAcquired "
	tls    = lookup + "ConnectStart SecureConnectStart SecureConnectEnd ConnectEnd ConnectionAcquired "
	req    = "RequestHeadersStart RequestHeadersEnd "
	resp   = "ResponseHeadersStart ResponseHeadersEnd "
	body   = "ResponseBodyStart ResponseBodyEnd "
	get    = req + resp + "FollowUpDecision " + body
	bye    = "ConnectionReleased CallEnd"
)

// timeline makes events of names. A name may be followed by a slash and the
// address of a connect, the number of a connection or the code of a response.
// What a rule asks for besides is filled in.
func timeline(names string) []event.Event {
	var events []event.Event
	for word := range strings.FieldsSeq(names) {
		name, detail, _ := strings.Cut(word, "/")
		e := event.Event{Name: name, CallID: 1}
		switch {
		case strings.HasPrefix(name, "Connection"):
			e.ConnectionID = 4
			fmt.Sscan(detail, &e.ConnectionID)
		case strings.HasPrefix(name, "Connect"):
			e.Addr = detail
		case name == "ResponseHeadersEnd":
			fmt.Sscan(detail, &e.Code)
		case e.IsDecision():
			e.Why = event.ReasonFinal
		}
		if strings.HasSuffix(name, "Failed") && detail != "nil" {
			e.Err = errors.New("broken")
		}
		events = append(events, e)
	}
	return events
}

func TestCheckEventsAccepts(t *testing.T) {
	tests := map[string]string{
		"nothing":              "",
		"new connection":       "CallStart " + dial + get + bye,
		"TLS":                  "CallStart " + tls + get + bye,
		"pooled":               "CallStart ConnectionAcquired " + get + bye,
		"request body":         "CallStart " + dial + req + "RequestBodyStart RequestBodyEnd " + resp + body + bye,
		"short circuit":        "CallStart CallEnd",
		"invalid":              "CallStart CallFailed",
		"never executed":       "Canceled",
		"canceled before":      "Canceled CallStart CallFailed",
		"canceled after":       "CallStart CallEnd Canceled",
		"queued":               "CallStart DispatcherQueueStart DispatcherQueueEnd " + dial + get + bye,
		"canceled in queue":    "CallStart DispatcherQueueStart Canceled DispatcherQueueEnd CallFailed",
		"canceled in a lookup": "CallStart ProxySelectStart ProxySelectEnd DNSStart Canceled DNSEnd CallFailed",
		"lookup fails":         "CallStart " + lookup + "RetryDecision CallFailed",
		"connect fails":        "CallStart " + lookup + "ConnectStart ConnectFailed RetryDecision CallFailed",
		"handshake fails, next address": "CallStart " + lookup + "ConnectStart/a SecureConnectStart SecureConnectEnd ConnectFailed/a " +
			"ConnectStart/b SecureConnectStart SecureConnectEnd ConnectEnd/b ConnectionAcquired " + get + bye,
		"race": "CallStart " + lookup + "ConnectStart/a ConnectStart/b SecureConnectStart ConnectFailed/a " +
			"SecureConnectEnd ConnectEnd/b ConnectionAcquired " + get + bye,
		"lookup during a race": "CallStart " + lookup + "ConnectStart/a DNSStart DNSEnd ConnectStart/b ConnectEnd/b ConnectFailed/a " +
			"ConnectionAcquired " + get + bye,
		"HTTPS proxy": "CallStart " + lookup + "ConnectStart SecureConnectStart SecureConnectEnd SecureConnectStart SecureConnectEnd " +
			"ConnectEnd ConnectionAcquired " + get + bye,
		"tunnel closed by 407": "CallStart " + lookup + "ConnectStart ConnectEnd ConnectStart ConnectEnd ConnectionAcquired " + get + bye,
		"read timeout":         "CallStart " + dial + req + "ResponseFailed RetryDecision ConnectionReleased CallFailed",
		"body cut":             "CallStart " + dial + req + resp + "ResponseBodyStart ResponseFailed ConnectionReleased CallFailed",
		"body cut at once":     "CallStart " + dial + req + resp + "ResponseFailed ConnectionReleased CallFailed",
		"upload fails": "CallStart " + dial + req + "RequestBodyStart RequestFailed ResponseFailed RetryDecision " +
			"ConnectionReleased CallFailed",
		"head fails":           "CallStart " + dial + "RequestHeadersStart RequestFailed ConnectionReleased CallFailed",
		"server stops reading": "CallStart " + dial + req + "RequestBodyStart RequestFailed " + resp + body + bye,
		"stale connection": "CallStart ConnectionAcquired/3 " + req + "ResponseFailed RetryDecision ConnectionReleased/3 " +
			"ConnectStart ConnectEnd ConnectionAcquired " + get + bye,
		"redirect, same connection": "CallStart " + dial + get + "FollowUpDecision " + get + bye,
		"redirect elsewhere": "CallStart " + dial + get + "ConnectionReleased " +
			strings.ReplaceAll(dial, "Acquired", "Acquired/5") + get + "ConnectionReleased/5 CallEnd",
		"100-continue": "CallStart " + dial + req + "ResponseHeadersStart InformationalResponse RequestBodyStart RequestBodyEnd " +
			"ResponseHeadersEnd " + body + bye,
		"duplex": "CallStart " + tls + req + "RequestBodyStart " + resp + body + "RequestBodyEnd " + bye,
		"upgrade with a body": "CallStart " + dial + req + "RequestBodyStart RequestBodyEnd ResponseHeadersStart ResponseHeadersEnd/101 " +
			"RequestBodyStart " + body + "RequestBodyEnd " + bye,
		"network interceptor fails": "CallStart " + dial + "ConnectionReleased CallFailed",
	}
	for name, names := range tests {
		t.Run(name, func(t *testing.T) {
			if err := catenatest.CheckEvents(timeline(names)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckEventsRefuses(t *testing.T) {
	tests := []struct{ name, names, want string }{
		{"no end", "CallStart", "neither CallEnd nor CallFailed"},
		{"two ends", "CallStart CallEnd CallFailed", "the call was over"},
		{"after the end", "CallStart CallEnd RetryDecision", "the call was over"},
		{"canceled twice", "Canceled CallStart Canceled", "canceled before"},
		{"no start", "CallEnd", "CallStart is the first"},
		{"decision first", "RouteDecision", "CallStart is the first"},
		{"two starts", "CallStart CallStart", "CallStart is the first"},
		{"late queue", "CallStart " + lookup + "DispatcherQueueStart", "waits before"},
		{"work in the queue", "CallStart DispatcherQueueStart DNSStart", "follows DispatcherQueueStart"},
		{"end in the queue", "CallStart DispatcherQueueStart CallFailed", "follows DispatcherQueueStart"},
		{"never queued", "CallStart DispatcherQueueEnd", "follows DispatcherQueueStart"},
		{"unended selection", "CallStart ProxySelectStart CallFailed", "[ProxySelectStart] has no end"},
		{"unended lookup", "CallStart DNSStart CallFailed", "[DNSStart] has no end"},
		{"lookup ended twice", "CallStart DNSStart DNSEnd DNSEnd", "no DNSStart with the same"},
		{"unended connect", "CallStart ConnectStart/a CallFailed", "[ConnectStart] has no end"},
		{"other address", "CallStart ConnectStart/a ConnectEnd/b", "no ConnectStart with the same"},
		{"ended and failed", "CallStart ConnectStart/a ConnectEnd/a ConnectFailed/a", "no ConnectStart with the same"},
		{"unended handshake", "CallStart ConnectStart SecureConnectStart ConnectFailed", "within an attempt"},
		{"handshake alone", "CallStart SecureConnectStart", "within an attempt"},
		{"handshake ended twice", "CallStart ConnectStart SecureConnectStart SecureConnectEnd SecureConnectEnd", "no SecureConnectStart"},
		{"loser ends late", "CallStart ConnectStart/a ConnectStart/b ConnectEnd/b ConnectionAcquired ConnectFailed/a", "[ConnectStart] has no end"},
		{"failure without error", "CallStart CallFailed/nil", "has an error"},
		{"connection not released", "CallStart ConnectionAcquired CallEnd", "was not released"},
		{"other connection released", "CallStart ConnectionAcquired/4 ConnectionReleased/5", "does not hold"},
		{"released twice", "CallStart ConnectionAcquired ConnectionReleased ConnectionReleased", "does not hold"},
		{"acquired twice", "CallStart ConnectionAcquired ConnectionAcquired", "holds connection 4"},
		{"connection without number", "CallStart ConnectionAcquired/0", "no number"},
		{"request on nothing", "CallStart RequestHeadersStart", "holds no connection"},
		{"response to nothing", "CallStart ConnectionAcquired ResponseHeadersStart", "no request was begun"},
		{"unended head", "CallStart ConnectionAcquired RequestHeadersStart ConnectionReleased", "the request has no end"},
		{"body before head", "CallStart ConnectionAcquired RequestHeadersStart RequestBodyStart", "head comes first"},
		{"body twice", "CallStart ConnectionAcquired " + req + "RequestBodyStart RequestBodyEnd RequestBodyStart", "may not begin"},
		{"body ended and failed", "CallStart ConnectionAcquired " + req + "RequestBodyStart RequestBodyEnd RequestFailed", "no part of the request"},
		{"request fails twice", "CallStart ConnectionAcquired " + req + "RequestBodyStart RequestFailed RequestFailed", "no part of the request"},
		{"body after failure", "CallStart ConnectionAcquired RequestHeadersStart RequestFailed RequestBodyStart", "may not begin"},
		{"upload goes on", "CallStart ConnectionAcquired " + req + "RequestBodyStart " + resp + body + "ConnectionReleased", "the request has no end"},
		{"unasked response", "CallStart ConnectionAcquired RequestHeadersStart ResponseHeadersStart", "may not begin"},
		{"interim after head", "CallStart ConnectionAcquired " + req + resp + "InformationalResponse", "interim response"},
		{"two heads", "CallStart ConnectionAcquired " + req + resp + "ResponseHeadersStart", "may not begin"},
		{"body without head", "CallStart ConnectionAcquired " + req + "ResponseBodyStart", "may not begin"},
		{"no response", "CallStart ConnectionAcquired " + req + "ConnectionReleased", "neither failed nor"},
		{"no body", "CallStart ConnectionAcquired " + req + resp + "ConnectionReleased", "neither failed nor"},
		{"unended body", "CallStart ConnectionAcquired " + req + resp + "ResponseBodyStart ConnectionReleased", "the response has no end"},
		{"body ends twice", "CallStart ConnectionAcquired " + req + resp + body + "ResponseBodyEnd", "start is not open"},
		{"fails after end", "CallStart ConnectionAcquired " + req + resp + body + "ResponseFailed", "the response had ended"},
		{"fails twice", "CallStart ConnectionAcquired " + req + "ResponseFailed ResponseFailed", "the response had ended"},
		{"response after failure", "CallStart ConnectionAcquired " + req + "ResponseFailed ResponseHeadersStart", "may not begin"},
		{"next on the unread", "CallStart ConnectionAcquired " + req + resp + "RequestHeadersStart", "neither failed nor"},
		{"late body", "CallStart ConnectionAcquired " + req + resp + "ConnectionReleased " + body, "neither failed nor"},
		{"unknown", "CallStart ConnectionAcquired " + req + "Lunch", "no such event"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := catenatest.CheckEvents(timeline(test.names))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestCheckEventsComparesProxies(t *testing.T) {
	events := timeline("CallStart ConnectStart ConnectFailed CallFailed")
	events[1].Proxy = proxy.Proxy{Type: proxy.HTTP, Host: "one.test"}
	events[2].Proxy = proxy.Proxy{Type: proxy.HTTP, Host: "two.test"}
	if catenatest.CheckEvents(events) == nil {
		t.Error("the attempt through one proxy was ended by another's")
	}
}

func TestCheckEventsWantsReasons(t *testing.T) {
	events := timeline("CallStart FollowUpDecision CallEnd")
	events[1].Why = ""
	if catenatest.CheckEvents(events) == nil {
		t.Error("a decision without a reason passed")
	}
}

// TestCheckEventsByCall mixes a call that is in order with two that are not.
func TestCheckEventsByCall(t *testing.T) {
	var mixed []event.Event
	for i, names := range []string{"CallStart DNSStart CallEnd", "CallStart CallEnd", "CallStart"} {
		for _, e := range timeline(names) {
			e.CallID = uint64(i + 1)
			mixed = append(mixed, e)
		}
	}
	err := catenatest.CheckEvents(mixed)
	want := "call 1: event 3, CallEnd call=1: [DNSStart] has no end yet\ncall 3: neither CallEnd nor CallFailed came"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestCheckKnowsEveryEvent: no event of the interfaces is unknown to the rules.
func TestCheckKnowsEveryEvent(t *testing.T) {
	for _, kind := range []struct {
		listener reflect.Type
		before   string
		check    func([]event.Event) error
	}{
		{reflect.TypeFor[event.Listener](), "CallStart ConnectionAcquired RequestHeadersStart ", catenatest.CheckEvents},
		{reflect.TypeFor[event.ConnectionListener](), "Connected ", catenatest.CheckConnectionEvents},
	} {
		for i := range kind.listener.NumMethod() {
			m := kind.listener.Method(i)
			if !m.IsExported() {
				continue
			}
			if err := kind.check(timeline(kind.before + m.Name)); err != nil && strings.Contains(err.Error(), "no such event") {
				t.Error(err)
			}
		}
	}
}

func TestCheckConnectionEvents(t *testing.T) {
	tests := []struct{ name, names, want string }{
		{"used twice", "Connected Acquired Released Acquired Released", ""},
		{"closed", "Connected Acquired NoNewExchanges Released Closed", ""},
		{"still used", "Connected Acquired", ""},
		{"shared", "Connected Acquired Acquired/2 Released Released/2", ""},
		{"never stood", "Closed/connect-failed", ""},
		{"closed twice", "Connected Closed Closed", "was closed"},
		{"not connected", "Acquired", "the first event of a connection is Connected"},
		{"closed first", "Closed", "begins with Connected"},
		{"connected twice", "Connected Connected", "the first event of a connection is Connected"},
		{"acquired twice", "Connected Acquired Acquired", "holds the connection already"},
		{"released twice", "Connected Acquired Released Released", "does not hold"},
		{"retired twice", "Connected NoNewExchanges NoNewExchanges", "came before"},
		{"closed in use", "Connected Acquired Closed", "have not released it: 1"},
		{"no reason", "Connected Closed/none", "no reason"},
		{"unknown", "Connected Lunch", "no such event"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var events []event.Event
			for word := range strings.FieldsSeq(test.names) {
				name, detail, _ := strings.Cut(word, "/")
				e := event.Event{Name: name, ConnectionID: 4, CallID: 1, Why: event.ReasonIdleTimeout}
				fmt.Sscan(detail, &e.CallID)
				switch detail {
				case "none":
					e.Why = ""
				case "connect-failed":
					e.Why = event.ReasonConnectFailed
				}
				events = append(events, e)
			}
			err := catenatest.CheckConnectionEvents(events)
			if test.want == "" && err != nil {
				t.Error(err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
