package connection

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// reuses are the call's decisions about pooled and held connections.
func (c *call) reuses() (whys []event.Reason) {
	for _, e := range c.events.Events() {
		if e.Name == "ReuseDecision" {
			whys = append(whys, e.Why)
		}
	}
	return whys
}

// follow sends another request of the same call and reads its response.
func (c *call) follow(t *testing.T, rawURL string) *http.Response {
	t.Helper()
	c.a.NewRoutes()
	c.request = c.request.Clone(c.request.Context())
	var err error
	if c.request.URL, err = url.Parse(rawURL); err != nil {
		t.Fatal(err)
	}
	c.request.Host = ""
	if err := c.connect(); err != nil {
		t.Fatal(err)
	}
	resp, err := c.roundTrip()
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// What becomes of the connection that a call holds from its exchange before.
func TestHeldConnection(t *testing.T) {
	read := func(_ *world, r *http.Response) { io.Copy(io.Discard, r.Body) }
	for name, tc := range map[string]struct {
		path    string
		between func(*world, *http.Response)
		next    string
		why     event.Reason
		same    bool
	}{
		"read to its end":    {"/", read, "http://a.test/", event.ReasonHeld, true},
		"closed":             {"/", func(_ *world, r *http.Response) { r.Body.Close() }, "http://a.test/", event.ReasonHeld, true},
		"left open":          {"/", func(*world, *http.Response) {}, "http://a.test/", event.ReasonUnreadBody, false},
		"another host":       {"/", read, "http://b.test/", event.ReasonOtherHost, false},
		"another port":       {"/", read, "http://a.test:81/", event.ReasonOtherHost, false},
		"connection: close":  {"/close", read, "http://a.test/", event.ReasonRetired, false},
		"closed by the peer": {"/", func(w *world, r *http.Response) { read(w, r); w.net.Conns("192.0.2.1:80")[0].Close(); synctest.Wait() }, "http://a.test/", event.ReasonUnhealthy, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, nil)
				h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/close" {
						rw.Header().Set("Connection", "close")
					}
					hello(rw, r)
				})
				w.host("a.test", "192.0.2.1", h)
				w.host("b.test", "192.0.2.2", h)
				w.listen("192.0.2.1:81", &http.Server{Handler: h})
				c := w.newCall(t.Context(), "http://a.test"+tc.path)
				resp := c.follow(t, "http://a.test"+tc.path)
				first := c.exchange.conn
				tc.between(w, resp)
				resp = c.follow(t, tc.next)
				if same := c.exchange.conn == first; same != tc.same {
					t.Errorf("the same connection: %v", same)
				}
				io.Copy(io.Discard, resp.Body)
				c.end(resp, nil)
				if got := c.reuses(); len(got) == 0 || got[0] != tc.why {
					t.Errorf("decided for %v, want %v", got, tc.why)
				}
				if n := c.released.Load(); n != 1 {
					t.Errorf("let go of for good %d times", n)
				}
				if s := w.pool.Stats(); s.Open != s.Idle {
					t.Errorf("the pool has %v", s)
				}
			})
		})
	}
}

// A dead connection is passed over, and the search goes on in the pool.
func TestDeadPooledConnectionIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.host("a.test", "192.0.2.1", hello)
		w.idle("http://a.test/", 3)
		conns := w.net.Conns("192.0.2.1:80")
		conns[2].Close()                  // the one used last
		io.WriteString(conns[1], "stray") // and the one before
		synctest.Wait()
		_, c, err := w.do(t.Context(), "http://a.test/")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]event.Reason{event.ReasonUnhealthy, event.ReasonUnhealthy, event.ReasonPooled}, c.reuses()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		w.expect(1, 1)
	})
}

// A connection that turns out to be stale only when it is used says nothing
// against its route: that is taken again, without a lookup.
func TestStaleConnectionKeepsItsRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.raw("a.test", "192.0.2.1", func(n int, c net.Conn) {
			r := bufio.NewReader(c)
			for i := 0; ; i++ {
				if _, err := http.ReadRequest(r); err != nil || n == 0 && i == 1 {
					return // the first connection dies on its second request
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello from ")
			}
		})
		w.get("http://a.test/")
		c := w.newCall(t.Context(), "http://a.test/")
		if err := c.connect(); err != nil {
			t.Fatal(err)
		}
		_, err := c.roundTrip()
		if err == nil {
			t.Fatal("the dead connection answered")
		}
		f := c.a.Fail(err)
		if !f.Exchanged || !f.Reused || !f.Written || !f.MoreRoutes || f.Unprocessed {
			t.Errorf("the failure is %+v", f)
		}
		c.a.Decide(f, true, event.ReasonStaleConnection)
		c.a.Drop()
		if err := c.connect(); err != nil {
			t.Fatal(err)
		}
		resp, err := c.roundTrip()
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		c.end(resp, nil)
		if n := w.net.Lookups("a.test"); n != 1 {
			t.Errorf("%d lookups", n)
		}
		if w.database.Len() != 0 {
			t.Error("the route is remembered as failed")
		}
		if a := c.a.Attempts(); len(a) != 1 || !a[0].Reused || !a[0].Written || a[0].Step != event.StepRead || !a[0].Retried {
			t.Errorf("the attempts are %+v", a)
		}
	})
}

