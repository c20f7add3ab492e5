package outside

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
	"github.com/catena-http/catena/bench/internal/workload"
)

const wrkOutput = `Running 1s test @ http://127.0.0.1:18923/small
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    20.60ms   45.63ms 210.28ms   87.43%
    Req/Sec     1.15k     0.94k    2.26k    44.44%
  Latency Distribution
     50%   98.00us
     75%    5.81ms
     90%   90.75ms
     99%  196.29ms
  1088 requests in 1.04s, 217.81KB read
Requests/sec:   1041.87
Transfer/sec:    208.58KB
`

func TestWrk(t *testing.T) {
	got, err := parseWrk(wrkOutput)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(measure.Sample{Requests: 1088, Seconds: 1.04, P50: 98, P99: 196290}, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", wrkOutput + "  Non-2xx or 3xx responses: 7\n"} {
		if _, err := parseWrk(bad); err == nil {
			t.Errorf("taken for a result: %q", bad)
		}
	}
}

const h2loadOutput = `finished in 310.07ms, 128713.33 req/s, 12.03MB/s
requests: 38614 total, 38678 started, 38614 done, 38614 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 38614 2xx, 0 3xx, 0 4xx, 0 5xx
`

func TestH2load(t *testing.T) {
	got, err := parseH2load(h2loadOutput)
	if err != nil || got.Requests != 38614 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", strings.Replace(h2loadOutput, "0 failed", "3 failed", 1), strings.Replace(h2loadOutput, "0 errored", "3 errored", 1)} {
		if _, err := parseH2load(bad); err == nil {
			t.Errorf("taken for a result: %q", bad)
		}
	}
}

// The first transfer is curl's warm-up, and connecting is not counted.
func TestCurl(t *testing.T) {
	got, err := parseCurl("9.0 0.1\n0.060 0.010\n0.042 0.002\n")
	if err != nil {
		t.Fatal(err)
	}
	if got.Requests != 2 || math.Abs(got.Seconds-0.09) > 1e-9 {
		t.Errorf("%+v, want 2 in 0.09 s", got)
	}
	if _, err := parseCurl("curl: (7)"); err == nil {
		t.Error("an error message is taken for a result")
	}
}

func TestCurlArgs(t *testing.T) {
	spec := workload.Spec{
		Work: workload.Upload, Proto: client.H2C, Addr: "127.0.0.1:1",
		Files: servers.Files{Body: "/b"},
	}
	args := curlArgs(spec, 2)
	if !slices.Contains(args, "--http2-prior-knowledge") || !slices.Contains(args, "Expect:") {
		t.Errorf("%q", args)
	}
	urls := 0
	for _, a := range args {
		if a == "http://127.0.0.1:1/discard" {
			urls++
		}
	}
	if urls != 2 {
		t.Errorf("%d transfers, want 2: %q", urls, args)
	}
}

func TestWhoDoesWhat(t *testing.T) {
	for _, test := range []struct {
		name, work, proto string
		want              bool
	}{
		{"wrk", workload.Get, client.H1, true},
		{"wrk", workload.Get, client.H2C, false},
		{"h2load", workload.Get, client.H2TLS, true},
		{"curl", workload.Download, client.H2TLS, true},
		{"curl", workload.Get, client.H1, false},
		{"catena", workload.Get, client.H1, false},
	} {
		if got := Does(test.name, test.work, test.proto); got != test.want {
			t.Errorf("Does(%q, %q, %q) = %v", test.name, test.work, test.proto, got)
		}
	}
}

func TestOkHTTP(t *testing.T) {
	got, err := parseOkHTTP("27512 1.000215 553.2 1770.0 31.5\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(measure.Sample{Requests: 27512, Seconds: 1.000215, P50: 553.2, P99: 1770, CPU: 31.5}, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "27512 1.0", "Exception in thread main"} {
		if _, err := parseOkHTTP(bad); err == nil {
			t.Errorf("taken for a result: %q", bad)
		}
	}
}
