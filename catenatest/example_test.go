package catenatest_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// A client on a network in memory. Nobody listens at the first of the host's
// addresses. For the same in virtual time see docs/testing.md.
func Example() {
	n := simnet.New()
	defer n.Close()
	n.AddHost("example.com", "192.0.2.1", "192.0.2.2")
	l, err := n.Listen("192.0.2.2:80")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })}
	go server.Serve(l)
	defer server.Close()

	calls := event.NewRecorder()
	client, err := catena.New(
		catena.WithDNS(n),
		catena.WithDialContext(n.DialContext),
		catena.WithProxy(proxy.Proxy{}), // whatever the environment says
		catena.WithEventListener(calls),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	resp, err := client.Get(context.Background(), "http://example.com/")
	if err != nil {
		log.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()

	fmt.Println(string(body))
	for _, e := range calls.Events() {
		if e.Name == "ConnectFailed" || e.Name == "ConnectEnd" {
			fmt.Println(e.Name, e.Addr)
		}
	}
	fmt.Println(catenatest.CheckEvents(calls.Events()))
	// Output:
	// hello
	// ConnectFailed 192.0.2.1:80
	// ConnectEnd 192.0.2.2:80
	// <nil>
}

// The error names the first breach of each call.
func ExampleCheckEvents() {
	fmt.Println(catenatest.CheckEvents([]event.Event{
		{Name: "CallStart", CallID: 1},
		{Name: "DNSStart", CallID: 1, Host: "example.com"},
		{Name: "CallEnd", CallID: 1},
	}))
	// Output: call 1: event 3, CallEnd call=1: [DNSStart] has no end yet
}

func ExampleCheckConnectionEvents() {
	connections := event.NewConnectionRecorder()
	n := simnet.New()
	defer n.Close()
	n.AddHost("example.com", "192.0.2.1")
	l, _ := n.Listen("192.0.2.1:80")
	server := &http.Server{Handler: http.NotFoundHandler()}
	go server.Serve(l)
	defer server.Close()
	client, _ := catena.New(
		catena.WithDNS(n),
		catena.WithDialContext(n.DialContext),
		catena.WithProxy(proxy.Proxy{}),
		catena.WithConnectionListener(connections),
	)
	resp, err := client.Head(context.Background(), "http://example.com/")
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()
	client.Close()

	fmt.Println(connections.Names())
	fmt.Println(catenatest.CheckConnectionEvents(connections.Events()))
	// Output:
	// [Connected Acquired Released NoNewExchanges Closed]
	// <nil>
}
