package catena_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

// lostRequest is a request whose connection ends when the server has read it.
type lostRequest struct {
	name    string
	method  string
	body    string
	header  http.Header
	oneShot bool
	opts    []catena.Option
	stale   string // what comes of it on a pooled connection
	fresh   string // and on a new one, with another address left
}

var postInstead = chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
	req := c.Request().Clone(c.Request().Context())
	req.Method = "POST"
	return c.Proceed(req)
})

const (
	pooledAgain   = "read, reused, written, again: stale-connection\n"
	nextAgain     = "read, written, again: next-route\n"
	mayHaveActed  = "may-have-been-acted-on"
	closedReused  = "error: closed\nread, reused, written: "
	closedFresh   = "error: closed\nread, written: "
	keyed         = "Idempotency-Key"
	largerBody    = 200 << 10
	seenTwice     = "seen 2"
	seenOnce      = "seen 1"
	okTwice       = "200 \"ok\"\n"
	retryDisabled = "retry-disabled\n"
)

var lostRequests = []lostRequest{
	{name: "GET", method: "GET",
		stale: okTwice + pooledAgain + seenTwice, fresh: okTwice + nextAgain + seenTwice},
	{name: "PUT", method: "PUT", body: "hello",
		stale: okTwice + pooledAgain + seenTwice, fresh: okTwice + nextAgain + seenTwice},
	{name: "large PUT", method: "PUT", body: strings.Repeat("b", largerBody),
		stale: okTwice + pooledAgain + seenTwice, fresh: okTwice + nextAgain + seenTwice},
	{name: "DELETE", method: "DELETE",
		stale: okTwice + pooledAgain + seenTwice, fresh: okTwice + nextAgain + seenTwice},
	{name: "QUERY", method: "QUERY", body: "q",
		stale: okTwice + pooledAgain + seenTwice, fresh: okTwice + nextAgain + seenTwice},
	{name: "one-shot PUT", method: "PUT", body: "hello", oneShot: true,
		stale: closedReused + "one-shot-body\n" + seenOnce, fresh: closedFresh + "one-shot-body\n" + seenOnce},
	{name: "POST", method: "POST", body: "hello",
		stale: closedReused + mayHaveActed + "\n" + seenOnce, fresh: closedFresh + mayHaveActed + "\n" + seenOnce},
	{name: "POST without body", method: "POST",
		stale: closedReused + mayHaveActed + "\n" + seenOnce, fresh: closedFresh + mayHaveActed + "\n" + seenOnce},
	{name: "PATCH", method: "PATCH", body: "hello",
		stale: closedReused + mayHaveActed + "\n" + seenOnce, fresh: closedFresh + mayHaveActed + "\n" + seenOnce},
	{name: "POST with an Idempotency-Key", method: "POST", body: "hello", header: http.Header{keyed: {"1"}},
		stale: okTwice + pooledAgain + seenTwice, fresh: okTwice + nextAgain + seenTwice},
	{name: "one-shot POST with an Idempotency-Key", method: "POST", body: "hello", oneShot: true, header: http.Header{keyed: {"1"}},
		stale: closedReused + "one-shot-body\n" + seenOnce, fresh: closedFresh + "one-shot-body\n" + seenOnce},
	{name: "POST, like OkHttp", method: "POST", body: "hello", opts: []catena.Option{catena.WithRetryPolicy(chain.RetryLikeOkHttp)},
		stale: okTwice + pooledAgain + seenTwice, fresh: okTwice + nextAgain + seenTwice},
	{name: "one-shot POST, like OkHttp", method: "POST", body: "hello", oneShot: true, opts: []catena.Option{catena.WithRetryPolicy(chain.RetryLikeOkHttp)},
		stale: closedReused + "one-shot-body\n" + seenOnce, fresh: closedFresh + "one-shot-body\n" + seenOnce},
	{name: "GET without retries", method: "GET", opts: []catena.Option{catena.WithRetryOnConnectionFailure(false)},
		stale: closedReused + retryDisabled + seenOnce, fresh: closedFresh + retryDisabled + seenOnce},
	{name: "GET that a network interceptor makes a POST", method: "GET", opts: []catena.Option{catena.WithNetworkInterceptor(postInstead)},
		stale: closedReused + mayHaveActed + "\n" + seenOnce, fresh: closedFresh + mayHaveActed + "\n" + seenOnce},
}

// TestLostOnPooledConnection loses a request on a connection that carried one
// before.
func TestLostOnPooledConnection(t *testing.T) {
	for _, r := range lostRequests {
		t.Run(r.name, func(t *testing.T) {
			peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
				if c.n > 1 {
					rawOK(c)
					return
				}
				c.readRequest()
				c.send(rawAnswer("200 OK", "good"))
				c.readRequest()
			})
			client := h1Client(t, r.opts...)
			if got := outcomeOf(client.Do(bodyRequest(t, "GET", peer.url("/good"), ""))); got != `200 "good"` {
				t.Fatal(got)
			}
			checkLost(t, r, client, peer.url("/"), r.stale, func() []seenRequest { return peer.seen()[1:] })
		})
	}
}

// TestLostOnFreshConnection loses the first request on a connection, while
// another address is left.
func TestLostOnFreshConnection(t *testing.T) {
	for _, r := range lostRequests {
		t.Run(r.name, func(t *testing.T) {
			pair := startPair(t, func(c *peerConn) { c.readRequest() }, rawOK)
			client := h1Client(t, append(r.opts, catena.WithDNS(pair))...)
			checkLost(t, r, client, pair.url("/"), r.fresh, func() []seenRequest {
				return append(pair.a.seen(), pair.b.seen()...)
			})
		})
	}
}

