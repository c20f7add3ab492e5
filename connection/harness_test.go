package connection

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// world is a network in memory, a pool, and what calls need besides.
type world struct {
	t        *testing.T
	net      *simnet.Network
	network  *route.Network
	pool     *Pool
	database *route.Database
	events   *event.ConnectionRecorder
	terms    Terms
	transit  int // connections of an address over the limit, for a moment
}

// newWorld ends with the test: everything is closed, and what the connection
// listener was told makes sense.
func newWorld(t *testing.T, opts PoolOptions, change func(*route.Network)) *world {
	w := &world{
		t: t, net: simnet.New(), pool: NewPool(opts), database: &route.Database{}, events: event.NewConnectionRecorder(),
		terms: Terms{ConnectTimeout: 10 * time.Second, MaxInterim: 10, Exchange: wire.Exchange{
			ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 18, MaxHeaderFields: 1000,
		}},
	}
	w.network = (&route.Network{
		DNS: w.net, DialContext: w.net.DialContext,
		ProxySelector: proxy.Fixed(proxy.Proxy{}), ConnectionListener: w.events,
	}).With(change)
	if err := w.network.Validate(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.pool.Close()
		w.net.Close()
		if err := catenatest.CheckConnectionEvents(w.events.Events()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// host is a server on its own address, 192.0.2.n:80, known by name.
func (w *world) host(name, ip string, h http.Handler) {
	w.t.Helper()
	w.net.AddHost(name, ip)
	w.listen(net.JoinHostPort(ip, "80"), &http.Server{Handler: h})
}

func (w *world) listen(addr string, s *http.Server) {
	w.t.Helper()
	l, err := w.net.Listen(addr)
	if err != nil {
		w.t.Fatal(err)
	}
	go s.Serve(l) // ends with Close
	w.t.Cleanup(func() { s.Close() })
}

// raw is a server that treats each connection as serve does, on a goroutine each.
func (w *world) raw(name, ip string, serve func(n int, c net.Conn)) {
	w.t.Helper()
	w.net.AddHost(name, ip)
	l, err := w.net.Listen(net.JoinHostPort(ip, "80"))
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(n, c)
			}()
		}
	}()
	w.t.Cleanup(func() { l.Close() })
}

// hello answers with its host.
var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello from "+r.Host) })

var lastTestCall atomic.Uint64

// call is a call without interceptors: the owner of a StreamAllocation.
type call struct {
	w        *world
	id       uint64
	life     lifetime.Context
	a        StreamAllocation
	events   *event.Recorder
	exchange *Exchange
	request  *http.Request
	released atomic.Int32
}

func (c *call) ID() uint64                               { return c.id }
func (c *call) Request() *http.Request                   { return c.request }
func (c *call) RedactedHeader(h http.Header) http.Header { return h }
func (c *call) RedactedURL(u *url.URL) string            { return u.Redacted() }
func (c *call) BodyFailed(err error) error               { return err }

func (c *call) Released(error) {
	c.released.Add(1)
	if c.exchange != nil && !c.exchange.over.Load() {
		c.w.t.Error("the connection was let go of before the exchange was over")
	}
}

func (w *world) newCall(ctx context.Context, rawURL string) *call {
	c := &call{w: w, id: lastTestCall.Add(1), events: event.NewRecorder()}
	c.life.Init(ctx, nil)
	c.life.Watch()
	req, err := http.NewRequestWithContext(&c.life, "GET", rawURL, nil)
	if err != nil {
		panic(err)
	}
	c.request = req
	c.a.Init(c, c, c.events, &c.life, w.database)
	return c
}

// connect finds a connection and begins the exchange. It may be called again
// after retry or for a request that follows.
func (c *call) connect() error {
	address, err := route.NewAddress(c.request.URL, c.w.network)
	if err != nil {
		return err
	}
	c.exchange, err = c.a.NewExchange(address, c.w.pool, c.request, c.w.terms)
	return err
}

// roundTrip sends the request and reads the response's head.
func (c *call) roundTrip() (*http.Response, error) {
	if err := c.exchange.WriteRequestHeaders(c.request, 0, true); err != nil {
		return nil, err
	}
	return c.exchange.ReadResponseHeaders(nil)
}

// end is what Execute does with an error, and what the application does with a
// body.
func (c *call) end(resp *http.Response, err error) {
	if err != nil {
		c.a.Abort()
	} else {
		c.a.Settle()
		resp.Body.Close()
	}
	c.life.Finish()
}

// do is a call from beginning to end: the body as a string.
func (w *world) do(ctx context.Context, rawURL string) (body string, c *call, err error) {
	c = w.newCall(ctx, rawURL)
	if err = c.connect(); err != nil {
		c.end(nil, err)
		return "", c, err
	}
	resp, err := c.roundTrip()
	if err != nil {
		c.a.Decide(c.a.Fail(err), false, event.ReasonNotRecoverable)
		c.end(nil, err)
		return "", c, err
	}
	c.a.Settle()
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	c.life.Finish()
	return string(b), c, err
}

// get is do for a call that must succeed; it returns the connection's ID.
func (w *world) get(rawURL string) uint64 {
	w.t.Helper()
	body, c, err := w.do(w.t.Context(), rawURL)
	if err != nil {
		w.t.Fatalf("%s: %v", rawURL, err)
	}
	if !strings.HasPrefix(body, "hello from ") {
		w.t.Fatalf("%s: got %q", rawURL, body)
	}
	return c.exchange.conn.ID()
}

// stats compares the pool's counters that tests are about.
func (w *world) expect(open, idle int) {
	w.t.Helper()
	if s := w.pool.Stats(); s.Open != open || s.Idle != idle {
		w.t.Errorf("the pool has %v; want %d open, %d idle", s, open, idle)
	}
}

// closings are why connections were closed, in order.
func (w *world) closings() (whys []event.Reason) {
	for _, e := range w.events.Events() {
		if e.Name == "Closed" {
			whys = append(whys, e.Why)
		}
	}
	return whys
}
