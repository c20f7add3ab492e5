package connection

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

// hold begins an exchange that takes the place of one until it is finished.
func (w *world) hold(url string) *call {
	w.t.Helper()
	c := w.newCall(w.t.Context(), url)
	if err := c.connect(); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (c *call) finish() {
	c.w.t.Helper()
	resp, err := c.roundTrip()
	if err != nil {
		c.w.t.Error(err)
	} else {
		io.Copy(io.Discard, resp.Body)
	}
	c.end(resp, err)
}

// record is numbers in the order in which goroutines added them.
type record struct {
	mu   sync.Mutex // guards list
	list []int
}

func (r *record) add(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, i)
}

func (r *record) all() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list
}

// Calls that find the limit reached are served in the order in which they came.
func TestWaitingIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{MaxPerAddress: 2}, nil)
		w.host("a.test", "192.0.2.1", hello)
		one, two := w.hold("http://a.test/"), w.hold("http://a.test/")
		var order record
		for i := range 6 {
			go func() {
				c := w.hold("http://a.test/")
				order.add(i)
				time.Sleep(time.Second)
				c.finish()
			}()
			synctest.Wait()
		}
		if s := w.pool.Stats(); s.Waiting != 6 || s.Open != 2 {
			t.Errorf("the pool has %v", s)
		}
		one.finish()
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5}, order.all()); diff != "" {
			t.Errorf("served in the order (-want +got)\n%s", diff)
		}
		two.finish()
		if n := w.net.Dials("192.0.2.1:80"); n != 2 {
			t.Errorf("%d connections were opened", n)
		}
		w.expect(2, 2)
	})
}

// Other addresses do not wait.
func TestLimitIsPerAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{MaxPerAddress: 1}, nil)
		w.host("a.test", "192.0.2.1", hello)
		w.host("b.test", "192.0.2.2", hello)
		a := w.hold("http://a.test/")
		w.get("http://b.test/")
		a.finish()
	})
}

func TestWaitingIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{MaxPerAddress: 1}, nil)
		w.host("a.test", "192.0.2.1", hello)
		holder := w.hold("http://a.test/")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := w.newCall(ctx, "http://a.test/")
		err := c.connect()
		if err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		c.end(nil, err)
		if a := c.a.Attempts(); len(a) != 1 || a[0].Step != event.StepQueue || a[0].Why != event.ReasonCanceled || a[0].Duration != time.Second {
			t.Errorf("the attempts are %+v", a)
		}
		if s := w.pool.Stats(); s.Waiting != 0 {
			t.Errorf("the pool has %v", s)
		}
		holder.finish()
		w.get("http://a.test/")
		w.expect(1, 1)
	})
}

// What is granted to a call that has just given up, a connection or leave to open
// one, goes to the next one.
func TestGrantToCanceledCallIsPassedOn(t *testing.T) {
	for i := range 300 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, PoolOptions{MaxPerAddress: 1}, nil)
			w.host("a.test", "192.0.2.1", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if i%2 == 0 {
					rw.Header().Set("Connection", "close")
				}
				hello(rw, r)
			}))
			holder := w.hold("http://a.test/")
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				c := w.newCall(ctx, "http://a.test/")
				if err := c.connect(); err != nil {
					c.end(nil, err)
				} else {
					c.finishOrFail()
				}
			})
			synctest.Wait()
			wg.Go(func() { w.get("http://a.test/") })
			synctest.Wait()
			wg.Go(cancel)
			wg.Go(holder.finish)
			wg.Wait()
			if s := w.pool.Stats(); s.Waiting != 0 || s.Open != 1-(i+1)%2 {
				t.Errorf("the pool has %v", s)
			}
		})
	}
}

