// Package plan says what is measured: the cells, who takes part in each, and the
// targets that the figures are held to.
package plan

import (
	"fmt"
	"slices"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/workload"
)

// Chain is the workload Get on one client with more and more on its chain.
const Chain = "chain"

// Us is the client that all others are compared with.
const Us = "catena"

// Bound is the contender that is no client: it writes and reads the same bytes and
// shows what Go's runtime and the kernel cost. No client in Go can do without them.
const Bound = "socket"

// Cell is one thing that is measured, by several clients in turn.
type Cell struct {
	Work    string `json:"work"`
	Proto   string `json:"proto"`
	Callers int    `json:"callers"`
}

func (c Cell) String() string { return fmt.Sprintf("%s %s %d", c.Work, c.Proto, c.Callers) }

// Workload is what the client processes of the cell run.
func (c Cell) Workload() string {
	if c.Work == Chain {
		return workload.Get
	}
	return c.Work
}

// Works are all workloads in the order of reports.
func Works() []string {
	return []string{
		workload.Get, workload.Post, Chain, workload.Download, workload.Upload,
		workload.Connect, workload.Reconnect, workload.Idle,
	}
}

// peers are the Go clients of most cells; outside those that are no Go programs.
var (
	peers   = []string{Us, "nethttp", "clientconn", "fasthttp", "resty", "req", Bound}
	outside = []string{"curl", "wrk", "h2load", "okhttp"}
	chains  = []string{Us, "catena+1", "catena+10", "catena+listen", "catena+10+listen", "catena+5+5+listen"}
)

// Clients are who takes part in the cell, Catena first, as far as they speak its
// protocol. Outside references may turn out not to be installed. The bound has
// nothing that could be idle.
func (c Cell) Clients() []string {
	return slices.DeleteFunc(slices.Clone(Order(c.Work)), func(name string) bool {
		return !slices.Contains(outside, name) && !client.Speaks(name, c.Proto) ||
			name == Bound && c.Work == workload.Idle
	})
}

// Outside are the references that are no Go programs.
func Outside() []string { return slices.Clone(outside) }

// Order is all who may take part in a work, Catena first, whatever the protocol.
func Order(work string) []string {
	if work == Chain {
		return chains
	}
	return slices.Concat(peers, outside)
}

// Full is everything.
func Full() []Cell {
	var cells []Cell
	add := func(work string, protocols []string, callers ...int) {
		for _, proto := range protocols {
			for _, n := range callers {
				cells = append(cells, Cell{work, proto, n})
			}
		}
	}
	all := client.Protocols()
	add(workload.Get, all, 1, 16, 64, 256)
	add(workload.Post, all, 16, 64)
	add(Chain, []string{client.H1, client.H2TLS}, 1, 64)
	add(workload.Download, all, 1)
	add(workload.Upload, all, 1)
	add(workload.Connect, []string{client.H1, client.H1TLS}, 16)
	add(workload.Reconnect, []string{client.H1TLS}, 16)
	add(workload.Idle, []string{client.H1, client.H1TLS, client.H2C}, 1)
	return cells
}

// Select keeps the cells of the given works, protocols and numbers of callers;
// an empty list keeps all.
func Select(cells []Cell, works, protocols []string, callers []int) []Cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool {
		return len(works) > 0 && !slices.Contains(works, c.Work) ||
			len(protocols) > 0 && !slices.Contains(protocols, c.Proto) ||
			len(callers) > 0 && !slices.Contains(callers, c.Callers)
	})
}

// Short is the cells that have a target.
func Short() []Cell {
	var cells []Cell
	for _, t := range Targets() {
		if !slices.Contains(cells, t.Cell) {
			cells = append(cells, t.Cell)
		}
	}
	return cells
}

// Needed are the clients that the cell's targets are about: all that a
// short run has to measure.
func Needed(cell Cell) []string {
	names := []string{Us}
	for _, t := range Targets() {
		if t.Cell != cell {
			continue
		}
		for _, name := range []string{t.Who(), t.Against} {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
