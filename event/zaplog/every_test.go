package zaplog_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/event/zaplog"
)

// everyEvent lists the events with what they send; those without a line of their
// own are the starts.
var everyEvent = map[string]func(l event.Listener, c event.Call){
	"CallStart":             func(l event.Listener, c event.Call) { l.CallStart(c) },
	"DispatcherQueueStart":  func(l event.Listener, c event.Call) { l.DispatcherQueueStart(c) },
	"DispatcherQueueEnd":    func(l event.Listener, c event.Call) { l.DispatcherQueueEnd(c) },
	"ProxySelectStart":      func(l event.Listener, c event.Call) { l.ProxySelectStart(c, c.Request().URL) },
	"ProxySelectEnd":        func(l event.Listener, c event.Call) { l.ProxySelectEnd(c, c.Request().URL, nil, errEvery) },
	"DNSStart":              func(l event.Listener, c event.Call) { l.DNSStart(c, "a.test") },
	"DNSEnd":                func(l event.Listener, c event.Call) { l.DNSEnd(c, "a.test", nil, errEvery) },
	"ConnectStart":          func(l event.Listener, c event.Call) { l.ConnectStart(c, "a:1", direct) },
	"SecureConnectStart":    func(l event.Listener, c event.Call) { l.SecureConnectStart(c) },
	"SecureConnectEnd":      func(l event.Listener, c event.Call) { l.SecureConnectEnd(c, nil, errEvery) },
	"ConnectEnd":            func(l event.Listener, c event.Call) { l.ConnectEnd(c, "a:1", direct, "h2") },
	"ConnectFailed":         func(l event.Listener, c event.Call) { l.ConnectFailed(c, "a:1", direct, "", errEvery) },
	"ConnectionAcquired":    func(l event.Listener, c event.Call) { l.ConnectionAcquired(c, everyConn) },
	"ConnectionReleased":    func(l event.Listener, c event.Call) { l.ConnectionReleased(c, everyConn) },
	"RequestHeadersStart":   func(l event.Listener, c event.Call) { l.RequestHeadersStart(c) },
	"RequestHeadersEnd":     func(l event.Listener, c event.Call) { l.RequestHeadersEnd(c, c.Request()) },
	"RequestBodyStart":      func(l event.Listener, c event.Call) { l.RequestBodyStart(c) },
	"RequestBodyEnd":        func(l event.Listener, c event.Call) { l.RequestBodyEnd(c, 1) },
	"RequestFailed":         func(l event.Listener, c event.Call) { l.RequestFailed(c, errEvery) },
	"ResponseHeadersStart":  func(l event.Listener, c event.Call) { l.ResponseHeadersStart(c) },
	"InformationalResponse": func(l event.Listener, c event.Call) { l.InformationalResponse(c, 103, nil) },
	"ResponseHeadersEnd":    func(l event.Listener, c event.Call) { l.ResponseHeadersEnd(c, everyResponse) },
	"ResponseBodyStart":     func(l event.Listener, c event.Call) { l.ResponseBodyStart(c) },
	"ResponseBodyEnd":       func(l event.Listener, c event.Call) { l.ResponseBodyEnd(c, 1) },
	"ResponseFailed":        func(l event.Listener, c event.Call) { l.ResponseFailed(c, errEvery) },
	"RetryDecision":         func(l event.Listener, c event.Call) { l.RetryDecision(c, errEvery, true, event.ReasonNextRoute) },
	"FollowUpDecision":      func(l event.Listener, c event.Call) { l.FollowUpDecision(c, everyResponse, nil, event.ReasonFinal) },
	"ReuseDecision":         func(l event.Listener, c event.Call) { l.ReuseDecision(c, everyConn, true, event.ReasonPooled) },
	"RouteDecision":         func(l event.Listener, c event.Call) { l.RouteDecision(c, "a:1", direct, true, event.ReasonNext) },
	"Canceled":              func(l event.Listener, c event.Call) { l.Canceled(c) },
	"CallEnd":               func(l event.Listener, c event.Call) { l.CallEnd(c) },
	"CallFailed":            func(l event.Listener, c event.Call) { l.CallFailed(c, errEvery) },
}

var (
	errEvery                       = errors.New("broken")
	everyConn     event.Connection = fakeConnection{4}
	everyResponse                  = &http.Response{StatusCode: 200}
)

func TestEveryEventIsLogged(t *testing.T) {
	listener := reflect.TypeFor[event.Listener]()
	for i := range listener.NumMethod() {
		m := listener.Method(i)
		if !m.IsExported() {
			continue
		}
		send := everyEvent[m.Name]
		if send == nil {
			t.Errorf("%s is not tested", m.Name)
			continue
		}
		want := 1
		if strings.HasSuffix(m.Name, "Start") && m.Name != "CallStart" {
			want = 0
		}
		l, out := logger(zap.DebugLevel)
		send(zaplog.New(l), newCall(1))
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("%s: %d lines, want %d:\n%s", m.Name, got, want, out)
		}
		if strings.Contains(out.String(), "hunter2") {
			t.Errorf("%s shows a secret:\n%s", m.Name, out)
		}
	}
}

// TestLevelsThatAreOffCostNothing: neither a line nor what is remembered for it.
func TestLevelsThatAreOffCostNothing(t *testing.T) {
	var c event.Call = newCall(1)
	off, _ := logger(zap.ErrorLevel)
	warn, _ := logger(zap.WarnLevel)
	silent, warning := zaplog.New(off), zaplog.New(warn)
	state := &tls.ConnectionState{}
	warning.CallStart(c)
	for name, send := range everyEvent {
		if n := testing.AllocsPerRun(100, func() { send(silent, c) }); n > 0 {
			t.Errorf("%s costs %v allocations though nothing is logged", name, n)
		}
		if strings.HasPrefix(name, "Call") || strings.HasSuffix(name, "Failed") || name == "RetryDecision" || name == "ConnectStart" {
			continue // lines, or state
		}
		if n := testing.AllocsPerRun(100, func() {
			switch name {
			case "ProxySelectEnd":
				warning.ProxySelectEnd(c, c.Request().URL, nil, nil)
			case "DNSEnd":
				warning.DNSEnd(c, "a.test", nil, nil)
			case "SecureConnectEnd":
				warning.SecureConnectEnd(c, state, nil)
			default:
				send(warning, c)
			}
		}); n > 0 {
			t.Errorf("%s costs %v allocations though only warnings are logged", name, n)
		}
	}
}
