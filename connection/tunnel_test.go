package connection

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"

	"github.com/catena-http/catena/route"
)

// What a CONNECT looks like, and that nothing else comes before the answer.
func TestConnectRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		url    string
		want   string
	}{
		"minimal": {nil, "https://a.test/", connectTo("a.test:443", keepAlive)},
		"IPv6":    {nil, "https://[2001:db8::1%25eth0]:8443/", connectTo("[2001:db8::1]:8443", keepAlive)},
		"no User-Agent": {
			func(w *world) { w.terms.UserAgent = "" }, "https://a.test/",
			"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n" + keepAlive + "\r\n\r\n",
		},
		"extra fields": {
			func(w *world) {
				w.network = w.network.With(func(n *route.Network) {
					n.ProxyConnectHeader = http.Header{"x-tenant": {"7", "8"}, "User-Agent": {"mine"}}
				})
			}, "https://a.test/",
			"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n" + keepAlive + "\r\nUser-Agent: mine\r\nX-Tenant: 7\r\nX-Tenant: 8\r\n\r\n",
		},
		"extra fields without User-Agent": {
			func(w *world) {
				w.network = w.network.With(func(n *route.Network) { n.ProxyConnectHeader = http.Header{"User-Agent": {""}} })
			}, "https://a.test/",
			"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n" + keepAlive + "\r\n\r\n",
		},
		"the proxy's user goes first": {
			func(w *world) {
				w.network = w.network.With(func(n *route.Network) { n.ProxyConnectHeader = http.Header{"Proxy-Authorization": {"x"}} })
				p := proxyNamed("p.test")
				p.User = url.UserPassword("ada", "s:t")
				w.through(p)
			}, "https://a.test/",
			connectTo("a.test:443", "Proxy-Authorization: Basic YWRhOnM6dA==", keepAlive),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				w.terms.UserAgent = "test"
				w.secureHost()
				p := w.newProxy(&fakeProxy{})
				if tc.change != nil {
					tc.change(w)
				}
				if _, _, err := w.do(t.Context(), tc.url); err != nil && tc.url == "https://a.test/" {
					t.Error(err)
				}
				p.saw(tc.want)
			})
		})
	}
}

// Any 2xx opens the tunnel, whatever comes before it or stands in it.
func TestAnswersThatOpenATunnel(t *testing.T) {
	for _, answer := range []string{
		opened,
		"HTTP/1.1 201 Created\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 299\r\n\r\n",
		"HTTP/1.0 200 Connection established\r\nProxy-agent: old\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + opened,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, PoolOptions{}, trusting)
			w.secureHost()
			w.newProxy(&fakeProxy{answer: func(int, string) string { return answer }})
			if body, _, err := w.do(t.Context(), "https://a.test/"); err != nil || body != "hello from a.test" {
				t.Errorf("%q: got %q, %v", answer, body, err)
			}
			w.expect(1, 1)
		})
	}
}

// A 407 is answered on the same socket where that is possible, otherwise on a new
// one, which is no failure of the route.
func TestSocketAfterChallenge(t *testing.T) {
	const denied = "HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"p\"\r\n"
	for name, tc := range map[string]struct {
		challenge string
		hangsUp   bool // after the challenge, which does not say so
		sockets   int
	}{
		"a body by length":               {challenge, false, 1},
		"no body":                        {denied + "Content-Length: 0\r\n\r\n", false, 1},
		"a body in chunks":               {denied + "Transfer-Encoding: chunked\r\n\r\n3\r\nyou\r\n0\r\n\r\n", false, 1},
		"an interim response before":     {"HTTP/1.1 103 X\r\n\r\n" + challenge, false, 1},
		"keep-alive in HTTP/1.0":         {"HTTP/1.0 407 X\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", false, 1},
		"HTTP/1.0":                       {"HTTP/1.0 407 X\r\nContent-Length: 1\r\n\r\nx", false, 2},
		"close":                          {denied + "Connection: close\r\nContent-Length: 1\r\n\r\nx", false, 2},
		"close in the old field":         {denied + "Proxy-Connection: close\r\nContent-Length: 1\r\n\r\nx", false, 2},
		"a body up to the end":           {denied + "Connection: close\r\n\r\nno", false, 2},
		"a body that is too large":       {denied + "Content-Length: 1000000\r\n\r\n" + strings.Repeat("x", 1e6), false, 2},
		"a body that does not come":      {denied + "Content-Length: 5\r\n\r\nhe", false, 2},
		"bytes after the body":           {challenge + "x", false, 2},
		"the connection is kept in word": {challenge, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				w.terms.UserAgent = "test"
				w.secureHost()
				p := w.newProxy(&fakeProxy{hangsUp: tc.hangsUp, answer: func(_ int, head string) string {
					if strings.Contains(head, "Proxy-Authorization: x\r\n") {
						return opened
					}
					return tc.challenge
				}})
				w.authenticator(credentials(func(int) string { return "x" }))
				_, c, err := w.do(t.Context(), "https://a.test/")
				if err != nil {
					t.Fatal(err)
				}
				p.saw(connectTo("a.test:443", keepAlive), connectTo("a.test:443", "Proxy-Authorization: x", keepAlive))
				if p.sockets != tc.sockets {
					t.Errorf("%d sockets, want %d", p.sockets, tc.sockets)
				}
				if diff := cmp.Diff([]string{"proxy-authenticate"}, decisions(c)); diff != "" {
					t.Errorf("decisions (-want +got):\n%s", diff)
				}
				var protocols []string // of ConnectEnd
				for _, e := range c.events.Events() {
					if e.Name == "ConnectEnd" {
						protocols = append(protocols, e.Protocol)
					}
				}
				want := []string{"", "http/1.1"}[2-tc.sockets:]
				if diff := cmp.Diff(want, protocols); diff != "" {
					t.Errorf("ends of connecting (-want +got):\n%s", diff)
				}
				if len(c.a.Attempts()) != 0 || w.database.Len() != 0 {
					t.Error("it is remembered as a failure")
				}
				w.get("https://a.test/") // by the tunnel in the pool
				w.expect(1, 1)
			})
		})
	}
}

