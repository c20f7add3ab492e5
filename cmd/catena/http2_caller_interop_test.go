//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// http2Caller is a client of a server by one protocol. What it recorded is checked
// when the test ends.
type http2Caller struct {
	http2Server
	files
	*testing.T
	protocol, base string
	client         *catena.Client
	events         *event.Recorder
	connections    *event.ConnectionRecorder
}

func newHTTP2Caller(t *testing.T, s http2Server, f files, protocol string) *http2Caller {
	c := &http2Caller{
		http2Server: s,
		files:       f,
		T:           t,
		protocol:    protocol,
		base:        s.bases[protocol],
		events:      event.NewRecorder(),
		connections: event.NewConnectionRecorder(),
	}
	ca, err := os.ReadFile(s.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	protocols := []string{"h2", "http/1.1"}
	if protocol == "h2c" {
		protocols = []string{"h2c"}
	}
	c.client, err = catena.New(
		catena.WithProxy(proxy.Proxy{}),
		catena.WithTLSConfig(&tls.Config{RootCAs: roots}),
		catena.WithProtocols(protocols...),
		catena.WithEventListener(c.events),
		catena.WithConnectionListener(c.connections),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.client.Close()
		if err := catenatest.CheckEvents(c.events.Events()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// answer is a response that was read to its end.
type answer struct {
	*http.Response
	body       []byte
	connection uint64
}

// do calls path, or a whole URL, and checks that the server answers with the status
// by the protocol.
func (c *http2Caller) do(ctx context.Context, method, path string, body io.Reader, status int, fields ...string) (answer, error) {
	if strings.HasPrefix(path, "/") {
		path = c.base + path
	}
	a, err := ask(ctx, c.client, method, path, body, fields...)
	if err != nil {
		return answer{}, err
	}
	info, _ := catena.InfoOf(a.Response)
	if info.Protocol != c.protocol || a.ProtoMajor != 2 || a.StatusCode != status {
		return answer{}, fmt.Errorf("%s %s: status %d by %s (%q), want %d by %s", method, path, a.StatusCode, a.Proto,
			info.Protocol, status, c.protocol)
	}
	return a, nil
}

// ask does one call with fields, names and values in turn, and reads the answer to its
// end.
func ask(ctx context.Context, client *catena.Client, method, url string, body io.Reader, fields ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	info, _ := catena.InfoOf(resp)
	return answer{resp, content, info.Connection.ID()}, nil
}

// must is do for what the test's goroutine does.
func (c *http2Caller) must(method, path string, body io.Reader, status int, fields ...string) answer {
	c.Helper()
	a, err := c.do(c.Context(), method, path, body, status, fields...)
	if err != nil {
		c.Fatal(err)
	}
	return a
}

// connected is how many connections there have been.
func (c *http2Caller) connected() (n int) {
	for _, e := range c.connections.Events() {
		if e.Name == "Connected" {
			n++
		}
	}
	return n
}
