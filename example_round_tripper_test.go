package catena_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"

	"github.com/catena-http/catena"
)

// A reverse proxy whose way to the servers behind it is Catena's.
func ExampleClient_RoundTripper_reverseProxy() {
	behind := greeter()
	defer behind.Close()
	target, err := url.Parse(behind.URL)
	if err != nil {
		log.Fatal(err)
	}
	client, err := catena.New()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: client.RoundTripper(),
	})
	defer front.Close()
	resp, err := http.Get(front.URL + "/hello")
	show(resp, err)
	// Output: 200 GET /hello
}

// The hooks of net/http/httptrace fire for Catena's own calls too.
func Example_httptrace() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		GotConn:              func(info httptrace.GotConnInfo) { fmt.Println("reused:", info.Reused) },
		GotFirstResponseByte: func() { fmt.Println("the first byte is there") },
	})
	show(client.Get(ctx, server.URL))
	show(client.Get(ctx, server.URL))
	// Output:
	// reused: false
	// the first byte is there
	// 200 GET /
	// reused: true
	// the first byte is there
	// 200 GET /
}
