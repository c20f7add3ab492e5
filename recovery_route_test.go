package catena_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/proxy"
)

// twoServers is a network with origin.test on two addresses.
func twoServers(t *testing.T, first, second func(c *peerConn)) (*simnet.Network, *faultyPeer, *faultyPeer) {
	network := simnet.New(simnet.WithLatency(time.Millisecond), simnet.WithWindow(roomyWindow))
	network.AddHost("origin.test", "192.0.2.1", "192.0.2.2")
	t.Cleanup(func() { network.Close() })
	var peers []*faultyPeer
	for i, serve := range []func(c *peerConn){first, second} {
		listener, err := network.Listen(fmt.Sprintf("192.0.2.%d:80", i+1))
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, startFaultyPeer(t, listener, serve))
	}
	return network, peers[0], peers[1]
}

// TestTimeoutMarksTheRoute: a response that does not come is not asked for again,
// but the next call goes to the other address.
func TestTimeoutMarksTheRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, _, _ := twoServers(t, func(c *peerConn) { c.readRequest(); c.untilClosed() }, rawOK)
		client := h1Client(t, catena.WithDialContext(network.DialContext), catena.WithDNS(network), catena.WithReadTimeout(time.Second))
		for _, want := range []string{"error: read timeout\nread, written: timeout", `200 "ok"`} {
			if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

// TestCancelDoesNotMarkTheRoute: nor do a request's own body and an interceptor.
func TestCancelDoesNotMarkTheRoute(t *testing.T) {
	for _, test := range []struct {
		name string
		call func(client *catena.Client) error
	}{
		{"cancel", func(client *catena.Client) error {
			call := client.NewCall(bodyRequest(t, "GET", "http://origin.test/slow", ""))
			time.AfterFunc(time.Second, call.Cancel)
			_, err := call.Execute()
			return err
		}},
		{"body", func(client *catena.Client) error {
			req := bodyRequest(t, "PUT", "http://origin.test/", "")
			req.Body, req.ContentLength = io.NopCloser(brokenReader{io.ErrNoProgress}), 5
			_, err := client.Do(req)
			return err
		}},
		{"interceptor", func(client *catena.Client) error {
			c, err := client.With(catena.WithNetworkInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
				return nil, io.ErrNoProgress
			})))
			if err != nil {
				return err
			}
			_, err = c.Do(bodyRequest(t, "GET", "http://origin.test/", ""))
			return err
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			network, first, second := twoServers(t, func(c *peerConn) {
				for req := c.readHead(); req != nil && req.URL.Path != "/slow"; req = c.readHead() {
					io.Copy(io.Discard, req.Body)
					c.send(rawAnswer("200 OK", "ok"))
				}
				c.untilClosed()
			}, rawOK)
			client := h1Client(t, catena.WithDialContext(network.DialContext), catena.WithDNS(network))
			if err := test.call(client); err == nil {
				t.Errorf("%s: no error", test.name)
			}
			if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))); got != `200 "ok"` {
				t.Errorf("%s: the next call: %s", test.name, got)
			}
			if first.accepted() == 0 || second.accepted() != 0 {
				t.Errorf("%s: %d and %d connections; want the first address not postponed", test.name, first.accepted(), second.accepted())
			}
		})
	}
}

// TestResetStreamMovesOn: a stream reset by the server is like a failed connection.
func TestResetStreamMovesOn(t *testing.T) {
	for _, test := range []struct{ method, want string }{
		{"GET", "200 \"ok\"\nread, written, again: next-route"},
		{"POST", "error: INTERNAL_ERROR\nread, written: may-have-been-acted-on"},
	} {
		synctest.Test(t, func(t *testing.T) {
			network, _, second := twoServers(t, func(c *peerConn) {
				f := framed(c)
				for id := f.nextRequest(); id != 0; id = f.nextRequest() {
					f.WriteRSTStream(id, http2.ErrCodeInternal)
				}
			}, func(c *peerConn) { framed(c).rest() })
			client := h2cClient(t, network)
			defer client.Close()
			body := strings.Repeat("b", 100<<10*(len(test.method)-3))
			if got := outcomeOf(client.Do(bodyRequest(t, test.method, "http://origin.test/", body))); got != test.want {
				t.Errorf("%s: %s, want %s", test.method, got, test.want)
			}
			if got := outcomeOf(client.Do(bodyRequest(t, test.method, "http://origin.test/", body))); got != `200 "ok"` {
				t.Errorf("%s, the next call: %s", test.method, got)
			}
			for _, s := range second.seen() {
				if s.body != body {
					t.Errorf("%s: a body of %d bytes arrived", test.method, len(s.body))
				}
			}
		})
	}
}

// TestPooledConnectionsAllStale: each pooled connection is tried, then a new one.
func TestPooledConnectionsAllStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pooled = 3
		client, peer := simClient(t, func(c *peerConn) {
			if c.n > pooled {
				rawOK(c)
				return
			}
			c.readRequest()
			time.Sleep(100 * time.Millisecond) // so that the calls do not share
			c.send(rawAnswer("200 OK", "ok"))
			c.readRequest()
		})
		done := make(chan string)
		for range pooled {
			go func() { done <- outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))) }()
		}
		for range pooled {
			if got := <-done; got != `200 "ok"` {
				t.Error(got)
			}
		}
		want := `200 "ok"` + strings.Repeat("\nread, reused, written, again: stale-connection", pooled)
		if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if n := peer.accepted(); n != pooled+1 {
			t.Errorf("%d connections, want %d", n, pooled+1)
		}
	})
}

