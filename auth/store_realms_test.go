package auth_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// TestStoreRealmsInTurns: what one realm of an origin was sent and another refused stays good for the first.
// A realm that is not there any more gives way to the one that asks in its place.
func TestStoreRealmsInTurns(t *testing.T) {
	byRealm := auth.AuthenticatorFunc(func(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
		return auth.Basic(auth.Challenges(resp.Header, "WWW-Authenticate")[0].Params["realm"], "pw").Authenticate(via, resp)
	})
	for scheme, inner := range map[string]auth.Authenticator{"Basic": byRealm, "Digest": auth.Digest("me", "pw")} {
		t.Run(scheme, func(t *testing.T) {
			a := auth.Store(inner)
			var log []string
			for _, at := range strings.Fields("/a/1=a /b/1=b /a/2=a /b/2=b /a/3=a /a/4=new /a/5=new /b/3=b") {
				path, realm, _ := strings.Cut(at, "=")
				resp := refusal(t, 401, scheme+` realm="`+realm+`", nonce="n"`)
				resp.Request = newRequest(t, "GET", "http://a.test"+path, "")
				if err := a.Authorize(resp.Request); err != nil {
					t.Fatal(err)
				}
				value := resp.Request.Header.Get("Authorization")
				if value == basicValue(realm+":pw") || paramsOf(value)["realm"] == realm {
					log = append(log, "ahead")
					continue
				}
				if next, err := a.Authenticate(proxy.Proxy{}, resp); next == nil || err != nil {
					t.Fatalf("%s: got %v, %v", at, next, err)
				}
				log = append(log, "asked")
			}
			want := strings.Fields("asked asked ahead ahead ahead asked ahead ahead")
			if diff := cmp.Diff(want, log); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
