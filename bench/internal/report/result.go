// Package report keeps a run's figures and writes them: as JSON, as tables and
// into the documentation.
package report

import (
	"encoding/json"
	"os"
	"time"

	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/plan"
)

// Result is one run.
type Result struct {
	Taken    time.Time         `json:"taken"`
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"` // of Go, the servers and the peers
	Settings Settings          `json:"settings"`
	Cells    []Cell            `json:"cells"`
}

// Machine is where it was taken.
type Machine struct {
	System string `json:"system"` // "linux/amd64"
	CPUs   int    `json:"cpus"`
	Model  string `json:"model"`
}

// Settings are what the run was made with.
type Settings struct {
	Rounds   int     `json:"rounds"`
	Duration float64 `json:"duration"` // seconds, measured
	Warmup   float64 `json:"warmup"`   // seconds before
	Conns    int     `json:"conns"`    // connections opened and closed
	Idle     int     `json:"idle"`     // connections kept idle
	Size     int64   `json:"size"`     // bytes of a large body
	Server   string  `json:"server"`   // "nginx" or "go"
}

// Cell is one cell's figures.
type Cell struct {
	plan.Cell
	Rows []Row `json:"rows"`
}

// Row is one client's figures in a cell.
type Row struct {
	Client string           `json:"client"`
	Median measure.Sample   `json:"median"` // of each figure
	Rounds []measure.Sample `json:"rounds"`
	// Ratio is Catena's median over this client's: of the rate, and of what an
	// idle connection costs in the idle cells. CPURatio is that of the CPU time.
	Ratio    float64 `json:"ratio,omitempty"`
	CPURatio float64 `json:"cpu_ratio,omitempty"`
}

// NewCell makes the cell of what each client measured in its rounds.
func NewCell(cell plan.Cell, clients []string, rounds map[string][]measure.Sample) Cell {
	c := Cell{Cell: cell}
	us := measure.Merge(rounds[plan.Us])
	metric := primary(cell)
	for _, name := range clients {
		m := measure.Merge(rounds[name])
		row := Row{Client: name, Median: m, Rounds: rounds[name]}
		if len(rounds[plan.Us]) > 0 {
			row.Ratio = measure.Ratio(metric.Of(us), metric.Of(m))
			row.CPURatio = measure.Ratio(us.CPU, m.CPU)
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// Row is the client's row in the cell.
func (c Cell) Row(client string) (Row, bool) {
	for _, r := range c.Rows {
		if r.Client == client {
			return r, true
		}
	}
	return Row{}, false
}

// Find is the figures of a cell.
func (r *Result) Find(cell plan.Cell) (Cell, bool) {
	for _, c := range r.Cells {
		if c.Cell == cell {
			return c, true
		}
	}
	return Cell{}, false
}

// Put adds the cell, in the place of the one that was there.
func (r *Result) Put(cell Cell) {
	for i, c := range r.Cells {
		if c.Cell == cell.Cell {
			r.Cells[i] = cell
			return
		}
	}
	r.Cells = append(r.Cells, cell)
}

// Load reads a result that Save wrote.
func Load(name string) (*Result, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := new(Result)
	return r, json.Unmarshal(b, r)
}

// Save writes the result as JSON.
func (r *Result) Save(name string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}
