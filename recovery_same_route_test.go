package catena_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

// TestStaleThenFreshFailure: behind a stale pooled connection the same route is
// tried once more; where that fails too, the other routes of a new lookup are
// tried, and that one is not tried a third time.
func TestStaleThenFreshFailure(t *testing.T) {
	const stale = "\nread, reused, written, again: stale-connection\n"
	first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for name, tc := range map[string]struct {
		later  []netip.Addr // what the name resolves to then
		refuse bool         // the first server does not listen any more
		want   string
		dials  int
	}{
		"refused, the only address":   {[]netip.Addr{first}, true, "error: refused" + stale + "connect: no-more-routes", 2},
		"refused, another address":    {[]netip.Addr{first, second}, true, `200 "ok"` + stale + "connect, again: next-route", 2},
		"refused, has moved":          {[]netip.Addr{second}, true, `200 "ok"` + stale + "connect, again: next-route", 2},
		"cut again, the only address": {[]netip.Addr{first}, false, "error: closed" + stale + "read, written: no-more-routes", 2},
		"cut again, has moved":        {[]netip.Addr{second}, false, `200 "ok"` + stale + "read, written, again: next-route", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, _, _ := twoServers(t, func(c *peerConn) {
					if c.n == 1 {
						c.readRequest()
						c.send(rawAnswer("200 OK", "ok"))
					}
					c.readRequest() // and closes
				}, rawOK)
				events := event.NewRecorder()
				addrs := []netip.Addr{first}
				dns := route.DNSFunc(func(context.Context, string, string) ([]netip.Addr, error) { return addrs, nil })
				client := h1Client(t, catena.WithDialContext(network.DialContext), catena.WithDNS(dns), catena.WithEventListener(events))
				if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))); got != `200 "ok"` {
					t.Fatalf("the first call: %s", got)
				}
				addrs = tc.later
				if tc.refuse {
					network.SetFaults("192.0.2.1:80", simnet.Faults{Refuse: true})
				}
				got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", "")))
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
				if n := network.Dials("192.0.2.1:80"); n != tc.dials {
					t.Errorf("the first address was dialed %d times, want %d", n, tc.dials)
				}
				if err := catenatest.CheckEvents(events.Events()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
