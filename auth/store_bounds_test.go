package auth_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

func TestStoreIsBounded(t *testing.T) {
	a := auth.Store(auth.Basic("me", "pw"))
	for i := range 600 {
		asked(t, a, fmt.Sprintf("http://h%d.test/", i), "Basic")
		ahead(t, a, "http://h0.test/") // stays in use
	}
	if n := auth.StoreSpaces(a); n > 512 {
		t.Errorf("%d origins are remembered", n)
	}
	if ahead(t, a, "http://h0.test/") == "" || ahead(t, a, "http://h599.test/") == "" || ahead(t, a, "http://h1.test/") != "" {
		t.Error("not the one that was not used for longest was forgotten")
	}
	for i := range 100 {
		asked(t, a, "http://h0.test/", fmt.Sprintf(`Basic realm="%d"`, i))
	}
	if n := auth.StoreRealms(a); n > 8 {
		t.Errorf("%d realms are remembered of one origin", n)
	}
	asked(t, a, "http://huge.test/", `Basic realm="`+strings.Repeat("x", 2<<10)+`"`)
	if ahead(t, a, "http://huge.test/") != "" {
		t.Error("a huge realm is remembered")
	}
}

func TestStoreConcurrently(t *testing.T) {
	a := auth.Store(auth.Strongest(auth.Basic("me", "pw"), auth.Digest("me", "pw"), auth.Bearer((&tokens{}).token)))
	challenges := []string{"Basic", `Digest realm="r", nonce="n", qop="auth"`, "Bearer", `Bearer error="invalid_token"`}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 32 {
				url := fmt.Sprintf("http://h%d.test/", (i+j)%5)
				sent := ahead(t, a, url)
				resp := refusal(t, 401, challenges[(i*j)%4])
				resp.Request = newRequest(t, "GET", url, "")
				if sent != "" {
					resp.Request.Header.Set("Authorization", sent)
				}
				if _, err := a.Authenticate(proxy.Proxy{}, resp); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
