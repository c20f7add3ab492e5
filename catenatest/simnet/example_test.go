package simnet_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/catenatest/simnet"
)

// A server and a client of net/http, in real time.
func Example() {
	n := simnet.New()
	defer n.Close()
	n.AddHost("example.com", "192.0.2.1")

	l, err := n.Listen("192.0.2.1:80")
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.RemoteAddr)
	})}
	go srv.Serve(l)
	defer srv.Close()

	transport := &http.Transport{DialContext: n.DialContext}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("http://example.com/")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
	fmt.Println(n.Dials("192.0.2.1:80"), "dial")
	// Output:
	// hello 198.18.0.1:49152 <nil>
	// 1 dial
}

// The package comment's example.
func TestHTTPInVirtualTime(t *testing.T) { synctest.Test(t, testVirtualTime) }

func testVirtualTime(t *testing.T) {
	n := simnet.New(simnet.WithLatency(100 * time.Millisecond))
	defer n.Close()
	n.AddHost("example.com", "192.0.2.1")
	l, err := n.Listen("192.0.2.1:80")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go srv.Serve(l)
	defer srv.Close()

	transport := &http.Transport{DialContext: n.DialContext}
	defer transport.CloseIdleConnections()
	start := time.Now()
	resp, err := (&http.Client{Transport: transport}).Get("http://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	// A round trip each for the lookup, the connect and the exchange.
	if took := time.Since(start); took != 600*time.Millisecond {
		t.Errorf("took %v, want 600ms", took)
	}
}

// The first dial is refused, the second connects to a server that goes silent after 100 bytes, the others are healthy.
func ExampleNetwork_SetFaults() {
	n := simnet.New()
	defer n.Close()
	l, _ := n.Listen("192.0.2.1:80")
	defer l.Close()
	n.SetFaults("192.0.2.1:80",
		simnet.Faults{Refuse: true},
		simnet.Faults{ToClient: simnet.Link{Cut: simnet.Cut{How: simnet.CutSilent, After: 100}}},
		simnet.Faults{},
	)
	_, err := n.DialContext(context.Background(), "tcp", "192.0.2.1:80")
	fmt.Println(err)
	_, err = n.DialContext(context.Background(), "tcp", "192.0.2.1:80")
	fmt.Println(err)
	// Output:
	// dial tcp 192.0.2.1:80: connect: connection refused
	// <nil>
}

// A name that fails to resolve once.
func ExampleNetwork_SetDNSFault() {
	n := simnet.New()
	defer n.Close()
	n.AddHost("example.com", "192.0.2.1", "2001:db8::1")
	n.SetDNSFault("example.com", simnet.DNSFault{Err: syscall.EIO}, simnet.DNSFault{})
	for range 2 {
		fmt.Println(n.LookupNetIP(context.Background(), "ip", "example.com"))
	}
	// Output:
	// [] lookup example.com: input/output error
	// [192.0.2.1 2001:db8::1] <nil>
}
