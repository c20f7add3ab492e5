package report

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/plan"
	"github.com/catena-http/catena/bench/internal/workload"
)

// ThisMachine describes the machine that this runs on.
func ThisMachine() Machine {
	return Machine{runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), cpuModel()}
}

// cpuModel is the processor's name where the system tells it.
func cpuModel() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// peerModules are the modules whose versions a report tells.
var peerModules = map[string]string{
	"github.com/valyala/fasthttp":  "fasthttp",
	"github.com/go-resty/resty/v2": "resty",
	"github.com/imroc/req/v3":      "req",
	"golang.org/x/net":             "x/net",
}

// Versions are those of Go and of the peers in this program.
func Versions() map[string]string {
	versions := map[string]string{"Go": strings.TrimPrefix(runtime.Version(), "go")}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versions
	}
	for _, m := range info.Deps {
		if name := peerModules[m.Path]; name != "" {
			versions[name] = strings.TrimPrefix(m.Version, "v")
		}
	}
	return versions
}

// head is a run in a few lines.
func (r *Result) head() string {
	var versions []string
	for name, version := range r.Versions {
		versions = append(versions, name+" "+version)
	}
	slices.Sort(versions)
	s := r.Settings
	return fmt.Sprintf("%s on %s, %d CPUs (%s).\n%s.\nMedians of %d rounds of %g s after a warm-up of %g s; server: %s, client and server on one machine.",
		r.Taken.Format("2 January 2006"), r.Machine.System, r.Machine.CPUs, r.Machine.Model,
		strings.Join(versions, ", "), s.Rounds, s.Duration, s.Warmup, s.Server)
}

// title says what a cell is, for a reader.
func title(c plan.Cell) string {
	name := works[c.Work] + ", " + Protocol(c.Proto)
	switch c.Work {
	case workload.Download, workload.Upload, workload.Idle:
		return name
	}
	if c.Callers == 1 {
		return name + ", 1 caller"
	}
	return fmt.Sprintf("%s, %d callers", name, c.Callers)
}

var works = map[string]string{
	workload.Get:       "Small GET",
	workload.Post:      "POST of 1 KiB",
	plan.Chain:         "Small GET with more on the chain",
	workload.Download:  "Large body down",
	workload.Upload:    "Large body up",
	workload.Connect:   "A new connection for each GET",
	workload.Reconnect: "A new connection for each GET, TLS sessions resumed",
	workload.Idle:      "An idle connection",
}

// Protocol is a protocol's name for a reader.
func Protocol(proto string) string {
	switch proto {
	case client.H1:
		return "HTTP/1.1"
	case client.H1TLS:
		return "HTTP/1.1 over TLS"
	case client.H2C:
		return "HTTP/2 in cleartext"
	default:
		return "HTTP/2 over TLS"
	}
}
