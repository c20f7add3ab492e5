package connection

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// dialWith is a Network that dials by dial.
func dialWith(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(*route.Network) {
	return func(n *route.Network) { n.DialContext = dial }
}

// watched tells when it was closed.
type watched struct {
	net.Conn
	closed atomic.Bool
}

func (w *watched) Close() error {
	w.closed.Store(true)
	return w.Conn.Close()
}

// A dialer that does not obey its context does not hold the call up, and a
// connection that it delivers late is closed.
func TestDialerThatIgnoresItsContext(t *testing.T) {
	for name, tc := range map[string]struct {
		patience time.Duration // of the caller
		want     error
		took     time.Duration
	}{
		"call is canceled": {time.Second, context.DeadlineExceeded, time.Second},
		"connect timeout":  {time.Hour, &event.TimeoutError{Step: event.StepConnect, After: 10 * time.Second}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				late := make(chan *watched, 1)
				w := newWorld(t, PoolOptions{}, dialWith(func(context.Context, string, string) (net.Conn, error) {
					time.Sleep(time.Minute)
					ours, theirs := net.Pipe()
					theirs.Close()
					c := &watched{Conn: ours}
					late <- c
					return c, nil
				}))
				w.net.AddHost("a.test", "192.0.2.1")
				ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
				defer cancel()
				start := time.Now()
				_, _, err := w.do(ctx, "http://a.test/")
				if diff := cmp.Diff(tc.want.Error(), err.Error()); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				if took := time.Since(start); took != tc.took {
					t.Errorf("it took %v", took)
				}
				c := <-late
				synctest.Wait()
				if !c.closed.Load() {
					t.Error("the late connection is open")
				}
				w.expect(0, 0)
			})
		})
	}
}

// The deadline of the call's own context is the caller's, though a dialer that
// watches the clock itself notices it first.
func TestDialerThatNoticesTheDeadlineFirst(t *testing.T) {
	for range 50 {
		w := newWorld(t, PoolOptions{}, dialWith(func(ctx context.Context, _, _ string) (net.Conn, error) {
			deadline, _ := ctx.Deadline()
			for time.Now().Before(deadline) {
			}
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
		}))
		w.net.AddHost("a.test", "192.0.2.1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, _, err := w.do(ctx, "http://a.test/")
		cancel()
		if err != context.DeadlineExceeded {
			t.Fatalf("got %v", err)
		}
	}
}

func TestDialerResults(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		conn net.Conn
		err  error
		says string
	}{
		"neither": {nil, nil, "neither a connection nor an error"},
		"error":   {nil, boom, "boom"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, PoolOptions{}, dialWith(func(context.Context, string, string) (net.Conn, error) { return tc.conn, tc.err }))
			w.net.AddHost("a.test", "192.0.2.1")
			_, c, err := w.do(t.Context(), "http://a.test/")
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: got %v", name, err)
			}
			if a := c.a.Attempts(); len(a) != 1 || a[0].Step != event.StepConnect || a[0].Addr != "192.0.2.1:80" || a[0].Why != event.ReasonNoMoreRoutes {
				t.Errorf("%s: the attempts are %+v", name, a)
			}
			w.expect(0, 0)
		})
	}
}

// A dialer gets "tcp" and a resolved address, the proxy's where there is one.
func TestDialerArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		w := newWorld(t, PoolOptions{}, nil)
		w.network = w.network.With(func(n *route.Network) {
			n.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				got = append(got, network, addr)
				return w.net.DialContext(ctx, network, addr)
			}
			n.ProxySelector = proxyFor("p.test")
		})
		w.host("a.test", "192.0.2.1", hello)
		w.host("p.test", "2001:db8::9", hello)
		w.get("http://a.test/")
		w.get("http://proxied.test/")
		if diff := cmp.Diff([]string{"tcp", "192.0.2.1:80", "tcp", "[2001:db8::9]:80"}, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// Each step has the whole connect timeout.
func TestConnectTimeoutIsPerStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.net.AddHost("a.test", "192.0.2.1", "192.0.2.2")
		w.net.SetFaults("192.0.2.1:80", simnet.Faults{BlackHole: true})
		w.net.SetFaults("192.0.2.2:80", simnet.Faults{BlackHole: true})
		start := time.Now()
		_, c, err := w.do(t.Context(), "http://a.test/")
		var timeout *event.TimeoutError
		if !errors.As(err, &timeout) || timeout.Step != event.StepConnect || timeout.After != 10*time.Second {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("two addresses took %v", took)
		}
		if a := c.a.Attempts(); len(a) != 2 || !a[0].Retried || a[1].Retried || a[0].Duration != 10*time.Second {
			t.Errorf("the attempts are %+v", a)
		}
		if w.database.Len() != 2 {
			t.Errorf("%d routes are remembered as failed", w.database.Len())
		}
	})
}

func TestTLSHandshakeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.net.AddHost("a.test", "192.0.2.1")
		l, err := w.net.Listen("192.0.2.1:443")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		start := time.Now()
		_, c, err := w.do(t.Context(), "https://a.test/")
		var timeout *event.TimeoutError
		if !errors.As(err, &timeout) || timeout.Step != event.StepTLS || !errors.Is(err, context.DeadlineExceeded) && !timeout.Timeout() {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		names := c.events.Names()
		want := []string{"ProxySelectStart", "ProxySelectEnd", "DNSStart", "DNSEnd", "ConnectStart", "SecureConnectStart", "SecureConnectEnd", "ConnectFailed"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// The next address is tried, and the failed one last from then on.
func TestNextRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.host("a.test", "192.0.2.2", hello)
		w.net.AddHost("a.test", "192.0.2.1", "192.0.2.2")
		w.net.SetFaults("192.0.2.1:80", simnet.Faults{Refuse: true})
		_, c, err := w.do(t.Context(), "http://a.test/")
		if err != nil {
			t.Fatal(err)
		}
		if a := c.a.Attempts(); len(a) != 1 || !errors.Is(a[0].Err, syscall.ECONNREFUSED) || a[0].Why != event.ReasonNextRoute {
			t.Errorf("the attempts are %+v", a)
		}
		w.pool.EvictAll()
		if _, c, err = w.do(t.Context(), "http://a.test/"); err != nil || len(c.a.Attempts()) != 0 {
			t.Errorf("then: %v, %+v", err, c.a.Attempts())
		}
		if n := w.net.Dials("192.0.2.1:80"); n != 1 {
			t.Errorf("the bad address was dialed %d times", n)
		}
	})
}

// Prior knowledge of cleartext HTTP/2 excludes TLS: an error before anything is
// asked or dialed.
func TestPriorKnowledgeExcludesTLS(t *testing.T) {
	w := newWorld(t, PoolOptions{}, priorKnowledge)
	_, c, err := w.do(t.Context(), "https://a.test/")
	if !errors.Is(err, ErrPriorKnowledge) {
		t.Errorf("got %v", err)
	}
	if tries := c.a.Attempts(); len(tries) != 1 || tries[0].Retried || tries[0].Why != event.ReasonUnsupported {
		t.Errorf("the attempts are %+v", tries)
	}
	if names := c.events.Names(); len(names) != 0 {
		t.Errorf("events: %v", names)
	}
	w.expect(0, 0)
	if w.database.Len() != 0 || len(w.pool.addresses) != 0 {
		t.Error("something is remembered")
	}
}

// The steps of connecting, and what is reported where they fail, leave no
// connection open.
func TestFailedConnectLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns []*watched
		w := newWorld(t, PoolOptions{}, nil)
		w.network = w.network.With(dialWith(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := w.net.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			conns = append(conns, &watched{Conn: c})
			return conns[len(conns)-1], nil
		}))
		w.net.AddHost("a.test", "192.0.2.1")
		w.listen("192.0.2.1:443", &http.Server{Handler: hello}) // speaks no TLS
		_, _, err := w.do(t.Context(), "https://a.test/")
		if err == nil || !strings.Contains(err.Error(), "speaks HTTP without TLS") {
			t.Errorf("got %v", err)
		}
		if len(conns) != 1 || !conns[0].closed.Load() {
			t.Error("the connection is open")
		}
		w.expect(0, 0)
		if len(w.pool.addresses) != 0 {
			t.Error("the address is still known")
		}
	})
}

// A server that speaks another protocol on the port is recognised.
func TestWrongProtocolOnThePort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, priorKnowledge)
		w.raw("a.test", "192.0.2.1", func(_ int, c net.Conn) {
			buf := make([]byte, 1024)
			c.Read(buf)
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		})
		start := time.Now()
		_, _, err := w.do(t.Context(), "http://a.test/")
		if err == nil || !strings.Contains(err.Error(), "HTTP/1") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// proxyFor sends hosts named "proxied.test" through a proxy.
func proxyFor(host string) proxy.SelectorFunc {
	return func(_ context.Context, u *url.URL) ([]proxy.Proxy, error) {
		if u.Hostname() == "proxied.test" {
			return []proxy.Proxy{{Type: proxy.HTTP, Host: host, Port: 80}}, nil
		}
		return nil, nil
	}
}
