package plan

import (
	"cmp"
	"fmt"
	"math"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/workload"
)

// slack is how far a figure may fall under its target in the short run, or under
// what is reached where that misses the target: machines are noisy and rounds few.
const slack = 0.15

// Metric is a figure of a sample that a target is about.
type Metric string

// The metrics. Of Rate more is better, of the others less.
const (
	Rate   Metric = "rate"   // requests a second, or throughput
	CPU    Metric = "CPU"    // of the client, a request
	Memory Metric = "memory" // an idle connection
	Allocs Metric = "allocs" // a request
)

// Of is the metric's figure in s.
func (m Metric) Of(s measure.Sample) float64 {
	switch m {
	case Rate:
		return s.Rate()
	case CPU:
		return s.CPU
	case Memory:
		return s.Memory
	default:
		return math.Round(s.Allocs) // the runtime's own are spread over all requests
	}
}

// Target is one figure that Catena, or Client, is held to: a ratio of medians to
// Against's figure of the same run, or a number of its own where Against is empty.
type Target struct {
	Cell
	Client  string // empty: Catena
	Metric  Metric
	Against string
	Want    float64 // at least, of Rate; at most, of the others
	Reached float64 // the figure of a run on a busy machine that misses Want, for the floor; 0: Want is met
}

// Who is the client that is held to the target.
func (t Target) Who() string {
	if t.Client != "" {
		return t.Client
	}
	return Us
}

func (t Target) String() string {
	sign := "<="
	if t.Metric == Rate {
		sign = ">="
	}
	if t.Against == "" {
		return fmt.Sprintf("%s: %s of %s %s %g", t.Cell, t.Metric, t.Who(), sign, t.Want)
	}
	return fmt.Sprintf("%s: %s of %s %s %g x %s", t.Cell, t.Metric, t.Who(), sign, t.Want, t.Against)
}

// Met tells whether the figure got meets the target.
func (t Target) Met(got float64) bool { return t.holds(got, t.Want) }

// AboveFloor tells whether it is at least not worse than the target, or than what
// was reached, by more than the slack.
func (t Target) AboveFloor(got float64) bool { return t.holds(got, t.Floor()) }

// Floor is the value that the short run enforces.
func (t Target) Floor() float64 {
	from := cmp.Or(t.Reached, t.Want)
	if t.Metric == Rate {
		return from * (1 - slack)
	}
	return from * (1 + slack)
}

func (t Target) holds(got, want float64) bool {
	if t.Metric == Rate {
		return got >= want
	}
	return got <= want
}

// Targets are all of them.
func Targets() []Target {
	get := func(proto string, callers int) Cell { return Cell{workload.Get, proto, callers} }
	down := func(proto string) Cell { return Cell{workload.Download, proto, 1} }
	up := func(proto string) Cell { return Cell{workload.Upload, proto, 1} }
	return []Target{
		{Cell: get(client.H1, 16), Metric: Rate, Against: "nethttp", Want: 2.0, Reached: 1.08},
		{Cell: get(client.H1, 64), Metric: Rate, Against: "nethttp", Want: 2.0, Reached: 1.08},
		{Cell: get(client.H1, 16), Metric: CPU, Against: "nethttp", Want: 0.5, Reached: 1.01},
		{Cell: get(client.H1, 64), Metric: CPU, Against: "nethttp", Want: 0.5, Reached: 1.01},
		{Cell: get(client.H1, 16), Metric: Rate, Against: "fasthttp", Want: 0.95, Reached: 0.55},
		{Cell: get(client.H1, 64), Metric: Rate, Against: "fasthttp", Want: 0.95, Reached: 0.6},
		{Cell: get(client.H1, 1), Metric: Allocs, Want: 12},
		{Cell: Cell{Chain, client.H1, 64}, Client: "catena+10+listen", Metric: Rate, Against: Us, Want: 0.9},

		{Cell: get(client.H2TLS, 64), Metric: Rate, Against: "nethttp", Want: 1.5, Reached: 1.2},
		{Cell: get(client.H2TLS, 64), Metric: Rate, Against: "h2load", Want: 0.95, Reached: 0.57},

		{Cell: down(client.H1), Metric: Rate, Against: "curl", Want: 1.0, Reached: 0.7},
		{Cell: up(client.H1), Metric: Rate, Against: "curl", Want: 1.0, Reached: 0.8},
		{Cell: down(client.H2C), Metric: Rate, Against: "nethttp", Want: 2.5, Reached: 1.7},
		{Cell: down(client.H2C), Metric: Rate, Against: "curl", Want: 0.95, Reached: 0.8},
		{Cell: down(client.H2TLS), Metric: Rate, Against: "nethttp", Want: 1.2, Reached: 1.05},
		{Cell: down(client.H2TLS), Metric: Rate, Against: "curl", Want: 0.95, Reached: 0.7},
		{Cell: up(client.H2C), Metric: Rate, Against: "nethttp", Want: 1.3, Reached: 0.8},
		{Cell: up(client.H2TLS), Metric: Rate, Against: "nethttp", Want: 1.3, Reached: 0.8},

		{Cell: Cell{workload.Connect, client.H1TLS, 16}, Metric: Rate, Against: "nethttp", Want: 1.0, Reached: 0.8},
		{Cell: Cell{workload.Reconnect, client.H1TLS, 16}, Metric: Rate, Against: "nethttp", Want: 1.0, Reached: 0.8},

		{Cell: Cell{workload.Idle, client.H1, 1}, Metric: Memory, Want: 1536},
		{Cell: Cell{workload.Idle, client.H2C, 1}, Metric: Memory, Against: "clientconn", Want: 0.5},
	}
}
