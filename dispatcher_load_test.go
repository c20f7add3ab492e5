package catena

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestDispatcherKeepsItsLimitsUnderLoad lets calls come, end and be removed at
// random, and counts what runs.
func TestDispatcherKeepsItsLimitsUnderLoad(t *testing.T) {
	const calls, maxCalls, maxPerHost, hosts = 4000, 8, 3, 5
	client, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	idle := make(chan struct{}, calls)
	d := NewDispatcher(DispatcherOptions{MaxCalls: maxCalls, MaxCallsPerHost: maxPerHost, Idle: func() { idle <- struct{}{} }})

	var all atomic.Int32
	var each [hosts]atomic.Int32
	var once [calls]atomic.Int32
	enter := func(n *atomic.Int32, limit int32) {
		if now := n.Add(1); now > limit {
			t.Errorf("%d calls run, the limit is %d", now, limit)
		}
	}
	var done sync.WaitGroup
	done.Add(calls)
	for worker := range 4 {
		go func() { // ends with its share of the calls
			random := rand.New(rand.NewPCG(7, uint64(worker)))
			var mine []*Call
			for i := worker; i < calls; i += 4 {
				i, host := i, random.IntN(hosts)
				c := client.NewCall(requestTo(fmt.Sprintf("http://host%d.test/", host)))
				mine = append(mine, c)
				d.enqueue(c, func() {
					defer done.Done()
					enter(&all, maxCalls)
					enter(&each[host], maxPerHost)
					once[i].Add(1)
					runtime.Gosched()
					each[host].Add(-1)
					all.Add(-1)
				})
				if random.IntN(3) == 0 {
					pick := random.IntN(len(mine))
					d.remove(mine[pick], func() {
						once[worker+4*pick].Add(1)
						done.Done()
					})
				}
			}
		}()
	}
	done.Wait()
	for range idle {
		if d.RunningCount() == 0 && d.QueuedCount() == 0 {
			break
		}
	}
	for i := range once {
		if n := once[i].Load(); n != 1 {
			t.Errorf("call %d ended %d times", i, n)
		}
	}
}

// BenchmarkDispatcherBesideALongQueue is the price of a call when others, to a
// host that is full, wait: it should not depend on how many.
func BenchmarkDispatcherBesideALongQueue(b *testing.B) {
	for _, waiting := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			client, err := New()
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			d := NewDispatcher(DispatcherOptions{MaxCallsPerHost: 1})
			end := make(chan struct{})
			full := requestTo("http://full.test/")
			for range waiting + 1 {
				d.enqueue(client.NewCall(full), func() { <-end })
			}
			req, done := requestTo("http://free.test/"), make(chan struct{})
			run := func() { done <- struct{}{} }
			for b.Loop() {
				d.enqueue(client.NewCall(req), run)
				<-done
			}
			for _, c := range slices.Backward(d.Queued()) {
				d.remove(c, func() {})
			}
			close(end)
		})
	}
}