// The first exchange on a fresh connection that fails speaks against the route,
// and a proxy's selector is told.
func TestFailedFirstExchangeSpeaksAgainstTheRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &selector{}
		w := newWorld(t, PoolOptions{}, func(n *route.Network) { n.ProxySelector = told })
		w.raw("p.test", "192.0.2.9", func(_ int, c net.Conn) { c.Read(make([]byte, 1024)) })
		_, c, err := w.do(t.Context(), "http://a.test/x")
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
		if w.database.Len() != 1 {
			t.Error("the route is not remembered as failed")
		}
		if diff := cmp.Diff([]string{"http://a.test:80/ http://p.test:80"}, told.failures); diff != "" {
			t.Errorf("told (-want +got)\n%s", diff)
		}
		if a := c.a.Attempts(); len(a) != 1 || a[0].Addr != "192.0.2.9:80" || a[0].Proxy.Host != "p.test" || a[0].Reused {
			t.Errorf("the attempts are %+v", a)
		}
	})
}

// selector sends everything through p.test and remembers what failed.
type selector struct{ failures []string }

func (s *selector) Select(context.Context, *url.URL) ([]proxy.Proxy, error) {
	return []proxy.Proxy{{Type: proxy.HTTP, Host: "p.test", Port: 80}}, nil
}

func (s *selector) ConnectFailed(u *url.URL, p proxy.Proxy, err error) {
	s.failures = append(s.failures, u.String()+" "+p.String())
}

// A request that the server says it did not process goes by the same route, and
// the connection is given up on the second refusal, or at once on a GOAWAY.
func TestUnprocessedRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse func(f *xhttp2.Framer, stream uint32)
		closed int // after two refusals
	}{
		"REFUSED_STREAM": {func(f *xhttp2.Framer, stream uint32) { f.WriteRSTStream(stream, xhttp2.ErrCodeRefusedStream) }, 1},
		"GOAWAY":         {func(f *xhttp2.Framer, stream uint32) { f.WriteGoAway(0, xhttp2.ErrCodeNo, nil) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, priorKnowledge)
				requests := 0
				w.rawHTTP2("a.test", "192.0.2.1", func(_ int, f *xhttp2.Framer, stream uint32) bool {
					if requests++; requests <= 2 {
						tc.refuse(f, stream)
					} else {
						respond(f, stream)
					}
					return true
				})
				c := w.newCall(t.Context(), "http://a.test/")
				for i := range 3 {
					if err := c.connect(); err != nil {
						t.Fatal(err)
					}
					resp, err := c.roundTrip()
					if i == 2 {
						if err != nil {
							t.Fatal(err)
						}
						io.Copy(io.Discard, resp.Body)
						c.end(resp, nil)
						break
					}
					f := c.a.Fail(err)
					if !f.Exchanged || !f.Unprocessed || f.Refusals != i+1 || f.TooManyRefusals() || !f.MoreRoutes {
						t.Fatalf("failure %d is %+v", i, f)
					}
					c.a.Decide(f, true, event.ReasonNotProcessed)
					c.a.Drop()
				}
				if n := w.net.Lookups("a.test"); n != 1 {
					t.Errorf("%d lookups", n)
				}
				synctest.Wait()
				if n := len(w.closings()); n != tc.closed {
					t.Errorf("%d connections were closed: %v", n, w.closings())
				}
				w.expect(1, 1)
			})
		})
	}
}

// A Network that New would have refused is an error of the call.
func TestInvalidNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.network = w.network.With(func(n *route.Network) { n.PingInterval = -1 })
		if _, _, err := w.do(t.Context(), "http://a.test/"); err == nil {
			t.Error("no error")
		}
		w.expect(0, 0)
	})
}
