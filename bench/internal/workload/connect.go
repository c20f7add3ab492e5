package workload

import (
	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
)

// connect opens spec.Conns connections, makes one small GET on each and closes it.
// The server refuses a second one, so a client that keeps connections fails.
func connect(spec Spec) (measure.Sample, error) {
	return spec.loop(client.Op{Method: "GET", URL: spec.url(servers.FirstPath), Close: true})
}
