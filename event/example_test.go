package event_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// shop is shop.example, a server on a network in memory, and a client of it. end
// closes all of it.
func shop(opts ...catena.Option) (client *catena.Client, end func()) {
	n := simnet.New()
	n.AddHost("shop.example", "192.0.2.1")
	l, err := n.Listen("192.0.2.1:80")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
	})}
	go server.Serve(l)
	opts = append(opts, catena.WithDNS(n), catena.WithDialContext(n.DialContext), catena.WithProxy(proxy.Proxy{}))
	if client, err = catena.New(opts...); err != nil {
		log.Fatal(err)
	}
	return client, func() { client.Close(); server.Close(); n.Close() }
}

// get calls url and throws the response away.
func get(client *catena.Client, url string) {
	resp, err := client.Get(context.Background(), url)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
}

// lookups tells what names are looked up and ignores everything else.
type lookups struct{ event.NopListener }

func (lookups) DNSEnd(c event.Call, host string, addrs []netip.Addr, err error) {
	fmt.Println(host, addrs, err)
}

func ExampleNopListener() {
	client, end := shop(catena.WithEventListener(lookups{}))
	defer end()
	get(client, "http://shop.example/")
	get(client, "http://shop.example/") // by the same connection
	// Output: shop.example [192.0.2.1] <nil>
}

func ExampleJoin() {
	recorder := event.NewRecorder()
	client, end := shop(catena.WithEventListener(event.Join(lookups{}, nil, recorder)))
	defer end()
	get(client, "http://nobody.example/")
	fmt.Println(recorder.Names())
	// Output:
	// nobody.example [] lookup nobody.example: no such host
	// GET http://nobody.example/: lookup nobody.example: no such host
	// [CallStart ProxySelectStart ProxySelectEnd DNSStart DNSEnd CallFailed]
}

// closings tells why connections are closed.
type closings struct{ event.NopConnectionListener }

func (closings) Closed(_ event.Connection, why event.Reason) { fmt.Println("closed:", why) }

func ExampleJoinConnection() {
	recorder := event.NewConnectionRecorder()
	client, end := shop(catena.WithConnectionListener(event.JoinConnection(closings{}, recorder)))
	defer end()
	get(client, "http://shop.example/")
	client.CloseIdleConnections()
	fmt.Println(recorder.Names())
	// Output:
	// closed: evicted
	// [Connected Acquired Released NoNewExchanges Closed]
}

func ExampleRecorder() {
	recorder := event.NewRecorder()
	client, end := shop()
	defer end()
	get(client, "http://shop.example/")

	req, err := http.NewRequest("GET", "http://ada:pw@shop.example/?token=abc", nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.NewCall(req, catena.WithEventListener(recorder)).Execute()
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()

	fmt.Println(recorder.Names()[:2])
	events := recorder.Events()
	fmt.Println(events[0].Name, events[0].Method, events[0].URL)
	fmt.Println(events[1].Name, events[1].Addr, events[1].Why)
	// Output:
	// [CallStart ConnectionAcquired]
	// CallStart GET http://ada:xxxxx@shop.example/?token=██
	// ReuseDecision 192.0.2.1:80 pooled
}

func ExampleTimeoutError() {
	client, end := shop(catena.WithReadTimeout(50 * time.Millisecond))
	defer end()
	_, err := client.Get(context.Background(), "http://shop.example/slow")

	var timeout *event.TimeoutError
	if errors.As(err, &timeout) {
		fmt.Println("too slow:", timeout.Step, timeout.After)
	}
	fmt.Println("a timeout of ours:", errors.Is(err, os.ErrDeadlineExceeded))
	fmt.Println("the caller's or the call's:", errors.Is(err, context.DeadlineExceeded))
	// Output:
	// too slow: read 50ms
	// a timeout of ours: true
	// the caller's or the call's: false
}
