package report

import (
	"fmt"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/plan"
	"github.com/catena-http/catena/bench/internal/plot"
	"github.com/catena-http/catena/bench/internal/workload"
)

// drawing is a chart and the name of its file without ".svg".
type drawing struct {
	name  string
	chart plot.Chart
}

// drawings are a work's charts: of the works by number of callers one for each
// protocol, of the others one that has all.
func (r *Result) drawings(work string) []drawing {
	switch work {
	case workload.Get, workload.Post, plan.Chain:
		var all []drawing
		for _, proto := range client.Protocols() {
			cells := r.cellsOf(work, proto)
			if len(cells) == 0 {
				continue
			}
			of := works[work] + ", " + Protocol(proto)
			all = append(all, drawing{work + "-" + proto, chart(of+": requests a second", "req/s", cells, callers, measure.Sample.Rate)})
			if work == workload.Get {
				cpu := func(s measure.Sample) float64 { return s.CPU }
				all = append(all, drawing{work + "-" + proto + "-cpu", chart(of+": client CPU a request", "µs", cells, callers, cpu)})
			}
		}
		return all
	}
	cells := r.cellsOf(work, "")
	if len(cells) == 0 {
		return nil
	}
	unit, of := "conn/s", measure.Sample.Rate
	switch work {
	case workload.Download, workload.Upload:
		unit, of = "MiB/s", throughput
	case workload.Idle:
		unit, of = "bytes", func(s measure.Sample) float64 { return s.Memory }
	}
	return []drawing{{work, chart(works[work], unit, cells, protocol, of)}}
}

// cellsOf are the run's cells of a work, by one protocol or by all ("").
func (r *Result) cellsOf(work, proto string) []Cell {
	var cells []Cell
	for _, c := range r.Cells {
		if c.Work == work && (proto == "" || c.Proto == proto) {
			cells = append(cells, c)
		}
	}
	return cells
}

func callers(c plan.Cell) string {
	if c.Callers == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", c.Callers)
}

func protocol(c plan.Cell) string { return Protocol(c.Proto) }

// chart has a group for each cell and a bar for each client, with the range of
// its rounds.
func chart(title, unit string, cells []Cell, name func(plan.Cell) string, of func(measure.Sample) float64) plot.Chart {
	c := plot.Chart{Title: title, Unit: unit, Series: plan.Order(cells[0].Work)}
	for _, cell := range cells {
		g := plot.Group{Name: name(cell.Cell)}
		for _, row := range cell.Rows {
			bar := plot.Bar{Series: row.Client, Value: of(row.Median)}
			for i, s := range row.Rounds {
				v := of(s)
				if i == 0 {
					bar.Low, bar.High = v, v
				}
				bar.Low, bar.High = min(bar.Low, v), max(bar.High, v)
			}
			g.Bars = append(g.Bars, bar)
		}
		c.Groups = append(c.Groups, g)
	}
	return c
}