// A refusal tells all that the proxy said, within bounds.
func TestProxyErrorOfARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, trusting)
		w.newProxy(&fakeProxy{answer: func(int, string) string {
			return "HTTP/1.1 403 Forbidden\r\nX-Rule: 7\r\nContent-Length: 10000\r\n\r\n" + strings.Repeat("blocked.\r\n", 1000)
		}})
		_, _, err := w.do(t.Context(), "https://a.test/")
		var refused *route.ProxyError
		if !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if refused.Head.Header.Get("X-Rule") != "7" || refused.Head.Request.Method != "CONNECT" || refused.Target != "a.test:443" {
			t.Errorf("got %+v", refused)
		}
		if len(refused.Body) != shownBytes || !strings.HasPrefix(string(refused.Body), "blocked.") {
			t.Errorf("body of %d bytes", len(refused.Body))
		}
		if b, err := io.ReadAll(refused.Head.Body); len(b) != 0 || err != nil {
			t.Errorf("the head's body: %q, %v", b, err)
		}
		if !errors.Is(err, &route.ProxyError{StatusCode: 403}) || errors.Is(err, &route.ProxyError{StatusCode: 502}) {
			t.Error("errors.Is does not go by status")
		}
	})
}

// HTTP/2 by prior knowledge goes through a tunnel, also where the server's first
// frame comes with the proxy's answer.
func TestPriorKnowledgeThroughTunnel(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTPS proxy: ", secure), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, func(n *route.Network) {
					trusting(n)
					priorKnowledge(n)
				})
				w.raw("a.test", "192.0.2.1", func(_ int, c net.Conn) { speakFirst(c) })
				p := &fakeProxy{eager: true}
				if secure {
					p.config = certified("p.test")
				}
				w.newProxy(p)
				w.terms.UserAgent = "test"
				if first, second := w.get("http://a.test/"), w.get("http://a.test/"); first != second {
					t.Errorf("connections %d and %d", first, second)
				}
				p.saw(connectTo("a.test:80", keepAlive))
			})
		})
	}
}

// speakFirst is an HTTP/2 server that does not wait for the client's preface.
func speakFirst(c net.Conn) {
	f := http2.NewFramer(c, c)
	f.WriteSettings()
	io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			const status200 = 0x88 // in HPACK's static table
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: frame.StreamID, BlockFragment: []byte{status200}, EndHeaders: true})
			f.WriteData(frame.StreamID, true, []byte("hello from a server"))
		}
	}
}

// Calls to one HTTP/2 origin share a tunnel, also those that begin together.
func TestHTTP2SharesATunnel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, trusting)
		config := certified("a.test")
		config.NextProtos = []string{"h2"}
		w.tlsHost("a.test", "192.0.2.1", config, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			hello(rw, r)
		}))
		p := w.newProxy(&fakeProxy{})
		var ids sync.Map
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() { ids.Store(w.get("https://a.test/"), true) })
		}
		calls.Wait()
		w.get("https://a.test/")
		distinct := 0
		ids.Range(func(any, any) bool { distinct++; return true })
		if distinct != 1 || p.sockets > 5 {
			t.Errorf("%d connections carried the calls, through %d sockets", distinct, p.sockets)
		}
		w.expect(1, 1)
	})
}
