package workload_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/plan"
	"github.com/catena-http/catena/bench/internal/servers"
	"github.com/catena-http/catena/bench/internal/workload"
)

// serve starts the Go server with files whose large one is of size bytes.
func serve(t *testing.T, size int64) (servers.Files, servers.Addrs) {
	t.Helper()
	files, err := servers.NewFiles(t.TempDir(), size)
	if err != nil {
		t.Fatal(err)
	}
	addrs, stop, err := servers.Serve(files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return files, addrs
}

// Every client does every workload that it takes part in, against the Go server.
func TestEveryClientWorks(t *testing.T) {
	files, addrs := serve(t, 1<<20)
	done := map[string]bool{}
	for _, cell := range plan.Full() {
		for _, name := range cell.Clients() {
			id := fmt.Sprintf("%s/%s/%s", cell.Workload(), cell.Proto, name)
			if done[id] || slices.Contains(plan.Outside(), name) {
				continue
			}
			done[id] = true
			t.Run(id, func(t *testing.T) {
				s, err := workload.Run(workload.Spec{
					Client: name, Work: cell.Workload(), Proto: cell.Proto, Callers: 4,
					Addr: addrs[cell.Proto], Files: files,
					Warmup: time.Millisecond, Duration: 5 * time.Millisecond, Conns: conns(cell),
				})
				if err != nil {
					t.Fatal(err)
				}
				if s.Requests == 0 || s.Rate() <= 0 {
					t.Errorf("measured nothing: %+v", s)
				}
				switch cell.Work {
				case workload.Idle:
					if s.Memory <= 0 {
						t.Errorf("an idle connection costs %v bytes", s.Memory)
					}
				case workload.Download, workload.Upload:
					if s.Body != files.Size {
						t.Errorf("a body of %d bytes, want %d", s.Body, files.Size)
					}
				case workload.Connect, workload.Reconnect:
					if s.Requests != int64(conns(cell)) {
						t.Errorf("%d connections, want %d", s.Requests, conns(cell))
					}
				default:
					if s.P50 <= 0 || s.P99 < s.P50 {
						t.Errorf("latencies: %+v", s)
					}
				}
			})
		}
	}
}

// The bound moves more than windows hold: bodies are larger than those of streams, and
// what all callers send is more than the connection's.
func TestTheBoundMovesMoreThanAWindow(t *testing.T) {
	files, addrs := serve(t, 40<<20)
	for _, work := range []string{workload.Download, workload.Upload} {
		s, err := workload.Run(workload.Spec{
			Client: plan.Bound, Work: work, Proto: client.H2C, Callers: 2,
			Addr: addrs[client.H2C], Files: files, Warmup: time.Millisecond, Duration: time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		if s.Body != files.Size {
			t.Errorf("%s of %d bytes, want %d", work, s.Body, files.Size)
		}
	}
}

// conns is how many connections the cell's workload opens; the others open what
// they need.
func conns(c plan.Cell) int {
	switch c.Work {
	case workload.Connect, workload.Reconnect:
		return 8
	case workload.Idle:
		return 20
	}
	return 0
}

// A failure of the server is the run's, not a fast answer.
func TestAFailureIsAnError(t *testing.T) {
	files, addrs := serve(t, 1<<20)
	if err := os.Remove(files.Body); err != nil { // the server answers 404
		t.Fatal(err)
	}
	for _, name := range []string{"catena", "nethttp", "fasthttp", "resty", "req", plan.Bound} {
		_, err := workload.Run(workload.Spec{
			Client: name, Work: workload.Download, Proto: client.H1, Callers: 1,
			Addr: addrs[client.H1], Files: files, Duration: time.Millisecond,
		})
		if err == nil {
			t.Errorf("%s downloaded what is not there", name)
		}
	}
	_, err := workload.Run(workload.Spec{
		Client: plan.Bound, Work: workload.Download, Proto: client.H2C, Callers: 1,
		Addr: addrs[client.H2C], Files: files, Duration: time.Millisecond,
	})
	if err == nil || !strings.Contains(err.Error(), "status 200") {
		t.Errorf("%s downloaded what is not there by HTTP/2: %v", plan.Bound, err)
	}
	_, err = workload.Run(workload.Spec{
		Client: "nethttp", Work: workload.Get, Proto: client.H1, Callers: 1,
		Addr: addrs[client.H1] + servers.FirstPath + "?", Files: files, Duration: time.Millisecond,
	})
	if err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("a second request on a connection passes for a connection of its own: %v", err)
	}
	if _, err := workload.Run(workload.Spec{Client: "catena", Work: "nap"}); err == nil {
		t.Error("there is a workload that is none")
	}
}

func TestProfiles(t *testing.T) {
	files, addrs := serve(t, 1)
	spec := workload.Spec{
		Client: "catena", Work: workload.Get, Proto: client.H1, Callers: 1,
		Addr: addrs[client.H1], Files: files, Duration: time.Millisecond,
		CPUProfile: files.Dir + "/cpu", MemProfile: files.Dir + "/mem",
	}
	if _, err := workload.Run(spec); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{spec.CPUProfile, spec.MemProfile} {
		if info, err := os.Stat(name); err != nil || info.Size() == 0 {
			t.Errorf("no profile in %s: %v", name, err)
		}
	}
}
