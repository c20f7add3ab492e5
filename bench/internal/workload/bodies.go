package workload

import (
	"fmt"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
)

func download(spec Spec) (measure.Sample, error) {
	s, err := spec.loop(client.Op{Method: "GET", URL: spec.url(servers.BodyPath), Stream: true})
	if err == nil && s.Body != spec.Files.Size {
		err = fmt.Errorf("got %d bytes of %d", s.Body, spec.Files.Size)
	}
	return s, err
}

func upload(spec Spec) (measure.Sample, error) {
	s, err := spec.loop(client.Op{
		Method: "POST",
		URL:    spec.url(servers.DiscardPath),
		File:   spec.Files.Body,
		Size:   spec.Files.Size,
	})
	s.Body = spec.Files.Size
	return s, err
}