func checkLost(t *testing.T, r lostRequest, client *catena.Client, url, want string, seen func() []seenRequest) {
	t.Helper()
	req := bodyRequest(t, r.method, url, r.body)
	for name, values := range r.header {
		req.Header[name] = values
	}
	closes := countCloses(req)
	if r.oneShot {
		req.GetBody = nil
	}
	got := outcomeOf(client.Do(req))
	requests := seen()
	got += fmt.Sprintf("\nseen %d", len(requests))
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	for i, s := range requests {
		if s.body != r.body {
			t.Errorf("request %d had a body of %d bytes (%v), want %d", i, len(s.body), s.err, len(r.body))
		}
	}
	for i, n := range closes() {
		if n != 1 {
			t.Errorf("body %d was closed %d times", i, n)
		}
	}
}

// countCloses puts bodies into req that count how often each is closed.
func countCloses(req *http.Request) func() []int {
	var bodies []*countedBody
	count := func(r io.ReadCloser) io.ReadCloser {
		bodies = append(bodies, &countedBody{Reader: r})
		return bodies[len(bodies)-1]
	}
	if req.Body != nil {
		req.Body = count(req.Body)
	}
	if again := req.GetBody; again != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			r, err := again()
			return count(r), err
		}
	}
	return func() []int {
		counts := make([]int, len(bodies))
		for i, b := range bodies {
			counts[i] = b.closes
		}
		return counts
	}
}

// pair is one server on two addresses, a and b, which are tried in this order.
type pair struct{ a, b *faultyPeer }

func startPair(t testing.TB, a, b func(c *peerConn)) pair {
	one, two := listenPair(t, "127.0.0.2", "127.0.0.3")
	return pair{startFaultyPeer(t, one, a), startFaultyPeer(t, two, b)}
}

func (p pair) url(path string) string {
	_, port, _ := net.SplitHostPort(p.a.listener.Addr().String())
	return "http://pair.test:" + port + path
}

// LookupNetIP is a and b, whatever the name.
func (p pair) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{addrOf(p.a.listener), addrOf(p.b.listener)}, nil
}

func addrOf(l net.Listener) netip.Addr {
	return l.Addr().(*net.TCPAddr).AddrPort().Addr().Unmap()
}

var _ route.DNS = pair{}

// TestFailedRouteIsTriedLast makes a first exchange fail on address a. Later calls
// go to b first, and to a again when b is gone.
func TestFailedRouteIsTriedLast(t *testing.T) {
	cut := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhe"
	for _, test := range []struct {
		name  string
		first func(c *peerConn) // what a does with its first request
		want  string
	}{
		{"no response", func(c *peerConn) { c.readRequest() }, "200 \"b\"\n" + strings.TrimSuffix(nextAgain, "\n")},
		{"response cut", func(c *peerConn) { c.readRequest(); c.send(cut) }, "200, \"he\", then error: cut short\nread, written: response-begun"},
	} {
		t.Run(test.name, func(t *testing.T) {
			good := func(name string) func(c *peerConn) {
				return func(c *peerConn) {
					if c.readRequest() {
						c.send(rawAnswer("200 OK", name, "Connection: close"))
					}
				}
			}
			p := startPair(t, func(c *peerConn) {
				if c.n == 1 {
					test.first(c)
				} else {
					good("a")(c)
				}
			}, good("b"))
			client := h1Client(t, catena.WithDNS(p))
			get := func() string { return outcomeOf(client.Do(bodyRequest(t, "GET", p.url("/"), ""))) }
			if got := get(); got != test.want {
				t.Errorf("the first call: %s", got)
			}
			if got := get(); got != `200 "b"` {
				t.Errorf("the second call: %s; want it at b, because a is postponed", got)
			}
			p.b.stop()
			if got, want := get(), "200 \"a\"\nconnect, again: next-route"; got != want {
				t.Errorf("without b: %s; want %s", got, want)
			}
			if got := get(); got != `200 "a"` {
				t.Errorf("without b, again: %s; want b postponed", got)
			}
		})
	}
}

// TestRetryIsAnnounced: a retry is told by the events, each attempt with its own
// connection, and by the response.
func TestRetryIsAnnounced(t *testing.T) {
	p := startPair(t, func(c *peerConn) { c.readRequest() }, rawOK)
	events := event.NewRecorder()
	client := h1Client(t, catena.WithDNS(p), catena.WithEventListener(events))
	resp, err := client.Do(bodyRequest(t, "GET", p.url("/"), ""))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	info, ok := catena.InfoOf(resp)
	if !ok || len(info.Attempts) != 1 || !errors.Is(info.Attempts[0].Err, io.EOF) {
		t.Errorf("attempts %+v; want the one that failed", info.Attempts)
	}
	var got []string
	for _, e := range events.Events() {
		switch e.Name {
		case "ConnectionAcquired", "ConnectionReleased", "RequestHeadersEnd", "ResponseFailed", "RetryDecision", "CallEnd", "CallFailed":
			got = append(got, e.Name)
		}
	}
	want := []string{"ConnectionAcquired", "RequestHeadersEnd", "ResponseFailed", "RetryDecision", "ConnectionReleased",
		"ConnectionAcquired", "RequestHeadersEnd", "ConnectionReleased", "CallEnd"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
