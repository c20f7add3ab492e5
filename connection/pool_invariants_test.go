package connection

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// Many goroutines do at random what calls do, in real time, while the pool's
// books are checked; in the end nobody waits and nothing is left.
func TestPoolInvariants(t *testing.T) {
	const limit = 3
	serve := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "close") { // on HTTP/2 a GOAWAY
			rw.Header().Set("Connection", "close")
		}
		hello(rw, r)
	})
	for name, prepare := range map[string]func(*world){
		"HTTP/1.1": func(w *world) {
			for i := range 3 {
				w.host(fmt.Sprintf("h%d.test", i), fmt.Sprintf("192.0.2.%d", i+1), serve)
			}
		},
		"plain proxy": func(w *world) {
			w.network = w.network.With(func(n *route.Network) {
				n.ProxySelector = proxy.Fixed(proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 80})
			})
			w.host("p.test", "192.0.2.9", serve)
			// A connection may come over from another address before the leave to
			// open one is given back.
			w.transit = limit
		},
		"HTTP/2": func(w *world) {
			w.network = w.network.With(priorKnowledge)
			for i := range 3 {
				w.http2Host(fmt.Sprintf("h%d.test", i), fmt.Sprintf("192.0.2.%d", i+1), 2, serve)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, PoolOptions{MaxPerAddress: limit, MaxIdlePerAddress: 2, MaxIdle: 4, KeepAlive: 5 * time.Millisecond}, nil)
			prepare(w)
			stop := w.keepChecking(limit)
			var wg sync.WaitGroup
			for g := range 16 {
				wg.Go(func() { w.callAtRandom(rand.New(rand.NewPCG(uint64(g), 7)), 60) })
			}
			wg.Wait()
			stop()
			w.pool.EvictAll()
			w.expect(0, 0)
			if len(w.pool.addresses) != 0 {
				t.Errorf("%d addresses are still known", len(w.pool.addresses))
			}
		})
	}
}

// callAtRandom makes calls, patient ones and others, and disturbs the pool.
func (w *world) callAtRandom(random *rand.Rand, calls int) {
	for range calls {
		url := fmt.Sprintf("http://h%d.test/", random.IntN(3))
		switch random.IntN(8) {
		case 0:
			url += "close"
		case 1:
			w.pool.EvictAll()
		case 2:
			time.Sleep(time.Duration(random.IntN(6)) * time.Millisecond)
		}
		patience := time.Minute
		if random.IntN(3) == 0 {
			patience = time.Duration(random.IntN(3000)) * time.Microsecond
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), patience)
		if _, c, err := w.do(ctx, url); err != nil && ctx.Err() == nil && !unlucky(c) {
			w.t.Errorf("%s: %v", url, err)
		}
		cancel()
	}
}

// unlucky reports whether a call met a connection at its end, or without a
// stream: RetryAndFollowUp would have tried again.
func unlucky(c *call) bool {
	a := c.a.Attempts()
	if len(a) == 0 {
		return false
	}
	last := a[len(a)-1]
	var unprocessed *UnprocessedError
	return last.Reused || errors.As(last.Err, &unprocessed)
}

// keepChecking checks the pool's books until stop is called.
func (w *world) keepChecking(limit int) (stop func()) {
	done := make(chan struct{})
	var checker sync.WaitGroup
	checker.Go(func() {
		for {
			select {
			case <-done:
				w.checkBooks(limit)
				return
			case <-time.After(200 * time.Microsecond):
				w.checkBooks(limit)
			}
		}
	})
	return func() {
		close(done)
		checker.Wait()
	}
}

// checkBooks compares the pool's counters with its lists.
func (w *world) checkBooks(limit int) {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := 0
	for c := range p.idle.All() {
		idle++
		if c.holders != 0 || !c.pooled || c.noNewExchanges {
			w.t.Errorf("an idle connection has %d holders, pooled %v, retired %v", c.holders, c.pooled, c.noNewExchanges)
		}
		if c.home != p.addresses[c.address] {
			w.t.Error("an idle connection's place is not that of its address")
		}
	}
	if idle != p.idle.Len() || p.idle.Len() > p.maxIdle {
		w.t.Errorf("%d idle connections are listed, %d counted", idle, p.idle.Len())
	}
	open := 0
	for a, ap := range p.addresses {
		open += ap.open
		if ap.open < 0 || ap.open > limit+w.transit {
			w.t.Errorf("%v: %d open connections", a, ap.open)
		}
		if len(ap.idle) > p.maxIdlePerAddress || len(ap.idle) > ap.open {
			w.t.Errorf("%v: %d idle of %d", a, len(ap.idle), ap.open)
		}
		if !ap.waiters.empty() && (ap.open < limit || len(ap.idle) > 0) {
			w.t.Errorf("%v: %d calls wait though %d connections are open and %d idle", a, ap.waiters.len, ap.open, len(ap.idle))
		}
	}
	if p.open > open || p.open < p.idle.Len() {
		w.t.Errorf("%d connections are known, %d counted by address, %d idle", p.open, open, p.idle.Len())
	}
	if (p.timer != nil) && p.open == 0 {
		w.t.Error("an empty pool has a timer")
	}
}
