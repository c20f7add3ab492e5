// Package measure has the figures of a run and the arithmetic over them.
package measure

// Sample is what one client process measured in one round of a cell.
type Sample struct {
	Requests int64   `json:"requests"` // finished in the measured time
	Seconds  float64 `json:"seconds"`  // the measured time
	P50      float64 `json:"p50"`      // latency in microseconds
	P99      float64 `json:"p99"`
	CPU      float64 `json:"cpu"`    // user and system time in microseconds a request
	Allocs   float64 `json:"allocs"` // a request; 0 for clients that are no Go program
	Bytes    float64 `json:"bytes"`  // allocated a request
	Body     int64   `json:"body"`   // bytes of body that one request moves

	// Memory is heap and stacks in bytes an idle connection, Goroutines their
	// number; of the idle workload only.
	Memory     float64 `json:"memory,omitempty"`
	Goroutines float64 `json:"goroutines,omitempty"`
}

// Rate is requests a second.
func (s Sample) Rate() float64 {
	if s.Seconds == 0 {
		return 0
	}
	return float64(s.Requests) / s.Seconds
}

// Merge makes one sample of the rounds of a cell: each figure is the median of
// its own, as the rate is.
func Merge(rounds []Sample) Sample {
	of := func(f func(Sample) float64) float64 {
		values := make([]float64, len(rounds))
		for i, s := range rounds {
			values[i] = f(s)
		}
		return Median(values)
	}
	if len(rounds) == 0 {
		return Sample{}
	}
	const second = 1e6 // as many requests as keep the rate's digits
	rate := of(Sample.Rate)
	m := Sample{
		P50:        of(func(s Sample) float64 { return s.P50 }),
		P99:        of(func(s Sample) float64 { return s.P99 }),
		CPU:        of(func(s Sample) float64 { return s.CPU }),
		Allocs:     of(func(s Sample) float64 { return s.Allocs }),
		Bytes:      of(func(s Sample) float64 { return s.Bytes }),
		Memory:     of(func(s Sample) float64 { return s.Memory }),
		Goroutines: of(func(s Sample) float64 { return s.Goroutines }),
		Body:       rounds[0].Body,
	}
	if rate > 0 {
		m.Requests, m.Seconds = second, second/rate
	}
	return m
}
