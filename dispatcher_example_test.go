package catena_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/catena-http/catena"
)

// Five calls are enqueued at once; two of them run at a time.
func ExampleNewDispatcher() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello")
	}))
	defer server.Close()

	dispatcher := catena.NewDispatcher(catena.DispatcherOptions{MaxCallsPerHost: 2})
	client, err := catena.New(catena.WithDispatcher(dispatcher))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	var done sync.WaitGroup
	for range 5 {
		req, err := http.NewRequest("GET", server.URL, nil)
		if err != nil {
			log.Fatal(err)
		}
		done.Add(1)
		client.NewCall(req).Enqueue(func(resp *http.Response, err error) {
			defer done.Done()
			if err != nil {
				log.Print(err)
				return
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			fmt.Printf("%s, %v\n", text, dispatcher.RunningCount() <= 2)
		})
	}
	done.Wait()
	// Output:
	// hello, true
	// hello, true
	// hello, true
	// hello, true
	// hello, true
}

// CancelAll ends the running calls and those that wait.
func ExampleDispatcher_CancelAll() {
	arrived := make(chan struct{}, 3)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	client, err := catena.New(catena.WithDispatcher(catena.NewDispatcher(catena.DispatcherOptions{MaxCalls: 1})))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	var done sync.WaitGroup
	for range 3 {
		req, err := http.NewRequest("GET", server.URL, nil)
		if err != nil {
			log.Fatal(err)
		}
		done.Add(1)
		client.NewCall(req).Enqueue(func(_ *http.Response, err error) {
			defer done.Done()
			fmt.Println("canceled:", errors.Is(err, context.Canceled))
		})
	}
	<-arrived // the other two are in the queue
	client.Dispatcher().CancelAll()
	done.Wait()
	// Output:
	// canceled: true
	// canceled: true
	// canceled: true
}
