package catena_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
)

// Close cancels what runs.
func ExampleClient_Close() {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	client, _ := catena.New()
	go func() {
		<-arrived
		client.Close()
	}()

	_, err := client.Get(context.Background(), server.URL)
	fmt.Println(errors.Is(err, catena.ErrClosed), errors.Is(err, context.Canceled))
	_, err = client.Get(context.Background(), server.URL)
	fmt.Println(errors.Is(err, catena.ErrClosed), errors.Is(err, context.Canceled))
	// Output:
	// true true
	// true false
}

// A panic in an interceptor of an enqueued call is the call's error: on the
// dispatcher's goroutine nobody could recover.
func ExamplePanicError() {
	client, _ := catena.New(catena.WithInterceptor(chain.InterceptorFunc(func(chain.Chain) (*http.Response, error) {
		panic("boom")
	})))
	defer client.Close()

	req, _ := http.NewRequest("GET", "http://localhost/", nil)
	done := make(chan error)
	client.NewCall(req).Enqueue(func(_ *http.Response, err error) { done <- err })
	var p *catena.PanicError
	if errors.As(<-done, &p) {
		fmt.Println(p.Value, len(p.Stack) > 0)
	}
	// Output: boom true
}

// The client warns of an interceptor that loses a response body.
func ExampleWithLogger() {
	server := greeter()
	defer server.Close()
	core, lines := observer.New(zap.WarnLevel) // in a program: zap.NewProduction()
	client, _ := catena.New(
		catena.WithLogger(zap.New(core)),
		catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
			resp, err := c.Proceed(c.Request())
			if err == nil {
				resp.Body = http.NoBody // the body that was there is not closed
			}
			return resp, err
		})))
	defer client.Close()

	resp, err := client.Get(context.Background(), server.URL)
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()
	for _, line := range lines.All() {
		fmt.Println(line.Message)
	}
	// Output: an interceptor replaced a response body without closing it: its connection is given up
}

// A server breaks off a connection that was used before, on a POST it may have
// acted on. By default the POST is not sent again.
func ExampleWithRetryPolicy() {
	var brokenOff atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" && !brokenOff.Swap(true) {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, r.Method)
	}))
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	for _, policy := range []chain.RetryPolicy{chain.RetrySafe, chain.RetryLikeOkHttp} {
		brokenOff.Store(false)
		show(client.Get(context.Background(), server.URL)) // from here on the connection was used
		req, _ := http.NewRequest("POST", server.URL, strings.NewReader("order"))
		resp, err := client.NewCall(req, catena.WithRetryPolicy(policy)).Execute()
		var failed *catena.CallError
		if errors.As(err, &failed) {
			fmt.Println(policy, "failed:", failed.Attempts[0].Why)
			continue
		}
		fmt.Print(policy, ": ")
		show(resp, err)
	}
	// Output:
	// 200 GET
	// safe failed: may-have-been-acted-on
	// 200 GET
	// okhttp: 200 POST
}
