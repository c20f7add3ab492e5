package auth_test

import (
	"fmt"
	"net/http"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// refused returns the response of a server that wants credentials.
func refused(challenge string) *http.Response {
	req, err := http.NewRequest(http.MethodGet, "https://example.com/", nil)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: http.StatusUnauthorized,
		Header:     http.Header{"Www-Authenticate": {challenge}},
		Request:    req,
	}
}

func ExampleBasic() {
	authenticator := auth.Basic("Aladdin", "open sesame")

	next, err := authenticator.Authenticate(proxy.Proxy{}, refused(`Basic realm="cave"`))
	fmt.Println(next.Header.Get("Authorization"), err)

	// The server refuses that, too: the call ends with its 401.
	again := refused(`Basic realm="cave"`)
	again.Request = next
	next, err = authenticator.Authenticate(proxy.Proxy{}, again)
	fmt.Println(next, err)
	// Output:
	// Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ== <nil>
	// <nil> <nil>
}

func ExampleChallenges() {
	resp := refused(`Negotiate abc==, Digest realm="cave, inner", qop="auth,auth-int"`)
	for _, c := range auth.Challenges(resp.Header, "WWW-Authenticate") {
		fmt.Printf("%s %q %q\n", c.Scheme, c.Token68, c.Params)
	}
	// Output:
	// Negotiate "abc==" map[]
	// Digest "" map["qop":"auth,auth-int" "realm":"cave, inner"]
}

func ExampleResponseCount() {
	// Asks for a password up to three times.
	authenticator := auth.AuthenticatorFunc(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
		if auth.ResponseCount(resp) > 3 {
			return nil, nil
		}
		next := resp.Request.Clone(resp.Request.Context())
		next.Header.Set("Authorization", fmt.Sprintf("Code %d", auth.ResponseCount(resp)))
		return next, nil
	})

	resp := refused("Code")
	for {
		next, err := authenticator.Authenticate(proxy.Proxy{}, resp)
		if next == nil {
			fmt.Println("gave up:", err)
			return
		}
		fmt.Println(next.Header.Get("Authorization"))
		next.Response = resp // as a client does
		resp = refused("Code")
		resp.Request = next
	}
	// Output:
	// Code 1
	// Code 2
	// Code 3
	// gave up: <nil>
}

func ExampleAuthenticatorFunc() {
	// Credentials for one origin, wherever redirects lead.
	basic := auth.Basic("Aladdin", "open sesame")
	authenticator := auth.AuthenticatorFunc(func(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
		if u := resp.Request.URL; u.Scheme != "https" || u.Host != "cave.test" {
			return nil, nil
		}
		return basic.Authenticate(via, resp)
	})

	next, err := authenticator.Authenticate(proxy.Proxy{}, refused(`Basic realm="elsewhere"`))
	fmt.Println(next, err)
	// Output: <nil> <nil>
}
