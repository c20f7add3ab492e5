package catena_test

import (
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