// The same, step by step: the grant is there before the call notices its end.
func TestGrantBesideTheEnd(t *testing.T) {
	p := NewPool(PoolOptions{MaxPerAddress: 1})
	a := route.Address{Scheme: "http", Host: "a.test", Port: 80}
	if _, err := p.mayOpen(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	for range 100 { // a select between the two chooses by chance
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := p.mayOpen(ctx, a)
			done <- err
		}()
		for p.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		p.mu.Lock() // the call can't leave the queue meanwhile
		cancel()
		ap := p.addresses[a]
		ap.open--
		grants := p.serve(ap)
		p.mu.Unlock()
		deliver(grants)
		if err := <-done; err != nil {
			// It passed the leave on: to nobody, so that the place is free.
			if _, err := p.mayOpen(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		if n := p.at(a).open; n != 1 {
			t.Fatalf("%d places are taken", n)
		}
	}
	p.giveUp(a)
	if len(p.addresses) != 0 {
		t.Error("the address is still known")
	}
}

// finishOrFail ends an exchange that may have been canceled.
func (c *call) finishOrFail() {
	resp, err := c.roundTrip()
	if err == nil {
		io.Copy(io.Discard, resp.Body)
		c.a.Settle()
		resp.Body.Close()
		c.life.Finish()
		return
	}
	c.a.Fail(err)
	c.end(nil, err)
}

// A connection that could not be opened, or is dead when it comes free, leaves
// its place to the next one.
func TestPlaceOfFailedConnectionIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{MaxPerAddress: 1}, nil)
		var accepted atomic.Int32
		w.raw("a.test", "192.0.2.1", func(n int, c net.Conn) {
			accepted.Add(1)
			buf := make([]byte, 4096)
			if _, err := c.Read(buf); err == nil {
				// Closes without a word after one response.
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello from ")
			}
		})
		const calls = 20
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() { w.get("http://a.test/") })
		}
		wg.Wait()
		if s := w.pool.Stats(); s.Waiting != 0 || s.Open > 1 {
			t.Errorf("the pool has %v", s)
		}
		if n := accepted.Load(); n != calls {
			t.Errorf("%d connections were opened for %d calls", n, calls)
		}
	})
}

// A call that is granted a connection which turns out to be dead keeps its place
// in the order: it opens the next one.
func TestDeadGrantDoesNotCostThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{MaxPerAddress: 1}, nil)
		w.raw("a.test", "192.0.2.1", func(n int, c net.Conn) {
			buf := make([]byte, 4096)
			if _, err := c.Read(buf); err == nil {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello from ")
			}
		})
		holder := w.hold("http://a.test/")
		var order record
		for i := range 6 {
			go func() {
				c := w.hold("http://a.test/")
				order.add(i)
				resp, err := c.roundTrip()
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					time.Sleep(time.Second) // the server closes meanwhile
				}
				c.end(resp, err)
			}()
			synctest.Wait()
		}
		holder.finish()
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5}, order.all()); diff != "" {
			t.Errorf("served in the order (-want +got)\n%s", diff)
		}
	})
}

// Calls come, are canceled anywhere and fail; nobody waits for ever and no place
// is lost: the twenty calls that follow have them all.
func TestCancelingKeepsEveryPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 4
		w := newWorld(t, PoolOptions{MaxPerAddress: limit}, nil)
		var open, most atomic.Int32
		w.host("a.test", "192.0.2.1", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			n := open.Add(1)
			defer open.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(5 * time.Millisecond)
			hello(rw, r)
		}))
		random := rand.New(rand.NewPCG(1, 2))
		var wg sync.WaitGroup
		for round := range 10 {
			for range 50 {
				patience := time.Duration(random.IntN(8000)) * time.Microsecond
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					w.do(ctx, "http://a.test/")
				})
			}
			wg.Wait()
			if s := w.pool.Stats(); s.Waiting != 0 || s.Open != s.Idle || s.Open > limit {
				t.Fatalf("round %d: the pool has %v", round, s)
			}
		}
		start := time.Now()
		for range 20 {
			wg.Go(func() { w.get("http://a.test/") })
		}
		wg.Wait()
		if took := time.Since(start); took > 20/limit*10*time.Millisecond { // one probe or another included
			t.Errorf("20 calls took %v", took)
		}
		if w.pool.Stats().Waiting != 0 || len(w.pool.addresses) != 1 {
			t.Error("something is left")
		}
	})
}
