package http2_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/internal/wire"
)

// One exchange over cleartext HTTP/2.
func ExampleConn() {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s of %q over %s", r.Method, body, r.Proto)
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	defer srv.Close()

	nc, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		panic(err)
	}
	c, err := http2.NewConn(nc, http2.Options{})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	c.OnRetire(func(err error) { fmt.Println("retired:", err) })

	if !c.Reserve() {
		panic("the connection is full")
	}
	s := c.NewStream(wire.Exchange{})
	defer s.End()
	req, _ := http.NewRequest("POST", srv.URL, nil)
	if err := s.WriteRequestHeaders(req, 5); err != nil {
		panic(err)
	}
	if _, err := io.WriteString(s, "hello"); err != nil {
		panic(err)
	}
	if err := s.FinishRequest(nil); err != nil {
		panic(err)
	}
	resp, err := s.ReadResponseHeaders(nil)
	if err != nil {
		panic(err)
	}
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body), err)
	s.End()
	c.Shutdown()
	// Output:
	// 200 POST of "hello" over HTTP/2.0 <nil>
	// retired: the connection was shut down
}
