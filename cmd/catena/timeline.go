package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/catena-http/catena/event"
)

// writeTimeline prints the events of one call, one a line: when it came, counted
// from the call's start; how long the step took that it ends; its name, indented
// by what it is part of; and its details. rooms adds the part of the library
// that the event comes from.
func writeTimeline(w io.Writer, events []event.Event, rooms bool) {
	if len(events) == 0 {
		return
	}
	var b bytes.Buffer
	room := func(string) string { return "" }
	if rooms {
		room = func(name string) string { return fmt.Sprintf("  %-12s", name) }
	}
	fmt.Fprintf(&b, "%11s  %11s%s  event\n", "since start", "took", room("room"))
	t := timeline{begun: map[step]time.Time{}}
	for _, e := range events {
		took := ""
		if d, ended := t.follow(e); ended {
			took = milliseconds(d)
		}
		line := fmt.Sprintf("%11s  %11s%s  %-26s  %s", milliseconds(e.At.Sub(events[0].At)), took,
			room(t.room(e)), strings.Repeat("  ", depth(e))+e.Name, details(e))
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	w.Write(b.Bytes())
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// timeline follows the steps of a call.
type timeline struct {
	begun    map[step]time.Time
	sent     time.Time // when the last part of the request was
	protocol string    // of the connection held
	connects int       // that are under way
}

// step is what a Start and its End have in common.
type step struct{ name, addr, proxy string }

// endings are the events that end a step: its name, or what it begins with.
var endings = map[string]string{
	"DispatcherQueueEnd": "DispatcherQueueStart",
	"ProxySelectEnd":     "ProxySelectStart",
	"DNSEnd":             "DNSStart",
	"ConnectEnd":         "ConnectStart",
	"ConnectFailed":      "ConnectStart",
	"SecureConnectEnd":   "SecureConnectStart",
	"ConnectionReleased": "ConnectionAcquired",
	"RequestHeadersEnd":  "RequestHeadersStart",
	"RequestBodyEnd":     "RequestBodyStart",
	"ResponseHeadersEnd": "ResponseHeadersStart",
	"ResponseBodyEnd":    "ResponseBodyStart",
	"CallEnd":            "CallStart",
	"CallFailed":         "CallStart",
}

// follow notes e and returns how long the step took that it ends. The arrival of
// a response ends the wait for it.
func (t *timeline) follow(e event.Event) (time.Duration, bool) {
	switch e.Name {
	case "ConnectStart":
		t.connects++
	case "ConnectEnd", "ConnectFailed":
		t.connects--
	case "ConnectionAcquired":
		t.protocol = e.Protocol
	case "RequestHeadersEnd", "RequestBodyEnd", "RequestFailed":
		t.sent = e.At
	case "ResponseHeadersStart", "ResponseFailed":
		if sent := t.sent; !sent.IsZero() {
			t.sent = time.Time{}
			t.begun[step{name: e.Name}] = e.At
			return e.At.Sub(sent), true
		}
	}
	start, ends := endings[e.Name]
	if !ends {
		start = e.Name
	}
	s := step{name: start}
	if start == "ConnectStart" { // of which several may be under way
		s.addr, s.proxy = e.Addr, e.Proxy.String()
	}
	if !ends {
		t.begun[s] = e.At
		return 0, false
	}
	began, known := t.begun[s]
	return e.At.Sub(began), known
}

// depth is how far an event is indented.
func depth(e event.Event) int {
	switch {
	case strings.HasPrefix(e.Name, "Call"), e.Name == "Canceled":
		return 0
	case strings.HasPrefix(e.Name, "Re") && !e.IsDecision(), strings.HasPrefix(e.Name, "Secure"),
		e.Name == "InformationalResponse":
		return 2
	}
	return 1
}

// room is the part of the library that an event comes from.
func (t *timeline) room(e event.Event) string {
	switch e.Name {
	case "ProxySelectStart", "ProxySelectEnd", "DNSStart", "DNSEnd", "RouteDecision":
		return "route"
	case "ConnectStart", "ConnectEnd", "ConnectFailed", "SecureConnectStart", "SecureConnectEnd",
		"ConnectionAcquired", "ConnectionReleased", "ReuseDecision":
		return "connection"
	case "FollowUpDecision":
		if t.connects > 0 { // of a CONNECT
			return "connection"
		}
		return "interceptors"
	case "RetryDecision":
		return "interceptors"
	}
	if depth(e) == 0 || strings.HasPrefix(e.Name, "Dispatcher") {
		return "catena"
	}
	if t.protocol == "http/1.1" {
		return "http1"
	}
	return "http2"
}

// details is what there is to say of e, beside its name.
func details(e event.Event) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.IsDecision() {
		add("%s, %s:", verdict(e), e.Why)
	}
	if e.Code != 0 {
		add("status %d", e.Code)
	}
	if e.ConnectionID != 0 {
		add("connection %d", e.ConnectionID)
	}
	if e.Method != "" || e.URL != "" {
		add("%s", strings.TrimSpace(e.Method+" "+e.URL))
	}
	if e.Host != "" {
		add("%s", e.Host)
	}
	for _, a := range e.Addrs {
		add("%s", a)
	}
	for _, p := range e.Proxies {
		add("%s", p)
	}
	if e.Addr != "" {
		add("%s", e.Addr)
	}
	if !e.Proxy.IsDirect() {
		add("proxy %s", e.Proxy)
	}
	if e.TLSVersion != "" {
		add("%s", e.TLSVersion)
	}
	if e.Protocol != "" {
		add("%s", e.Protocol)
	}
	if strings.HasSuffix(e.Name, "BodyEnd") {
		add("%d bytes", e.Bytes)
	}
	if e.Err != nil {
		add("%v", e.Err)
	}
	return strings.TrimSuffix(strings.Join(parts, " "), ":")
}

// verdict is a decision in a word or two.
func verdict(e event.Event) string {
	words := map[string][2]string{
		"RetryDecision":    {"not again", "again"},
		"FollowUpDecision": {"not followed", "followed"},
		"ReuseDecision":    {"passed over", "taken"},
		"RouteDecision":    {"not taken", "taken"},
	}[e.Name]
	if e.Taken {
		return words[1]
	}
	return words[0]
}
