package workload

import (
	"bytes"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
)

func post(spec Spec) (measure.Sample, error) {
	return spec.loop(client.Op{
		Method: "POST",
		URL:    spec.url(servers.SmallPath),
		Body:   bytes.Repeat([]byte("x"), 1<<10),
	})
}
