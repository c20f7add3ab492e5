package workload

import (
	"errors"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
)

// caller is one goroutine's share of a loop.
type caller struct {
	do      client.Do
	buf     []byte
	latency measure.Histogram
	last    int64 // bytes that the last response's body had
}

// loop runs op in spec.Callers closed loops: first to warm up, then measured,
// until the time is over or, for workloads that count, spec.Conns is reached.
func (s Spec) loop(op client.Op) (measure.Sample, error) {
	c, err := s.newClient()
	if err != nil {
		return measure.Sample{}, err
	}
	defer c.Close()
	callers := make([]*caller, s.Callers)
	for i := range callers {
		do, err := c.Caller(op)
		if err != nil {
			return measure.Sample{}, err
		}
		callers[i] = &caller{do: do, buf: make([]byte, bodyBuffer)}
	}

	warmup, measured := s.limits(op)
	if err := run(callers, warmup); err != nil {
		return measure.Sample{}, err
	}
	for _, c := range callers {
		c.latency = measure.Histogram{}
	}
	stop, err := startProfile(s.CPUProfile)
	if err != nil {
		return measure.Sample{}, err
	}
	before := readUsage()
	err = run(callers, measured)
	after := readUsage()
	if err := errors.Join(err, stop(), writeAllocs(s.MemProfile)); err != nil {
		return measure.Sample{}, err
	}
	return summarize(callers, before, after), nil
}

// limits says how long to warm up and to measure.
func (s Spec) limits(op client.Op) (warmup, measured limit) {
	if op.Close {
		n := int64(s.Conns)
		return limit{count: max(n/20, 1)}, limit{count: n}
	}
	return limit{time: s.Warmup}, limit{time: s.Duration}
}

// limit ends a loop: by a number of requests in all, or by time. By time, every
// caller makes at least one.
type limit struct {
	count int64
	time  time.Duration
}

// run runs all callers until the limit and returns their first errors.
func run(callers []*caller, l limit) error {
	var left atomic.Int64
	left.Store(l.count)
	end := time.Now().Add(l.time)
	more := func(now time.Time) bool {
		if l.count > 0 {
			return left.Add(-1) >= 0
		}
		return now.Before(end)
	}
	errs := make(chan error, len(callers))
	for _, c := range callers {
		go func() { errs <- c.run(l.count == 0, more) }() // ends with the limit
	}
	var all []error
	for range callers {
		if err := <-errs; err != nil && len(all) < 3 {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

func (c *caller) run(once bool, more func(now time.Time) bool) error {
	now := time.Now()
	for once || more(now) {
		once = false
		n, err := c.do(c.buf)
		if err != nil {
			return err
		}
		began := now
		now = time.Now()
		c.latency.Add(now.Sub(began))
		c.last = n
	}
	return nil
}

// usage is what the process has used so far.
type usage struct {
	at             time.Time
	cpu            time.Duration
	mallocs, bytes uint64
}

func readUsage() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return usage{time.Now(), time.Duration(r.Utime.Nano() + r.Stime.Nano()), m.Mallocs, m.TotalAlloc}
}

func summarize(callers []*caller, before, after usage) measure.Sample {
	var latency measure.Histogram
	for _, c := range callers {
		latency.Merge(&c.latency)
	}
	n := float64(latency.Count())
	return measure.Sample{
		Requests: latency.Count(),
		Seconds:  after.at.Sub(before.at).Seconds(),
		P50:      micros(latency.Quantile(0.50)),
		P99:      micros(latency.Quantile(0.99)),
		CPU:      micros(after.cpu-before.cpu) / n,
		Allocs:   float64(after.mallocs-before.mallocs) / n,
		Bytes:    float64(after.bytes-before.bytes) / n,
		Body:     callers[0].last,
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
