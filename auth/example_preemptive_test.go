package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

func ExampleDigest() {
	authenticator := auth.Digest("Mufasa", "Circle of Life")

	next, err := authenticator.Authenticate(proxy.Proxy{}, refused(
		`Digest realm="pride", nonce="7ypf", algorithm=MD5, qop="auth", Digest realm="pride", nonce="7ypf", algorithm=SHA-256, qop="auth"`))
	if err != nil {
		fmt.Println(err)
		return
	}
	c := auth.Challenges(next.Header, "Authorization")[0] // credentials read like a challenge
	fmt.Println(c.Scheme, c.Params["username"], c.Params["uri"], c.Params["algorithm"], c.Params["nc"])
	// Output: Digest Mufasa / SHA-256 00000001
}

func ExampleBearer() {
	authenticator := auth.Bearer(func(ctx context.Context) (string, error) {
		return "mF_9.B5f-4.1JqM", nil // from a token server, say
	})

	next, err := authenticator.Authenticate(proxy.Proxy{}, refused(`Bearer realm="example"`))
	fmt.Println(next.Header.Get("Authorization"), err)
	// Output: Bearer mF_9.B5f-4.1JqM <nil>
}

func ExampleStrongest() {
	authenticator := auth.Strongest(
		auth.Basic("Aladdin", "open sesame"),
		auth.Digest("Aladdin", "open sesame"),
	)
	for _, challenge := range []string{`Basic realm="cave"`, `Basic realm="cave", Digest realm="cave", nonce="n"`, `Negotiate`} {
		next, err := authenticator.Authenticate(proxy.Proxy{}, refused(challenge))
		if next == nil {
			fmt.Println("no answer", err)
			continue
		}
		scheme, _, _ := strings.Cut(next.Header.Get("Authorization"), " ")
		fmt.Println(scheme)
	}
	// Output:
	// Basic
	// Digest
	// no answer <nil>
}

func ExampleStore() {
	store := auth.Store(auth.Basic("Aladdin", "open sesame"))

	// The first call to an origin is refused, and answered.
	if _, err := store.Authenticate(proxy.Proxy{}, refused(`Basic realm="cave"`)); err != nil {
		fmt.Println(err)
	}
	// From now on requests to it have credentials from the start; those to others have none.
	for _, url := range []string{"https://example.com/treasure", "https://example.net/"} {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := store.Authorize(req); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %q\n", url, req.Header.Get("Authorization"))
	}
	// Output:
	// https://example.com/treasure "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
	// https://example.net/ ""
}
