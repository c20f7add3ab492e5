// Package workload has what a client is put through, one file for each, and runs
// in a process of its own: so CPU, allocations and memory are that client's.
package workload

import (
	"fmt"
	"time"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
)

// The workloads.
const (
	Get       = "get"       // small GETs on pooled connections
	Post      = "post"      // POST of 1 KiB, small answer
	Download  = "download"  // one large body after the other
	Upload    = "upload"    // the same upwards, from a file
	Connect   = "connect"   // a connection for every request; TLS handshakes in full
	Reconnect = "reconnect" // the same with TLS sessions resumed
	Idle      = "idle"      // what an idle connection costs
)

// Spec says what one client process does.
type Spec struct {
	Client  string        `json:"client"`
	Work    string        `json:"work"`
	Proto   string        `json:"proto"`
	Callers int           `json:"callers"` // goroutines that call in a closed loop
	Addr    string        `json:"addr"`    // of the server's listener
	Files   servers.Files `json:"files"`

	Warmup   time.Duration `json:"warmup"`
	Duration time.Duration `json:"duration"`
	Conns    int           `json:"conns"` // connections that Connect and Reconnect open, and Idle keeps

	CPUProfile string `json:"cpu_profile"` // file for a profile of the measured time; empty: none
	MemProfile string `json:"mem_profile"` // file for what was allocated, or lives in Idle
}

var workloads = map[string]func(Spec) (measure.Sample, error){
	Get: get, Post: post, Download: download, Upload: upload,
	Connect: connect, Reconnect: connect, Idle: idle,
}

// Run does what spec says and returns what it measured.
func Run(spec Spec) (measure.Sample, error) {
	run, ok := workloads[spec.Work]
	if !ok {
		return measure.Sample{}, fmt.Errorf("there is no workload %q", spec.Work)
	}
	s, err := run(spec)
	if err != nil {
		err = fmt.Errorf("%s, %s by %s: %w", spec.Work, spec.Proto, spec.Client, err)
	}
	return s, err
}

// newClient makes the client that is measured.
func (s Spec) newClient() (client.Client, error) {
	cfg, err := servers.ClientTLS(s.Files.Cert, s.Work != Connect)
	if err != nil {
		return nil, err
	}
	return client.New(s.Client, client.Config{
		Proto:  s.Proto,
		TLS:    cfg,
		Conns:  max(s.Callers, s.Conns) + 1,
		Addr:   s.dialAddr(),
		Stream: s.Work == Download || s.Work == Upload || s.Work == Idle,
	})
}

// dialAddr is where made-up host names lead; none are used but for Idle.
func (s Spec) dialAddr() string {
	if s.Work == Idle && client.IsHTTP2(s.Proto) {
		return s.Addr
	}
	return ""
}

func (s Spec) url(path string) string { return s.scheme() + "://" + s.Addr + path }

func (s Spec) scheme() string {
	if s.Proto == client.H1TLS || s.Proto == client.H2TLS {
		return "https"
	}
	return "http"
}

// bodyBuffer is what a caller reads bodies with.
const bodyBuffer = 64 << 10
