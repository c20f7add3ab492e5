// Package outside measures with programs that are no Go clients, where they are
// installed: wrk, h2load, curl and OkHttp. They show what the server and the machine can do.
package outside

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/workload"
)

// tool is one program: what it is run with, and what its output says.
type tool struct {
	works     []string
	protocols []string
	installed func() bool
	measure   func(ctx context.Context, spec workload.Spec) (measure.Sample, error)
}

var tools = map[string]tool{
	"wrk":    {[]string{workload.Get}, []string{client.H1, client.H1TLS}, is("wrk"), wrk},
	"h2load": {[]string{workload.Get}, []string{client.H2C, client.H2TLS}, is("h2load"), h2load},
	"curl":   {[]string{workload.Download, workload.Upload}, client.Protocols(), is("curl"), curl},
	"okhttp": {[]string{workload.Get, workload.Download}, []string{client.H1, client.H2C}, okHTTPInstalled, okHTTP},
}

// Is tells whether name is one of the programs, as against a Go client.
func Is(name string) bool {
	_, ok := tools[name]
	return ok
}

// Installed tells whether the program is there.
func Installed(name string) bool { return tools[name].installed() }

func is(program string) func() bool { return func() bool { return onPath(program) } }

func onPath(programs ...string) bool {
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			return false
		}
	}
	return true
}

// Does tells whether the program can do that work by that protocol.
func Does(name, work, proto string) bool {
	t := tools[name]
	return slices.Contains(t.works, work) && slices.Contains(t.protocols, proto)
}

// Measure runs spec.Client's program.
func Measure(ctx context.Context, spec workload.Spec) (measure.Sample, error) {
	s, err := tools[spec.Client].measure(ctx, spec)
	if err != nil {
		err = fmt.Errorf("%s, %s by %s: %w", spec.Work, spec.Proto, spec.Client, err)
	}
	return s, err
}

// output runs a program and returns what it printed and the CPU time it took.
func output(ctx context.Context, name string, args ...string) (string, time.Duration, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", 0, fmt.Errorf("%w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.String(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

func url(spec workload.Spec, path string) string {
	scheme := "http"
	if spec.Proto == client.H1TLS || spec.Proto == client.H2TLS {
		scheme = "https"
	}
	return scheme + "://" + spec.Addr + path
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func itoa(n int) string { return strconv.Itoa(n) }