// TestForwardingProxy: a plain proxy's own failures are its, its 407 goes to its
// authenticator, and what is meant for it reaches nobody else.
func TestForwardingProxy(t *testing.T) {
	const challenge = "Proxy-Authenticate: Basic realm=\"a\""
	for _, test := range []struct {
		name   string
		opts   []catena.Option
		answer string
		want   string
		seen   int
	}{
		{"authenticates", []catena.Option{catena.WithProxyAuthenticator(auth.Basic("user", "right"))}, rawAnswer("200 OK", "ok"), `200 "ok"`, 2},
		{"wrong password", []catena.Option{catena.WithProxyAuthenticator(auth.Basic("user", "wrong"))}, rawAnswer("200 OK", "ok"), `407 "who"`, 2},
		{"no authenticator", nil, rawAnswer("200 OK", "ok"), `407 "who"`, 1},
		{"redirected away", []catena.Option{catena.WithProxyAuthenticator(auth.Basic("user", "right"))}, redirectTo(302, "http://other.test/b"), `200 "ok"`, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
				for req := c.readHead(); req != nil; req = c.readHead() {
					io.Copy(io.Discard, req.Body)
					user, password, _ := (&http.Request{Header: http.Header{"Authorization": req.Header["Proxy-Authorization"]}}).BasicAuth()
					switch {
					case user != "user" || password != "right":
						c.send(rawAnswer("407 Proxy Authentication Required", "who", challenge))
					case req.URL.Host == "other.test":
						c.send(rawAnswer("200 OK", "ok"))
					default:
						c.send(test.answer)
					}
				}
			})
			via, err := proxy.Parse("http://" + peer.listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			client := h1Client(t, append(test.opts, catena.WithProxy(via))...)
			req := bodyRequest(t, "POST", "http://origin.test/a", "hello")
			req.Header.Set("Authorization", "Bearer x")
			got := outcomeOf(client.Do(req))
			seen := peer.seen()
			if test.name == "redirected away" {
				// Whether credentials for the proxy go along is for the proxy's
				// authenticator to say anew; those for the origin never do.
				for _, s := range seen {
					if s.URL.Host == "other.test" && s.Header.Get("Authorization") != "" {
						t.Error("Authorization left its origin")
					}
				}
				if got != test.want {
					t.Errorf("%s, want %s", got, test.want)
				}
				return
			}
			if got != test.want || len(seen) != test.seen {
				t.Errorf("%s after %d requests, want %s after %d", got, len(seen), test.want, test.seen)
			}
			for _, s := range seen {
				if s.URL.String() != "http://origin.test/a" {
					t.Errorf("the proxy was asked for %s", s.URL)
				}
			}
		})
	}
}

// TestProxyAuthorizationOfAnyCase: an origin never sees it, however it is written.
func TestProxyAuthorizationOfAnyCase(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			io.WriteString(rw, r.Header.Get("Proxy-Authorization")+r.Header.Get("X"))
		})
		for _, name := range []string{"Proxy-Authorization", "proxy-authorization", "PROXY-authorization"} {
			req := w.request("GET", "/", nil)
			req.Header[name], req.Header["X"] = []string{"Basic c2VjcmV0"}, []string{"x"}
			w.do(req, "x")
		}
	})
}

// TestRedirectDuringUpload: a redirect that comes while a large body is still
// being sent ends that upload, and the body goes to the new place from its start.
func TestRedirectDuringUpload(t *testing.T) {
	text := strings.Repeat("b", 1<<20)
	synctest.Test(t, func(t *testing.T) {
		network, peer := framedNetwork(t, func(f *framedConn) {
			for {
				frame, err := f.ReadFrame()
				if err != nil {
					return
				}
				if _, ok := frame.(*http2.HeadersFrame); ok {
					break
				}
			}
			f.encoded.Reset()
			for _, field := range [][2]string{{":status", "307"}, {"location", "/b"}} {
				f.field(field[0], field[1])
			}
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.encoded.Bytes(), EndHeaders: true, EndStream: true})
			f.skipStream = 1
			f.rest()
		})
		client := h2cClient(t, network)
		defer client.Close()
		req := bodyRequest(t, "POST", "http://origin.test/a", text)
		closes := countCloses(req)
		if got := outcomeOf(client.Do(req)); got != `200 "ok"` {
			t.Error(got)
		}
		if seen := peer.seen(); len(seen) != 1 || seen[0].body != text {
			t.Errorf("%d complete requests arrived", len(seen))
		}
		if n := closes(); len(n) != 2 || n[0] != 1 || n[1] != 1 {
			t.Errorf("the bodies were closed %v times", n)
		}
	})
}

// TestStaleConnectionNeedsNoLookup: the route of a connection that went stale is
// taken again as it is.
func TestStaleConnectionNeedsNoLookup(t *testing.T) {
	names := &loopbackNames{}
	listener := listenLoopback(t, "127.0.0.1")
	startFaultyPeer(t, listener, func(c *peerConn) {
		for c.readRequest() && len(c.peer.seen()) != 2 {
			c.send(rawAnswer("200 OK", "ok"))
		}
	})
	client := h1Client(t, catena.WithDNS(names))
	url := fmt.Sprintf("http://origin.test:%d/", listener.Addr().(*net.TCPAddr).Port)
	for _, want := range []string{`200 "ok"`, "200 \"ok\"\nread, reused, written, again: stale-connection"} {
		if got := outcomeOf(client.Do(bodyRequest(t, "GET", url, ""))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if len(names.asked) != 1 {
		t.Errorf("%d lookups, want 1", len(names.asked))
	}
}
