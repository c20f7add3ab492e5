package main

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/catena-http/catena/bench/internal/driver"
	"github.com/catena-http/catena/bench/internal/plan"
)

// options are the command line's.
type options struct {
	driver driver.Config
	cells  []plan.Cell
	short  bool   // measure what has floors, and hold it to them
	json   string // file for the figures
	from   string // file to take them from, in place of measuring
	docs   string // folder of the documentation to write into
}

func parse(args []string) (options, error) {
	var o options
	var works, protos, callers, clients string
	var mib int64
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.BoolVar(&o.short, "short", false, "measure only what has a floor, shortly, and fail where Catena falls under one")
	f.IntVar(&o.driver.Rounds, "rounds", 5, "rounds; the medians are reported")
	f.DurationVar(&o.driver.Duration, "duration", time.Second, "measured time of a client in a round")
	f.DurationVar(&o.driver.Warmup, "warmup", 300*time.Millisecond, "time before it that is not measured")
	f.IntVar(&o.driver.Conns, "conns", 10000, "connections opened and closed in connect and reconnect")
	f.IntVar(&o.driver.Idle, "idle", 5000, "connections kept in idle")
	f.Int64Var(&mib, "size", 100, "size of a large body in MiB")
	f.StringVar(&o.driver.Server, "server", "nginx", `"nginx", or "go": the Go server for everything`)
	f.StringVar(&o.driver.Profiles, "profiles", "", "folder for CPU and allocation profiles of Catena, one of each for a cell")
	f.StringVar(&works, "work", "", "only these, of "+strings.Join(plan.Works(), ","))
	f.StringVar(&protos, "proto", "", "only these, of h1,h1-tls,h2c,h2-tls")
	f.StringVar(&callers, "callers", "", "only cells with these numbers of callers")
	f.StringVar(&clients, "clients", "", "only these, of "+strings.Join(plan.Order(""), ",")+
		" and the catena+... of chain; "+plan.Bound+" is no client: it writes and reads the same bytes, and shows what Go's runtime and the kernel cost")
	f.StringVar(&o.json, "json", "", "write the figures to this file")
	f.StringVar(&o.from, "from", "", "take the figures from this file, written by -json; measure nothing")
	f.StringVar(&o.docs, "docs", "", "write tables and plots into this folder's performance.md and performance/")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	err := o.complete(works, protos, callers, clients, mib)
	if f.NArg() > 0 {
		err = fmt.Errorf("what is %q?", f.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(f.Output(), "bench:", err)
	}
	return o, err
}

func (o *options) complete(works, protos, callers, clients string, mib int64) error {
	o.driver.Size = mib << 20
	o.driver.Clients = list(clients)
	if o.short {
		o.shorten()
	} else {
		o.cells = plan.Full()
	}
	var counts []int
	for _, s := range list(callers) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("-callers: %w", err)
		}
		counts = append(counts, n)
	}
	o.cells = plan.Select(o.cells, list(works), list(protos), counts)
	switch {
	case len(o.cells) == 0:
		return errors.New("no cell is left to measure")
	case o.driver.Rounds < 1 || o.driver.Duration <= 0 || o.driver.Conns < 1 || o.driver.Idle < 1 || mib < 1:
		return errors.New("-rounds, -duration, -conns, -idle and -size must be positive")
	case o.driver.Server != "nginx" && o.driver.Server != "go":
		return fmt.Errorf("-server: %q is neither nginx nor go", o.driver.Server)
	}
	return nil
}

// shorten makes the run fit into two minutes: only cells with a target, a part of the
// time and of the connections.
func (o *options) shorten() {
	o.cells = plan.Short()
	o.driver.OnlyNeeded = true
	o.driver.Duration = min(o.driver.Duration, 300*time.Millisecond)
	o.driver.Warmup = min(o.driver.Warmup, 200*time.Millisecond)
	o.driver.Conns = min(o.driver.Conns, 500)
	o.driver.Idle = min(o.driver.Idle, 1000)
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
