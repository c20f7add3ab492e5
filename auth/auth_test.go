package auth_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

func TestNone(t *testing.T) {
	if got, err := auth.None.Authenticate(proxy.Proxy{}, refusal(t, 401, "Basic")); got != nil || err != nil {
		t.Errorf("got %v, %v, want it to give up", got, err)
	}
}

func TestAuthenticatorFunc(t *testing.T) {
	failure := errors.New("vault is sealed")
	resp := refusal(t, 407, "Basic")
	via := proxy.Proxy{Type: proxy.HTTP, Host: "p.test"}
	var a auth.Authenticator = auth.AuthenticatorFunc(func(p proxy.Proxy, r *http.Response) (*http.Request, error) {
		if p != via || r != resp {
			t.Errorf("called with %v and %p, want %v and %p", p, r, via, resp)
		}
		return r.Request, failure
	})
	if got, err := a.Authenticate(via, resp); got != resp.Request || !errors.Is(err, failure) {
		t.Errorf("got %v, %v, want what the function returns", got, err)
	}
}

func TestResponseCount(t *testing.T) {
	var resp *http.Response
	for want := range 4 {
		if got := auth.ResponseCount(resp); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
		resp = &http.Response{Request: &http.Request{Response: resp}}
	}
	if got := auth.ResponseCount(&http.Response{}); got != 1 {
		t.Errorf("got %d for a response without request, want 1", got)
	}
}
