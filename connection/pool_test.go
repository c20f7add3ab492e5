package connection

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.host("a.test", "192.0.2.1", hello)
		first := w.get("http://a.test/")
		w.expect(1, 1)
		if again := w.get("http://a.test/x"); again != first {
			t.Error("the connection was not used again")
		}
		other := w.network.With(nil)
		old := w.network
		w.network = other
		if again := w.get("http://a.test/"); again == first {
			t.Error("a connection of another Network was used")
		}
		w.network = old
		if s := w.pool.Stats(); s.Connected != 2 || s.Reused != 1 {
			t.Errorf("counted %v", s)
		}
	})
}

// The connection used last is the one most likely to live.
func TestReuseIsLastInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.host("a.test", "192.0.2.1", hello)
		var calls []*call
		for range 3 {
			c := w.newCall(t.Context(), "http://a.test/")
			if err := c.connect(); err != nil {
				t.Fatal(err)
			}
			calls = append(calls, c)
		}
		for _, c := range calls {
			resp, err := c.roundTrip()
			if err == nil {
				io.Copy(io.Discard, resp.Body)
			}
			c.end(resp, err)
		}
		w.expect(3, 3)
		last := calls[2].exchange.conn.ID()
		for range 3 {
			if got := w.get("http://a.test/"); got != last {
				t.Errorf("connection %d was used, not the last one, %d", got, last)
			}
		}
	})
}

// idle opens n connections to a host at a time and lets them idle.
func (w *world) idle(url string, n int) {
	w.t.Helper()
	calls := make([]*call, n)
	for i := range calls {
		calls[i] = w.newCall(w.t.Context(), url)
		if err := calls[i].connect(); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, c := range calls {
		resp, err := c.roundTrip()
		if err != nil {
			w.t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		c.end(resp, nil)
	}
}

func TestIdleLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		opts PoolOptions
		a, b int // connections to two hosts
		idle int
	}{
		"defaults":              {PoolOptions{}, 70, 0, 64},
		"per address":           {PoolOptions{MaxIdlePerAddress: 2}, 5, 5, 4},
		"in all":                {PoolOptions{MaxIdle: 3}, 2, 2, 3},
		"none per address":      {PoolOptions{MaxIdlePerAddress: -1}, 2, 2, 0},
		"none":                  {PoolOptions{MaxIdle: -1}, 2, 2, 0},
		"no time":               {PoolOptions{KeepAlive: -1}, 2, 2, 0},
		"room enough":           {PoolOptions{MaxIdle: 4, MaxIdlePerAddress: 2}, 2, 2, 4},
		"open ones do not wait": {PoolOptions{MaxPerAddress: -1}, 10, 0, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tc.opts, nil)
				w.host("a.test", "192.0.2.1", hello)
				w.host("b.test", "192.0.2.2", hello)
				w.idle("http://a.test/", tc.a)
				w.idle("http://b.test/", tc.b)
				w.expect(tc.idle, tc.idle)
				want := event.ReasonIdleLimit
				if tc.opts.KeepAlive < 0 {
					want = event.ReasonIdleTimeout
				}
				for _, why := range w.closings() {
					if why != want {
						t.Errorf("closed for %q, want %q", why, want)
					}
				}
				if n := len(w.closings()); n != tc.a+tc.b-tc.idle {
					t.Errorf("%d connections were closed", n)
				}
				w.checkOldestWereClosed()
			})
		})
	}
}

// checkOldestWereClosed compares what was closed with what idles at an address.
func (w *world) checkOldestWereClosed() {
	w.t.Helper()
	for _, e := range w.events.Events() {
		for c := range w.pool.idle.All() {
			if e.Name == "Closed" && c.RemoteAddr().String() == e.Addr && c.ID() < e.ConnectionID {
				w.t.Errorf("connection %d was closed, the older %d was kept", e.ConnectionID, c.ID())
			}
		}
	}
}

// One timer closes what was idle for too long; an empty pool has none.
func TestEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{KeepAlive: time.Minute}, nil)
		w.host("a.test", "192.0.2.1", hello)
		w.host("b.test", "192.0.2.2", hello)
		if w.pool.timer != nil {
			t.Error("an empty pool has a timer")
		}
		w.get("http://a.test/")
		time.Sleep(40 * time.Second)
		w.get("http://b.test/")
		time.Sleep(20*time.Second - 1)
		synctest.Wait()
		w.expect(2, 2)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		w.expect(1, 1)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		w.expect(0, 0)
		if diff := cmp.Diff([]event.Reason{event.ReasonIdleTimeout, event.ReasonIdleTimeout}, w.closings()); diff != "" {
			t.Errorf("closed for (-want +got)\n%s", diff)
		}
		if w.pool.timer != nil {
			t.Error("an empty pool has a timer")
		}
		if s := w.pool.Stats(); s.Evicted != 2 {
			t.Errorf("counted %v", s)
		}
		w.get("http://a.test/")
		w.expect(1, 1)
		w.pool.EvictAll()
		if s := w.pool.Stats(); s.Evicted != 3 {
			t.Errorf("counted %v", s)
		}
		w.get("http://a.test/")
		w.expect(1, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.expect(0, 0)
	})
}

// Use starts the idle time anew.
func TestUsePutsEvictionOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{KeepAlive: time.Minute}, nil)
		w.host("a.test", "192.0.2.1", hello)
		first := w.get("http://a.test/")
		for range 10 {
			time.Sleep(59 * time.Second)
			if got := w.get("http://a.test/"); got != first {
				t.Fatal("a connection in use was given up")
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		w.expect(0, 0)
	})
}

