package catena_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// A proxy with a certificate of the company's own authority: it is trusted as a proxy,
// and not as anything else.
func ExampleWithProxyTLSConfig() {
	toProxy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "the proxy was asked for ", r.URL)
	}))
	defer toProxy.Close()
	p, err := proxy.Parse(toProxy.URL)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(toProxy.Certificate())
	client, _ := catena.New(catena.WithProxy(p), catena.WithProxyTLSConfig(&tls.Config{RootCAs: roots}))
	defer client.Close()

	show(client.Get(context.Background(), "http://example.com/"))
	// Output: 200 the proxy was asked for http://example.com/
}

// What a proxy is told besides where the tunnel is to lead, and what it says if it opens
// none.
func ExampleWithProxyConnectHeader() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		fmt.Println(req.Method, req.Host, "for tenant", req.Header.Get("X-Tenant"))
		io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 16\r\n\r\nnot on a Sunday\n")
	}()
	p, err := proxy.Parse(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	client, _ := catena.New(catena.WithProxy(p), catena.WithProxyConnectHeader(http.Header{"X-Tenant": {"7"}}))
	defer client.Close()

	_, err = client.Get(context.Background(), "https://example.com/")
	var refused *route.ProxyError
	if errors.As(err, &refused) {
		fmt.Printf("%d: %s", refused.StatusCode, refused.Body)
	}
	// Output:
	// CONNECT example.com:443 for tenant 7
	// 403: not on a Sunday
}
