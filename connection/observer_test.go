package connection

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

// gate is a listener whose NoNewExchanges waits until it may go on.
type gate struct {
	event.NopConnectionListener
	names   []string // one event at a time: needs no lock
	entered chan struct{}
	goOn    chan struct{}
}

func (g *gate) NoNewExchanges(event.Connection, event.Reason) {
	g.names = append(g.names, "NoNewExchanges")
	close(g.entered)
	<-g.goOn
}

func (g *gate) Released(event.Connection, event.Call) { g.names = append(g.names, "Released") }

func (g *gate) Closed(event.Connection, event.Reason) { g.names = append(g.names, "Closed") }

// Who announces while another one sends leaves the event to that one and goes on.
func TestObserverSendsOneAtATime(t *testing.T) {
	g := &gate{entered: make(chan struct{}), goOn: make(chan struct{})}
	c := &RealConnection{observer: newObserver(g)}
	var wg sync.WaitGroup
	wg.Go(func() { c.observer.noNewExchanges(c, event.ReasonEvicted) })
	<-g.entered
	c.observer.noNewExchanges(c, event.ReasonGoAway) // is known
	c.observer.released(c, nil)
	c.observer.closed(c, event.ReasonEvicted)
	c.observer.closed(c, event.ReasonGoAway) // is known
	close(g.goOn)
	wg.Wait()
	if diff := cmp.Diff([]string{"NoNewExchanges", "Released", "Closed"}, g.names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Two goroutines that find at the same time that a connection is through do not
// announce its end before its retirement.
func TestObserverKeepsOrderUnderRaces(t *testing.T) {
	for range 2000 {
		e := &endings{}
		c := &RealConnection{observer: newObserver(e)}
		var wg sync.WaitGroup
		wg.Go(func() { c.observer.noNewExchanges(c, event.ReasonGoAway) })
		wg.Go(func() {
			c.observer.noNewExchanges(c, event.ReasonEvicted)
			c.observer.closed(c, event.ReasonEvicted)
		})
		wg.Wait()
		if diff := cmp.Diff([]string{"NoNewExchanges", "Closed"}, e.names); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
}

// endings records how a connection ends; one event at a time needs no lock.
type endings struct {
	event.NopConnectionListener
	names []string
}

func (e *endings) NoNewExchanges(event.Connection, event.Reason) {
	e.names = append(e.names, "NoNewExchanges")
}

func (e *endings) Closed(event.Connection, event.Reason) { e.names = append(e.names, "Closed") }

// busybody does in every event what needs the pool's lock, and calls again.
type busybody struct {
	event.NopConnectionListener
	pool *Pool
	n    atomic.Int32
}

func (b *busybody) do(c event.Connection) {
	b.n.Add(1)
	b.pool.Stats()
	b.pool.EvictAll()
	c.(*RealConnection).retire(event.ReasonEvicted)
}

func (b *busybody) Connected(c event.Connection)                      { b.pool.Stats(); b.n.Add(1) }
func (b *busybody) Acquired(c event.Connection, _ event.Call)         { b.pool.Stats(); b.n.Add(1) }
func (b *busybody) Released(c event.Connection, _ event.Call)         { b.do(c) }
func (b *busybody) NoNewExchanges(c event.Connection, _ event.Reason) { b.do(c) }
func (b *busybody) Closed(c event.Connection, _ event.Reason)         { b.do(c) }

// A listener may use the pool and its connections: no lock is held.
func TestObserverHoldsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busybody{}
		w := newWorld(t, PoolOptions{}, func(n *route.Network) { n.ConnectionListener = b })
		b.pool = w.pool
		w.host("a.test", "192.0.2.1", hello)
		for range 3 {
			w.get("http://a.test/")
		}
		w.expect(0, 0)
		if n := b.n.Load(); n != 15 {
			t.Errorf("%d events", n)
		}
	})
}

// The life of a connection that serves two calls and is evicted.
func TestConnectionEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, nil)
		w.host("a.test", "192.0.2.1", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "hello from ") }))
		w.get("http://a.test/")
		w.get("http://a.test/")
		w.pool.EvictAll()
		want := []string{"Connected", "Acquired", "Released", "Acquired", "Released", "NoNewExchanges", "Closed"}
		if diff := cmp.Diff(want, w.events.Names()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
