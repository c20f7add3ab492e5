package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/catena-http/catena/proxy"
)

func ExampleParse() {
	p, err := proxy.Parse("http://me:secret@proxy.test:3128")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p)
	fmt.Println(p.Addr(), p.User.Username())

	_, err = proxy.Parse("http://me:sec#ret@proxy.test")
	fmt.Println(err)
	// Output:
	// http://me:xxxxx@proxy.test:3128
	// proxy.test:3128 me
	// proxy user info has a '/', '?' or '#' that is not percent-encoded
}

func ExampleFixed() {
	// The office's proxy, and straight to the origin where that can't be reached.
	office := proxy.Proxy{Type: proxy.HTTP, Host: "proxy.test", Port: 3128}
	selector := proxy.Fixed(office, proxy.Proxy{})

	list, err := selector.Select(context.Background(), &url.URL{Scheme: "https", Host: "example.com"})
	fmt.Println(list, err)
	// Output: [http://proxy.test:3128 direct] <nil>
}

func ExampleSelectorFunc() {
	tor := proxy.Proxy{Type: proxy.SOCKS5, Host: "127.0.0.1", Port: 9050}
	selector := proxy.SelectorFunc(func(_ context.Context, u *url.URL) ([]proxy.Proxy, error) {
		if strings.HasSuffix(u.Hostname(), ".onion") {
			return []proxy.Proxy{tor}, nil
		}
		return nil, nil // an empty list is direct
	})

	list, err := selector.Select(context.Background(), &url.URL{Scheme: "http", Host: "example.onion"})
	fmt.Println(list, err)
	// Output: [socks5://127.0.0.1:9050] <nil>
}

func ExampleFromEnvironment() {
	for name, value := range map[string]string{
		"https_proxy": "http://proxy.test:3128",
		"no_proxy":    "example.com, 10.0.0.0/8",
	} {
		defer os.Setenv(name, os.Getenv(name))
		os.Setenv(name, value)
	}
	selector := proxy.FromEnvironment()

	for _, host := range []string{"example.org", "www.example.com", "10.1.2.3", "localhost"} {
		list, err := selector.Select(context.Background(), &url.URL{Scheme: "https", Host: host})
		fmt.Println(host, list, err)
	}
	// Output:
	// example.org [http://proxy.test:3128] <nil>
	// www.example.com [direct] <nil>
	// 10.1.2.3 [direct] <nil>
	// localhost [direct] <nil>
}

// A call that fails at a SOCKS proxy has a *SOCKSError in its error.
func ExampleSOCKSError() {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() { // a proxy that refuses
		defer theirs.Close()
		request := make([]byte, 32)
		theirs.Read(request)
		theirs.Write([]byte{5, 0})
		theirs.Read(request)
		theirs.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
	}()
	err := proxy.Handshake(context.Background(), ours, proxy.Proxy{Type: proxy.SOCKS5, Host: "proxy.test"}, "example.com:443")

	var refused *proxy.SOCKSError
	if errors.As(err, &refused) {
		fmt.Println("code", refused.Code)
		fmt.Println("credentials:", errors.Is(err, proxy.ErrUnauthorized))
		fmt.Println(err)
	}
	// Output:
	// code 5
	// credentials: false
	// proxy socks5://proxy.test:1080 did not connect to example.com:443: connection refused (reply code 5)
}