// A server says how long it keeps a connection; it is given up a second before.
func TestKeepAliveHint(t *testing.T) {
	for hint, life := range map[string]time.Duration{"timeout=5": 4 * time.Second, "timeout=5, max=100": 4 * time.Second, "timeout=9999": time.Minute, "timeout=1": 0, "nonsense": time.Minute} {
		t.Run(hint, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{KeepAlive: time.Minute}, nil)
				w.host("a.test", "192.0.2.1", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Keep-Alive", hint)
					hello(rw, r)
				}))
				w.get("http://a.test/")
				if life > 0 {
					time.Sleep(life - 1)
					synctest.Wait()
					w.expect(1, 1)
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				w.expect(0, 0)
			})
		})
	}
}

func TestEvictAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.host("a.test", "192.0.2.1", hello)
		busy := w.newCall(t.Context(), "http://a.test/")
		if err := busy.connect(); err != nil {
			t.Fatal(err)
		}
		w.idle("http://a.test/", 3)
		w.expect(4, 3)
		w.pool.EvictAll()
		w.expect(1, 0)
		resp, err := busy.roundTrip()
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		busy.end(resp, nil)
		w.expect(1, 1)
		if w.get("http://a.test/") != busy.exchange.conn.ID() {
			t.Error("the connection that was in use is not used again")
		}
	})
}

func TestPoolClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.host("a.test", "192.0.2.1", hello)
		busy := w.newCall(t.Context(), "http://a.test/")
		if err := busy.connect(); err != nil {
			t.Fatal(err)
		}
		w.get("http://a.test/")
		w.expect(2, 1)
		w.pool.Close()
		w.pool.Close()
		w.expect(1, 0)
		resp, err := busy.roundTrip()
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		busy.end(resp, nil)
		w.expect(0, 0)
		w.get("http://a.test/") // goes on without keeping
		w.expect(0, 0)
		if w.pool.timer != nil || len(w.pool.addresses) != 0 {
			t.Error("something is left")
		}
	})
}

// A connection to a plain HTTP proxy serves whatever origin.
func TestPlainProxyIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, func(n *route.Network) {
			n.ProxySelector = proxy.Fixed(proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80})
		})
		w.host("p.test", "192.0.2.9", hello)
		first := w.get("http://a.test/")
		for _, url := range []string{"http://b.test/", "http://a.test/", "http://c.test:81/"} {
			if got := w.get(url); got != first {
				t.Errorf("%s: another connection to the proxy was opened", url)
			}
		}
		w.expect(1, 1)
		if len(w.pool.addresses) != 1 {
			t.Errorf("%d addresses are known", len(w.pool.addresses))
		}
	})
}

// What ends an exchange early, or spoils its connection, keeps it out of the pool.
func TestSpoiledConnectionsAreNotPooled(t *testing.T) {
	answer := func(s string) func(int, net.Conn) {
		return func(_ int, c net.Conn) {
			buf := make([]byte, 4096)
			for {
				if _, err := c.Read(buf); err != nil {
					return
				}
				io.WriteString(c, s)
			}
		}
	}
	end := func(s string) func(int, net.Conn) {
		return func(_ int, c net.Conn) {
			c.Read(make([]byte, 4096))
			io.WriteString(c, s)
		}
	}
	for name, tc := range map[string]struct {
		serve func(int, net.Conn)
		ok    bool
		why   event.Reason // of the close; "": it is pooled
	}{
		"good":               {answer("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello from "), true, ""},
		"connection: close":  {answer("HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nhello from "), true, event.ReasonConnectionClose},
		"HTTP/1.0":           {answer("HTTP/1.0 200 OK\r\nContent-Length: 11\r\n\r\nhello from "), true, event.ReasonConnectionClose},
		"up to the end":      {end("HTTP/1.1 200 OK\r\n\r\nhello from "), true, event.ReasonNotReusable},
		"bytes after it":     {answer("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello from HTTP/1.1 200 OK\r\n\r\n"), true, event.ReasonNotReusable},
		"length and chunked": {answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello from \r\n0\r\n\r\n"), true, event.ReasonNotReusable},
		"nonsense":           {answer("SSH-2.0-OpenSSH\r\n"), false, event.ReasonExchangeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, nil)
				w.raw("a.test", "192.0.2.1", tc.serve)
				_, _, err := w.do(t.Context(), "http://a.test/")
				if (err == nil) != tc.ok {
					t.Errorf("got %v", err)
				}
				synctest.Wait()
				if tc.why == "" {
					w.expect(1, 1)
					return
				}
				w.expect(0, 0)
				if diff := cmp.Diff([]event.Reason{tc.why}, w.closings()); diff != "" {
					t.Errorf("closed for (-want +got)\n%s", diff)
				}
			})
		})
	}
}

func TestCanceledExchangeIsNotPooled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.host("a.test", "192.0.2.1", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, c, err := w.do(ctx, "http://a.test/")
		if err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		w.expect(0, 0)
		if diff := cmp.Diff([]event.Reason{event.ReasonCanceled}, w.closings()); diff != "" {
			t.Errorf("closed for (-want +got)\n%s", diff)
		}
		if a := c.a.Attempts(); len(a) != 1 || a[0].Step != event.StepRead {
			t.Errorf("the attempts are %+v", a)
		}
	})
}

func TestPoolOptionsOfStats(t *testing.T) {
	p := NewPool(PoolOptions{})
	if got := fmt.Sprint(p.Stats()); got != "0 open, 0 idle, 0 waiting; 0 connected, 0 reused, 0 evicted" {
		t.Errorf("got %q", got)
	}
	if p.IdleCount() != 0 || p.ConnectionCount() != 0 {
		t.Error("an empty pool has connections")
	}
}
