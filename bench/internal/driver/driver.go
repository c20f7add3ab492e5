// Package driver runs cells: it starts the servers, then the clients in turn, each
// in a process of its own.
package driver

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/outside"
	"github.com/catena-http/catena/bench/internal/plan"
	"github.com/catena-http/catena/bench/internal/report"
	"github.com/catena-http/catena/bench/internal/servers"
	"github.com/catena-http/catena/bench/internal/workload"
)

// Config says how to measure.
type Config struct {
	Rounds   int
	Duration time.Duration
	Warmup   time.Duration
	Conns    int    // opened and closed
	Idle     int    // kept idle
	Size     int64  // of a large body
	Server   string // "nginx" (uploads go to the Go server) or "go"
	Profiles string // folder for profiles of Catena's cells; empty: none

	// Clients are those that take part, in every cell that they can; empty: all.
	Clients []string
	// OnlyNeeded leaves out who is not needed to judge the targets.
	OnlyNeeded bool
	// Exe is the program that becomes a client with the argument ClientArg and a
	// server with ServerArg.
	Exe string
	Log io.Writer // progress
}

// Driver has the servers running.
type Driver struct {
	cfg   Config
	files servers.Files
	nginx *servers.Nginx // nil with Server "go"
	goes  *servers.GoServer
}

// Start starts the servers; Stop ends them.
func Start(ctx context.Context, cfg Config) (*Driver, error) {
	dir, err := os.MkdirTemp("", "catena-bench-")
	if err != nil {
		return nil, err
	}
	d := &Driver{cfg: cfg, files: servers.Files{Dir: dir}}
	if err := d.start(ctx); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

func (d *Driver) start(ctx context.Context) (err error) {
	if err = os.Chmod(d.files.Dir, 0o755); err != nil { // nginx's worker may be another user
		return err
	}
	if d.files, err = servers.NewFiles(d.files.Dir, d.cfg.Size); err != nil {
		return err
	}
	if d.cfg.Server != "go" {
		if d.nginx, err = servers.StartNginx(ctx, d.files); err != nil {
			return err
		}
	}
	d.goes, err = servers.StartGoServer(ctx, d.files, d.cfg.Exe, ServerArg)
	return err
}

// Stop ends the servers and removes their files.
func (d *Driver) Stop() {
	if d.nginx != nil {
		d.nginx.Stop()
	}
	if d.goes != nil {
		d.goes.Stop()
	}
	os.RemoveAll(d.files.Dir)
}

// Versions are those of the servers that run.
func (d *Driver) Versions() map[string]string {
	if d.nginx == nil {
		return nil
	}
	return map[string]string{"nginx": strings.TrimPrefix(d.nginx.Version, "nginx/")}
}

// Run measures the cell: in each round every client once. The one that begins
// moves on by one, so that none is always the first.
func (d *Driver) Run(ctx context.Context, cell plan.Cell) (report.Cell, error) {
	clients := d.clients(cell)
	fmt.Fprintf(d.cfg.Log, "%s:", cell)
	defer fmt.Fprintln(d.cfg.Log)
	rounds := map[string][]measure.Sample{}
	for round := range d.cfg.Rounds {
		for i := range clients {
			name := clients[(i+round)%len(clients)]
			s, err := d.measure(ctx, cell, name, round)
			if err != nil {
				return report.Cell{}, err
			}
			rounds[name] = append(rounds[name], s)
			fmt.Fprint(d.cfg.Log, ".")
		}
	}
	return report.NewCell(cell, clients, rounds), nil
}

// clients are those that take part in the cell: asked for, and there.
func (d *Driver) clients(cell plan.Cell) []string {
	return slices.DeleteFunc(slices.Clone(cell.Clients()), func(name string) bool {
		return len(d.cfg.Clients) > 0 && !slices.Contains(d.cfg.Clients, name) ||
			d.cfg.OnlyNeeded && !slices.Contains(plan.Needed(cell), name) ||
			outside.Is(name) && !(outside.Does(name, cell.Workload(), cell.Proto) && outside.Installed(name))
	})
}

// measure runs one client once.
func (d *Driver) measure(ctx context.Context, cell plan.Cell, name string, round int) (measure.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Warmup+d.cfg.Duration+2*time.Minute)
	defer cancel()
	spec := d.spec(cell, name, round)
	if outside.Is(name) {
		return outside.Measure(ctx, spec)
	}
	return runChild(ctx, d.cfg.Exe, spec)
}

func (d *Driver) spec(cell plan.Cell, name string, round int) workload.Spec {
	spec := workload.Spec{
		Client: name, Work: cell.Workload(), Proto: cell.Proto, Callers: cell.Callers,
		Addr: d.addr(cell), Files: d.files,
		Warmup: d.cfg.Warmup, Duration: d.cfg.Duration,
	}
	switch spec.Work {
	case workload.Connect, workload.Reconnect:
		spec.Conns = d.cfg.Conns
	case workload.Idle:
		spec.Conns = d.cfg.Idle
	}
	if d.cfg.Profiles != "" && round == 0 && name == plan.Us {
		stem := filepath.Join(d.cfg.Profiles, strings.ReplaceAll(cell.String(), " ", "-"))
		spec.CPUProfile, spec.MemProfile = stem+".cpu.prof", stem+".mem.prof"
	}
	return spec
}

// addr is the server of the cell: nginx, but the Go server for uploads, which
// nginx would keep or refuse.
func (d *Driver) addr(cell plan.Cell) string {
	// nginx stores an upload in a file, and takes many bodies by HTTP/2 that it does
	// not read for a flood.
	byGo := cell.Work == workload.Upload || cell.Work == workload.Post && client.IsHTTP2(cell.Proto)
	if d.nginx == nil || byGo {
		return d.goes.Addrs[cell.Proto]
	}
	return d.nginx.Addrs[cell.Proto]
}
