package outside

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
	"github.com/catena-http/catena/bench/internal/workload"
)

// wrk measures small GETs with as many connections as callers, on one thread. It
// counts whole seconds and has no warm-up.
func wrk(ctx context.Context, spec workload.Spec) (measure.Sample, error) {
	seconds := max(int(spec.Duration.Round(time.Second).Seconds()), 1)
	out, cpu, err := output(ctx, "wrk", "-t1", "-c"+itoa(spec.Callers), "-d"+itoa(seconds)+"s", "--latency",
		url(spec, servers.SmallPath))
	if err != nil {
		return measure.Sample{}, err
	}
	s, err := parseWrk(out)
	s.CPU = measure.Ratio(micros(cpu), float64(s.Requests))
	return s, err
}

var (
	wrkTotal   = regexp.MustCompile(`(\d+) requests in ([\d.]+\w+)`)
	wrkLatency = regexp.MustCompile(`(?m)^\s+(50|99)%\s+([\d.]+\w+)$`)
)

func parseWrk(out string) (s measure.Sample, err error) {
	total := wrkTotal.FindStringSubmatch(out)
	if total == nil || strings.Contains(out, "Non-2xx") {
		return s, fmt.Errorf("cannot use wrk's output: %s", out)
	}
	s.Requests, _ = strconv.ParseInt(total[1], 10, 64)
	took, err := time.ParseDuration(total[2])
	s.Seconds = took.Seconds()
	for _, m := range wrkLatency.FindAllStringSubmatch(out, -1) {
		d, e := time.ParseDuration(m[2])
		if e != nil {
			err = e
		}
		if m[1] == "50" {
			s.P50 = micros(d)
		} else {
			s.P99 = micros(d)
		}
	}
	return s, err
}
