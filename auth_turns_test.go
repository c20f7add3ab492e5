package catena_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
)

// TestRefusalsInTurnsEnd: a proxy that wants a new nonce each time and an origin that refuses whatever comes
// take turns, and are given up on as each alone would be.
func TestRefusalsInTurnsEnd(t *testing.T) {
	var tokens atomic.Int32
	for name, a := range map[string]auth.Authenticator{
		"Basic":  auth.Basic("me", "pw"),
		"Digest": auth.Digest("me", "pw"),
		"Bearer": auth.Bearer(func(context.Context) (string, error) { return fmt.Sprint("t", tokens.Add(1)), nil }),
	} {
		t.Run(name, func(t *testing.T) {
			peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
				for n := 1; c.readRequest(); n++ {
					if n%2 == 1 {
						c.send(rawAnswer("407 No", "no", fmt.Sprintf(`Proxy-Authenticate: Digest realm="p", nonce="%d", qop="auth", stale=true`, n)))
						continue
					}
					c.send(rawAnswer("401 No", "no", `WWW-Authenticate: Basic`, `WWW-Authenticate: Bearer error="invalid_token"`,
						fmt.Sprintf(`WWW-Authenticate: Digest realm="o", nonce="%d", qop="auth"`, n)))
				}
			})
			client := h1Client(t, catena.WithProxy(proxyOf(t, peer)), catena.WithAuthenticator(a), catena.WithProxyAuthenticator(auth.Digest("p", "q")))
			got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://a.test/", "")))
			if got != `401 "no"` && got != `407 "no"` {
				t.Errorf("%s, want a refusal", got)
			}
			if n := len(peer.seen()); n > 6 {
				t.Errorf("%d requests, want at most 3 refusals of each", n)
			}
		})
	}
}
