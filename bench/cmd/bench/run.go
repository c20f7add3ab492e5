package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"github.com/catena-http/catena/bench/internal/driver"
	"github.com/catena-http/catena/bench/internal/plan"
	"github.com/catena-http/catena/bench/internal/report"
)

// run measures, or reads what was measured, and reports it.
func run(ctx context.Context, o options, out, log io.Writer) error {
	if o.from != "" {
		r, err := report.Load(o.from)
		if err != nil {
			return err
		}
		if err := report.WriteRun(out, r); err != nil {
			return err
		}
		return document(o, r)
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	o.driver.Exe, o.driver.Log = exe, log
	if o.driver.Profiles != "" {
		if err := os.MkdirAll(o.driver.Profiles, 0o755); err != nil {
			return err
		}
	}
	d, err := driver.Start(ctx, o.driver)
	if err != nil {
		return err
	}
	defer d.Stop()
	r, err := measureAll(ctx, d, o, out)
	if err != nil {
		return err
	}
	if err := document(o, r); err != nil {
		return err
	}
	if o.short {
		return enforce(ctx, d, r, out)
	}
	return report.WriteVerdicts(out, r)
}

// measureAll measures cell by cell and prints each one's table as it is done.
func measureAll(ctx context.Context, d *driver.Driver, o options, out io.Writer) (*report.Result, error) {
	r := &report.Result{
		Taken:    time.Now().UTC().Truncate(time.Second),
		Machine:  report.ThisMachine(),
		Versions: report.Versions(),
		Settings: report.Settings{
			Rounds: o.driver.Rounds, Duration: o.driver.Duration.Seconds(), Warmup: o.driver.Warmup.Seconds(),
			Conns: o.driver.Conns, Idle: o.driver.Idle, Size: o.driver.Size, Server: o.driver.Server,
		},
	}
	maps.Copy(r.Versions, d.Versions())
	if err := report.WriteHead(out, r); err != nil {
		return nil, err
	}
	for _, cell := range o.cells {
		c, err := d.Run(ctx, cell)
		if err != nil {
			return nil, err
		}
		r.Put(c)
		if err := report.WriteCell(out, c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// document saves the figures and writes them into the documentation, as asked.
func document(o options, r *report.Result) error {
	if o.json != "" {
		if err := r.Save(o.json); err != nil {
			return err
		}
	}
	if o.docs == "" {
		return nil
	}
	return report.WriteDocs(o.docs, r)
}

// again is how often a cell that falls under a floor is measured anew before it
// counts: the machine may have been busy.
const again = 2

// enforce holds the run to the floors.
func enforce(ctx context.Context, d *driver.Driver, r *report.Result, out io.Writer) error {
	for range again {
		cells := map[plan.Cell]bool{}
		for _, v := range r.Fallen() {
			cells[v.Cell] = true
		}
		for cell := range cells {
			fmt.Fprintf(out, "\n%s fell under a floor and is measured again\n", cell)
			c, err := d.Run(ctx, cell)
			if err != nil {
				return err
			}
			r.Put(c)
			if err := report.WriteCell(out, c); err != nil {
				return err
			}
		}
	}
	if err := report.WriteVerdicts(out, r); err != nil {
		return err
	}
	fallen := r.Fallen()
	for _, v := range fallen {
		fmt.Fprintf(out, "under the floor of %.3g: %.3g, %s\n", v.Floor(), v.Got, v.Target)
	}
	if len(fallen) > 0 {
		return fmt.Errorf("%d figures are under their floors", len(fallen))
	}
	return nil
}
