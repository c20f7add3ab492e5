package workload

import (
	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
)

func get(spec Spec) (measure.Sample, error) {
	return spec.loop(client.Op{Method: "GET", URL: spec.url(servers.SmallPath)})
}
