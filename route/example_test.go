package route_test

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// A call whose tunnel is refused has a *ProxyError in its error.
func ExampleProxyError() {
	var err error = &route.ProxyError{ // as a call returns it
		StatusCode: http.StatusForbidden,
		Head:       &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Via": {"1.1 office"}}},
		Proxy:      proxy.Proxy{Type: proxy.HTTP, Host: "proxy.test", Port: 3128},
		Target:     "example.com:443",
	}

	var refused *route.ProxyError
	if errors.As(err, &refused) {
		fmt.Println(refused.StatusCode, refused.Head.Header.Get("Via"))
	}
	fmt.Println(errors.Is(err, &route.ProxyError{StatusCode: http.StatusForbidden}))
	fmt.Println(err)
	// Output:
	// 403 1.1 office
	// true
	// proxy http://proxy.test:3128 refused a tunnel to example.com:443: 403 Forbidden
}
