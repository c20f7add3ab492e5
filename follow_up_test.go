package catena_test

import (
	"strings"
	"testing"
)

// TestInterimResponsesOfACall: the bound holds for the call, not for each of its
// requests.
func TestInterimResponsesOfACall(t *testing.T) {
	flood := strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 60)
	for _, test := range []struct{ second, want string }{
		{strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 40), `200 "ok"`},
		{flood, "error: protocol, too many interim\nread, reused, written: protocol-error"},
	} {
		peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
			c.readRequest()
			c.send(flood + rawAnswer("302 Found", "", "Location: /next"))
			c.readRequest()
			c.send(test.second + rawAnswer("200 OK", "ok"))
		})
		client := h1Client(t)
		if got := outcomeOf(client.Do(bodyRequest(t, "GET", peer.url("/"), ""))); got != test.want {
			t.Errorf("%d interim responses: %s; want %s", 60+strings.Count(test.second, "103"), got, test.want)
		}
	}
}
