package chain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
)

// get calls a server through an interceptor and prints the answer.
func get(i chain.Interceptor, path string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "hello, ", r.Header.Get("X-Name"))
	}))
	defer server.Close()
	client, err := catena.New(catena.WithInterceptor(i))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	resp, err := client.Get(context.Background(), server.URL+path)
	if err != nil {
		fmt.Println("failed")
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))
}

// patience tries a second time where the server is busy. It ends the body of the
// first response before.
type patience struct{}

func (patience) Intercept(c chain.Chain) (*http.Response, error) {
	resp, err := c.Proceed(c.Request())
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		return resp, err
	}
	resp.Body.Close()
	fmt.Println("busy, once more")
	return c.Proceed(c.Request())
}

func ExampleInterceptor() {
	get(patience{}, "/busy")
	// Output:
	// busy, once more
	// 503
}

// An interceptor may answer itself.
func ExampleInterceptorFunc() {
	teapot := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTeapot}, nil
	})
	get(teapot, "/")
	// Output: 418
}

// With changes the settings for the links below: here, of calls to one path.
func ExampleChain_with() {
	get(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		if c.Request().URL.Path == "/report" {
			c = c.With(func(config *chain.Config) { config.ReadTimeout = 5 * time.Minute })
		}
		fmt.Println(c.Config().ReadTimeout)
		return c.Proceed(c.Request())
	}), "/report")
	// Output:
	// 5m0s
	// 200 hello,
}

// namer is middleware that was written for net/http.
type namer struct{ next http.RoundTripper }

func (n namer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("X-Name", "Ada")
	return n.next.RoundTrip(req)
}

func ExampleFromRoundTripper() {
	get(chain.FromRoundTripper(func(next http.RoundTripper) http.RoundTripper { return namer{next} }), "/")
	// Output: 200 hello, Ada
}

func ExampleInfoOf() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client, err := catena.New()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	resp, err := client.Get(context.Background(), server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	info, ok := chain.InfoOf(resp)
	fmt.Println(ok, info.Protocol, info.ReceivedAt.After(info.SentAt))
	// Output: true http/1.1 true
}

func ExampleCallError() {
	client, err := catena.New()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	_, err = client.Get(context.Background(), "http://me:secret@127.0.0.1:1/")
	var failed *chain.CallError
	if errors.As(err, &failed) {
		fmt.Println(failed.Method, failed.URL, len(failed.Attempts), failed.Timeout())
	}
	// Output: GET http://me:xxxxx@127.0.0.1:1/ 1 false
}
