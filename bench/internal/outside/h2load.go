package outside

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
	"github.com/catena-http/catena/bench/internal/workload"
)

// h2load measures small GETs as concurrent streams of one connection. It tells no
// quantiles.
func h2load(ctx context.Context, spec workload.Spec) (measure.Sample, error) {
	out, cpu, err := output(ctx, "h2load", "-t1", "-c1", "-m"+itoa(spec.Callers),
		"--warm-up-time", strconv.Itoa(int(spec.Warmup.Milliseconds()))+"ms",
		"-D", strconv.Itoa(int(spec.Duration.Milliseconds()))+"ms",
		url(spec, servers.SmallPath))
	if err != nil {
		return measure.Sample{}, err
	}
	s, err := parseH2load(out)
	if err != nil {
		return s, err
	}
	s.Seconds = spec.Duration.Seconds()
	share := spec.Duration.Seconds() / (spec.Duration + spec.Warmup).Seconds() // the warm-up's CPU is in it
	s.CPU = measure.Ratio(micros(cpu)*share, float64(s.Requests))
	return s, nil
}

var h2loadTotal = regexp.MustCompile(`requests: \d+ total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed, (\d+) errored`)

func parseH2load(out string) (s measure.Sample, err error) {
	total := h2loadTotal.FindStringSubmatch(out)
	if total == nil || total[2] != "0" || total[3] != "0" {
		return s, fmt.Errorf("cannot use h2load's output: %s", out)
	}
	s.Requests, err = strconv.ParseInt(total[1], 10, 64)
	return s, err
}
