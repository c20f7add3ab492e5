package report

import (
	"fmt"

	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/plan"
)

// Verdict is what a run says about a target.
type Verdict struct {
	plan.Target
	Got     float64
	Bound   float64 // the figure of plan.Bound in the place of the client's; 0: none
	Missing string  // why there is no figure; empty: there is one
}

// Judge finds the target's figure in the run.
func (r *Result) Judge(t plan.Target) Verdict {
	v := Verdict{Target: t}
	cell, ok := r.Find(t.Cell)
	if !ok {
		v.Missing = "not measured"
		return v
	}
	us, ok := cell.Row(t.Who())
	if !ok {
		v.Missing = t.Who() + " was not measured"
		return v
	}
	v.Got = t.Metric.Of(us.Median)
	socket, _ := cell.Row(plan.Bound)
	v.Bound = t.Metric.Of(socket.Median)
	if t.Against != "" {
		them, ok := cell.Row(t.Against)
		if !ok {
			v.Missing = t.Against + " was not measured"
			return v
		}
		v.Got = measure.Ratio(v.Got, t.Metric.Of(them.Median))
		v.Bound = measure.Ratio(v.Bound, t.Metric.Of(them.Median))
	}
	if v.Got == 0 {
		v.Missing = "no figure"
	}
	return v
}

// Judged are the verdicts on all targets that the run has something to say about.
func (r *Result) Judged() []Verdict {
	var all []Verdict
	for _, t := range plan.Targets() {
		if _, ok := r.Find(t.Cell); ok {
			all = append(all, r.Judge(t))
		}
	}
	return all
}

// VerdictTable says how each came out, and how it would have for plan.Bound: a target
// that it misses too is beyond what a client can do in this place.
func VerdictTable(verdicts []Verdict) [][]string {
	table := [][]string{{"work", "figure", "target", "measured", plan.Bound, ""}}
	for _, v := range verdicts {
		measured, said := v.show(v.Got), "met"
		switch {
		case v.Missing != "":
			measured, said = "-", v.Missing
		case v.Met(v.Got):
		case v.Bound > 0 && !v.Met(v.Bound):
			said = "missed, by " + plan.Bound + " too"
		default:
			said = "missed"
		}
		socket := "-"
		if v.Bound > 0 {
			socket = v.show(v.Bound)
		}
		table = append(table, []string{v.Cell.String(), figure(v.Target), wanted(v.Target), measured, socket, said})
	}
	return table
}

// show writes a figure of the target's kind.
func (v Verdict) show(figure float64) string {
	if v.Against == "" {
		return number(figure)
	}
	return ratio(figure)
}

func figure(t plan.Target) string {
	if t.Against == "" {
		return string(t.Metric)
	}
	return fmt.Sprintf("%s, %s ÷ %s", t.Metric, t.Who(), t.Against)
}

func wanted(t plan.Target) string {
	if t.Metric == plan.Rate {
		return fmt.Sprintf("≥ %g", t.Want)
	}
	return fmt.Sprintf("≤ %g", t.Want)
}

// Fallen are the verdicts on targets whose figure is under the floor.
func (r *Result) Fallen() []Verdict {
	var fallen []Verdict
	for _, v := range r.Judged() {
		if v.Missing == "" && !v.AboveFloor(v.Got) {
			fallen = append(fallen, v)
		}
	}
	return fallen
}
