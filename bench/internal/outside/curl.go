package outside

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
	"github.com/catena-http/catena/bench/internal/workload"
)

// curl moves large bodies one after the other on one connection, as many as may
// fit into the duration, three at least; the first is its warm-up. What connecting
// takes is not counted. curl 7.88, Debian's, fails when it uses a connection of
// cleartext HTTP/2 again, so there each body has a process and a connection.
func curl(ctx context.Context, spec workload.Spec) (measure.Sample, error) {
	n := max(int(spec.Duration/(100*time.Millisecond)), 3) + 1
	processes, each := 1, n
	if spec.Proto == client.H2C {
		processes, each = n, 1
	}
	var all strings.Builder
	var used time.Duration
	for range processes {
		out, cpu, err := output(ctx, "curl", curlArgs(spec, each)...)
		if err != nil {
			return measure.Sample{}, err
		}
		all.WriteString(out)
		used += cpu
	}
	s, err := parseCurl(all.String())
	s.CPU = micros(used) / float64(n)
	s.Body = spec.Files.Size
	return s, err
}

func curlArgs(spec workload.Spec, n int) []string {
	args := []string{"-sS", "-f", "--cacert", spec.Files.Cert, "-w", `%{time_total} %{time_pretransfer}\n`}
	switch spec.Proto {
	case client.H2C:
		args = append(args, "--http2-prior-knowledge")
	case client.H2TLS:
		args = append(args, "--http2")
	default:
		args = append(args, "--http1.1")
	}
	each := []string{"-o", "/dev/null", url(spec, servers.BodyPath)}
	if spec.Work == workload.Upload {
		args = append(args, "-X", "POST", "-H", "Expect:")
		each = []string{"-T", spec.Files.Body, "-o", "/dev/null", url(spec, servers.DiscardPath)}
	}
	return append(args, slices.Repeat(each, n)...)
}

func parseCurl(out string) (s measure.Sample, err error) {
	var latency measure.Histogram
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var total, before float64
		if _, err := fmt.Sscan(line, &total, &before); err != nil {
			return s, fmt.Errorf("cannot use curl's output: %s", line)
		}
		if i == 0 {
			continue
		}
		latency.Add(time.Duration((total - before) * float64(time.Second)))
		s.Seconds += total - before
		s.Requests++
	}
	s.P50, s.P99 = micros(latency.Quantile(0.5)), micros(latency.Quantile(0.99))
	return s, nil
}
