package event_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/catena-http/catena/event"
)

// lookups tells what names are looked up and ignores everything else.
type lookups struct{ event.NopListener }

func (lookups) DNSEnd(c event.Call, host string, addrs []netip.Addr, err error) {
	fmt.Println(host, addrs, err)
}

func ExampleNopListener() {
	var l event.Listener = lookups{}

	// A client with catena.WithEventListener(l) sends events such as these.
	call := newCall(1, "https://example.com/")
	l.CallStart(call)
	l.DNSStart(call, "example.com")
	l.DNSEnd(call, "example.com", []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil)
	// Output: example.com [192.0.2.1] <nil>
}

func ExampleJoin() {
	recorder := event.NewRecorder()
	l := event.Join(lookups{}, nil, recorder)

	call := newCall(1, "https://example.com/")
	l.DNSStart(call, "example.com")
	l.DNSEnd(call, "example.com", nil, errors.New("no such host"))
	fmt.Println(recorder.Names())
	// Output:
	// example.com [] no such host
	// [DNSStart DNSEnd]
}

func ExampleJoinConnection() {
	first, second := event.NewConnectionRecorder(), event.NewConnectionRecorder()
	event.JoinConnection(first, second).Closed(fakeConnection{1}, event.ReasonIdleTimeout)
	fmt.Println(first.Names(), second.Names())
	// Output: [Closed] [Closed]
}

func ExampleRecorder() {
	recorder := event.NewRecorder()

	// A client with catena.WithEventListener(recorder) sends events such as these.
	call := newCall(1, "https://example.com/?token=abc")
	recorder.CallStart(call)
	recorder.ReuseDecision(call, fakeConnection{7}, true, event.ReasonPooled)
	recorder.ConnectionAcquired(call, fakeConnection{7})

	fmt.Println(recorder.Names())
	for _, e := range recorder.Events() {
		fmt.Println(e)
	}
	// Output:
	// [CallStart ConnectionAcquired]
	// CallStart call=1 method=GET url=https://example.com/?token=masked
	// ReuseDecision call=1 conn=7 addr=192.0.2.1:443 protocol=h2 reused=true why=pooled
	// ConnectionAcquired call=1 conn=7 addr=192.0.2.1:443 protocol=h2
}

func ExampleTimeoutError() {
	err := fmt.Errorf("get https://example.com/: %w", &event.TimeoutError{Step: event.StepRead, After: 10 * time.Second})

	var timeout *event.TimeoutError
	if errors.As(err, &timeout) {
		fmt.Println("too slow:", timeout.Step)
	}
	fmt.Println("a timeout of ours:", errors.Is(err, os.ErrDeadlineExceeded))
	fmt.Println("the caller's or the call's:", errors.Is(err, context.DeadlineExceeded))
	// Output:
	// too slow: read
	// a timeout of ours: true
	// the caller's or the call's: false
}
