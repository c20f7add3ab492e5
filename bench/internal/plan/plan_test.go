package plan

import (
	"slices"
	"testing"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/workload"
)

// Every target is about a cell that a full run measures and clients that take
// part in it.
func TestTargetsAreMeasured(t *testing.T) {
	cells := Full()
	for _, target := range Targets() {
		if !slices.Contains(cells, target.Cell) {
			t.Errorf("no full run measures %s", target)
			continue
		}
		clients := target.Cell.Clients()
		if !slices.Contains(clients, target.Who()) || target.Against != "" && !slices.Contains(clients, target.Against) {
			t.Errorf("%s: only %v take part", target, clients)
		}
	}
}

func TestCellsAreDistinctAndKnown(t *testing.T) {
	seen := map[Cell]bool{}
	for _, c := range Full() {
		if seen[c] {
			t.Errorf("%s is there twice", c)
		}
		seen[c] = true
		if !slices.Contains(Works(), c.Work) {
			t.Errorf("%s is no work that reports know", c.Work)
		}
		if c.Clients()[0] != Us {
			t.Errorf("%s begins with %s", c, c.Clients()[0])
		}
	}
}

func TestClientsSpeakTheProtocol(t *testing.T) {
	h1 := Cell{workload.Get, client.H1, 1}.Clients()
	if slices.Contains(h1, "clientconn") || !slices.Contains(h1, "fasthttp") {
		t.Errorf("HTTP/1.1: %v", h1)
	}
	h2 := Cell{workload.Get, client.H2C, 1}.Clients()
	if slices.Contains(h2, "fasthttp") || !slices.Contains(h2, "clientconn") {
		t.Errorf("HTTP/2: %v", h2)
	}
}

// The bound stands beside the clients of every protocol, but where connections are
// held.
func TestWhereTheBoundTakesPart(t *testing.T) {
	for _, cell := range Full() {
		want := cell.Work != Chain && cell.Work != workload.Idle
		if got := slices.Contains(cell.Clients(), Bound); got != want {
			t.Errorf("%s: %v, want %v", cell, got, want)
		}
	}
}

func TestShortIsWhatHasATarget(t *testing.T) {
	short := Short()
	for _, target := range Targets() {
		if !slices.Contains(short, target.Cell) {
			t.Errorf("the short run leaves %s out", target)
		}
	}
	if len(short) >= len(Full()) {
		t.Errorf("the short run has %d cells of %d", len(short), len(Full()))
	}
	got := Needed(Cell{workload.Get, client.H1, 64})
	if want := []string{Us, "nethttp", "fasthttp"}; !slices.Equal(got, want) {
		t.Errorf("needed: %v, want %v", got, want)
	}
}

func TestSelect(t *testing.T) {
	got := Select(Full(), []string{workload.Get}, []string{client.H1, client.H2C}, []int{16})
	want := []Cell{{workload.Get, client.H1, 16}, {workload.Get, client.H2C, 16}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(Select(Full(), nil, nil, nil)) != len(Full()) {
		t.Error("an empty selection leaves cells out")
	}
}

// A rate's floor is under its target, a cost's over it.
func TestFloors(t *testing.T) {
	for _, test := range []struct {
		metric      Metric
		reached     float64
		got         float64
		met, enough bool
	}{
		{Rate, 0, 2.0, true, true},
		{Rate, 0, 1.8, false, true},
		{Rate, 0, 1.6, false, false},
		{Rate, 1, 0.9, false, true},
		{Rate, 1, 0.8, false, false},
		{CPU, 0, 2.0, true, true},
		{CPU, 0, 2.2, false, true},
		{CPU, 0, 2.4, false, false},
		{CPU, 4, 4.4, false, true},
		{CPU, 4, 4.8, false, false},
	} {
		target := Target{Metric: test.metric, Want: 2, Reached: test.reached}
		if met, enough := target.Met(test.got), target.AboveFloor(test.got); met != test.met || enough != test.enough {
			t.Errorf("%s of %v: met %v, above the floor %v", test.metric, test.got, met, enough)
		}
	}
}

// The runtime's own allocations don't count as a request's.
func TestMetrics(t *testing.T) {
	s := measure.Sample{Requests: 8, Seconds: 2, CPU: 1, Memory: 2, Allocs: 3.04}
	for metric, want := range map[Metric]float64{Rate: 4, CPU: 1, Memory: 2, Allocs: 3} {
		if got := metric.Of(s); got != want {
			t.Errorf("%s of %+v = %v, want %v", metric, s, got, want)
		}
	}
}
