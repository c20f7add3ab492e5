package workload

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
)

// idle opens spec.Conns connections, lets them be idle and measures what heap and
// stacks grew by. One goroutine opens them all, so that no others' remains count.
func idle(spec Spec) (measure.Sample, error) {
	c, err := spec.newClient()
	if err != nil {
		return measure.Sample{}, err
	}
	defer c.Close()
	open := openHeld
	if client.IsHTTP2(spec.Proto) {
		open = openHosts
	}
	if err := open(c, spec, 1); err != nil { // what is made once is made before
		return measure.Sample{}, err
	}
	before := settledMemory()
	began := time.Now()
	if err := open(c, spec, spec.Conns); err != nil {
		return measure.Sample{}, err
	}
	took := time.Since(began)
	after := settledMemory()
	if err := writeAllocs(spec.MemProfile); err != nil {
		return measure.Sample{}, err
	}
	n := float64(spec.Conns)
	return measure.Sample{
		Requests:   int64(spec.Conns),
		Seconds:    took.Seconds(),
		Memory:     (after.bytes - before.bytes) / n,
		Goroutines: (after.goroutines - before.goroutines) / n,
	}, nil
}

// openHeld makes n HTTP/1.1 connections to one host: it holds n responses before
// it reads any to its end.
func openHeld(c client.Client, spec Spec, n int) error {
	op := client.Op{Method: "GET", URL: spec.url(servers.SmallPath), Stream: true}
	held := make([]io.ReadCloser, 0, n)
	var err error
	for range n {
		var body io.ReadCloser
		if body, err = c.Open(op); err != nil {
			break
		}
		held = append(held, body)
	}
	for _, body := range held {
		if _, e := io.Copy(io.Discard, body); e != nil && err == nil {
			err = e
		}
		body.Close()
	}
	return err
}

// openHosts makes n HTTP/2 connections, each to a host of its own: all names lead
// to the one server.
func openHosts(c client.Client, spec Spec, n int) error {
	for i := range n {
		url := fmt.Sprintf("%s://c%d-%d.idle%s%s", spec.scheme(), n, i, portOf(spec.Addr), servers.SmallPath)
		body, err := c.Open(client.Op{Method: "GET", URL: url, Stream: true})
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, body)
		body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func portOf(addr string) string {
	for i := len(addr) - 1; i >= 0; i-- {
		if addr[i] == ':' {
			return addr[i:]
		}
	}
	return ""
}

type memory struct{ bytes, goroutines float64 }

// settledMemory is the heap and stacks in use once nothing more is freed: what
// lies in a sync.Pool goes with the second collection, and goroutines of closed
// bodies take a moment to end.
func settledMemory() memory {
	const enough = 4 // collections that freed nothing
	var m runtime.MemStats
	least := ^uint64(0)
	for same := 0; same < enough; same++ {
		runtime.GC()
		runtime.ReadMemStats(&m)
		if now := m.HeapAlloc + m.StackInuse; now < least-least/1000 {
			same = 0
			least = now
		}
		time.Sleep(5 * time.Millisecond)
	}
	return memory{float64(least), float64(runtime.NumGoroutine())}
}
