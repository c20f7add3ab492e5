package http1_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

// An exchange over a connection in memory, with a server of one answer.
func ExampleConn() {
	client, server := net.Pipe()
	defer client.Close()
	go func() {
		defer server.Close()
		req, err := http.ReadRequest(bufio.NewReader(server))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(server, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), strings.ToUpper(string(body)))
	}()

	c := http1.NewConn(client, false)
	req, _ := http.NewRequest("POST", "http://example.com/shout", nil)

	c.Begin(wire.Exchange{})
	defer c.End()
	if err := c.WriteRequestHeaders(req, 5); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := c.ReadFrom(strings.NewReader("hello")); err != nil {
		fmt.Println(err)
		return
	}
	if err := c.FinishRequest(nil); err != nil {
		fmt.Println(err)
		return
	}
	resp, err := c.ReadResponseHeaders(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(body), err, c.Reusable())
	// Output: 200 OK HELLO <nil> true
}
