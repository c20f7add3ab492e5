package zaplog_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/event/zaplog"
	"github.com/catena-http/catena/proxy"
)

// At Info each call is one line, and what went wrong on the way another one.
func Example() {
	n := simnet.New()
	defer n.Close()
	n.AddHost("shop.example", "192.0.2.1", "192.0.2.2") // nobody listens at the first
	l, err := n.Listen("192.0.2.2:80")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	go server.Serve(l)
	defer server.Close()

	// In a program: zap.NewProduction().
	core, lines := observer.New(zap.InfoLevel)
	logger := zap.New(core)

	client, err := catena.New(
		catena.WithEventListener(zaplog.New(logger)),
		catena.WithDNS(n), catena.WithDialContext(n.DialContext), catena.WithProxy(proxy.Proxy{}),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	resp, err := client.Get(context.Background(), "http://shop.example/cart?token=abc")
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()

	for _, line := range lines.All() {
		fields := line.ContextMap()
		fmt.Println(line.Level, line.Message)
		for _, name := range []string{"url", "addr", "error", "status"} {
			if v, ok := fields[name]; ok {
				fmt.Println("  ", name, v)
			}
		}
	}
	// Output:
	// warn connect failed
	//    url http://shop.example/cart?token=██
	//    addr 192.0.2.1:80
	//    error dial tcp 192.0.2.1:80: connect: connection refused
	// info call ended
	//    url http://shop.example/cart?token=██
	//    addr 192.0.2.2:80
	//    status 404
}
