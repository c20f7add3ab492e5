package catena_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
)

// greeter answers with what it was asked; the examples call it.
func greeter() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Method, r.URL)
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	mux.HandleFunc("GET /old", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/new", http.StatusFound) })
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("GET /header", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("X-Request-Id")) })
	return httptest.NewServer(mux)
}

// show prints a response's body and closes it.
func show(resp *http.Response, err error) {
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))
	if err != nil {
		fmt.Println("cut off:", err)
	}
}

func Example() {
	server := greeter()
	defer server.Close()

	client, err := catena.New()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	resp, err := client.Get(context.Background(), server.URL+"/hello")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(os.Stdout, resp.Body)
	// Output: GET /hello
}

// An option that makes no sense is an error that names it.
func ExampleNew() {
	_, err := catena.New(catena.WithReadTimeout(-time.Second))
	fmt.Println(err)
	// Output: WithReadTimeout: -1s is negative
}

// A derived client shares connections with the one it comes from, unless one of
// its options decides how servers are reached.
func ExampleClient_With() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	patient, err := client.With(catena.WithReadTimeout(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	http1, _ := client.With(catena.WithProtocols("http/1.1"))
	fmt.Println(patient.Network() == client.Network(), http1.Network() == client.Network())
	fmt.Println(patient.Pool() == client.Pool(), http1.Pool() == client.Pool())
	show(patient.Get(context.Background(), server.URL))
	// Output:
	// true false
	// true true
	// 200 GET /
}

// NewCall takes options for one call.
func ExampleClient_NewCall() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	req, err := http.NewRequestWithContext(context.Background(), "GET", server.URL+"/old", nil)
	if err != nil {
		log.Fatal(err)
	}
	call := client.NewCall(req, catena.WithFollowRedirects(false))
	resp, err := call.Execute()
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, resp.Header.Get("Location"))

	_, err = call.Execute()
	fmt.Println(errors.Is(err, catena.ErrAlreadyExecuted))
	show(call.Clone().Execute())
	// Output:
	// 302 /new
	// true
	// 302 <a href="/new">Found</a>.
}

func ExampleClient_Do() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	req, _ := http.NewRequestWithContext(context.Background(), "DELETE", server.URL+"/thing", nil)
	show(client.Do(req))
	// Output: 200 DELETE /thing
}

func ExampleClient_Get() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	resp, err := client.Get(context.Background(), server.URL+"/old")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, resp.Request.URL.Path, "after", resp.Request.Response.StatusCode)
	// Output: 200 /new after 302
}

func ExampleClient_Head() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	resp, err := client.Head(context.Background(), server.URL)
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, resp.ContentLength)
	// Output: 200 6
}

func ExampleClient_Post() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	show(client.Post(context.Background(), server.URL+"/echo", "text/plain", strings.NewReader("hello")))
	// Output: 200 hello
}

func ExampleClient_PostForm() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	show(client.PostForm(context.Background(), server.URL+"/echo", url.Values{"name": {"Ada"}, "year": {"1843"}}))
	// Output: 200 name=Ada&year=1843
}

// The client as a transport for code that is made for net/http. It follows
// nothing by itself.
func ExampleClient_RoundTripper() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	std := &http.Client{Transport: client.RoundTripper()}
	show(std.Get(server.URL + "/old"))
	// Output: 200 GET /new
}

// Shutdown lets what runs come to its end.
func ExampleClient_Shutdown() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	resp, err := client.Get(context.Background(), server.URL)
	if err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	fmt.Println(client.Shutdown(ctx)) // the body is open
	cancel()
	show(resp, nil)
	fmt.Println(client.Shutdown(context.Background()))

	_, err = client.Get(context.Background(), server.URL)
	fmt.Println(errors.Is(err, catena.ErrClosed))
	// Output:
	// context deadline exceeded
	// 200 GET /
	// <nil>
	// true
}

func ExampleCall_Cancel() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	req, _ := http.NewRequest("GET", server.URL+"/slow", nil)
	call := client.NewCall(req)
	time.AfterFunc(10*time.Millisecond, call.Cancel)
	_, err := call.Execute()
	fmt.Println(errors.Is(err, context.Canceled), call.IsCanceled())
	// Output: true true
}

func ExampleCall_Enqueue() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	req, _ := http.NewRequest("GET", server.URL+"/later", nil)
	done := make(chan struct{})
	client.NewCall(req).Enqueue(func(resp *http.Response, err error) {
		defer close(done)
		show(resp, err)
	})
	<-done
	// Output: 200 GET /later
}

// The error of a call tells every attempt.
func ExampleCallError() {
	client, _ := catena.New(catena.WithRetryPolicy(chain.RetrySafe))
	defer client.Close()

	_, err := client.Get(context.Background(), "http://me:secret@127.0.0.1:1/")
	var failed *catena.CallError
	if errors.As(err, &failed) {
		fmt.Println(failed.URL)
		for _, a := range failed.Attempts {
			fmt.Println(a.Step, a.Addr, a.Why)
		}
	}
	// Output:
	// http://me:xxxxx@127.0.0.1:1/
	// connect 127.0.0.1:1 no-more-routes
}

func ExampleTimeoutError() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New(catena.WithCallTimeout(20 * time.Millisecond))
	defer client.Close()

	_, err := client.Get(context.Background(), server.URL+"/slow")
	var timeout *catena.TimeoutError
	if errors.As(err, &timeout) {
		fmt.Println(timeout.Step, timeout.After, errors.Is(err, context.DeadlineExceeded))
	}
	// Output: call 20ms true
}

func ExampleInfoOf() {
	server := greeter()
	defer server.Close()
	client, _ := catena.New()
	defer client.Close()

	resp, err := client.Get(context.Background(), server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	if info, ok := catena.InfoOf(resp); ok {
		fmt.Println(info.Protocol, info.Connection.RemoteAddr().String() == server.Listener.Addr().String(), len(info.Attempts))
	}
	// Output: http/1.1 true 0
}
