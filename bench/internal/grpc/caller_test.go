package grpc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/bench/internal/servers"
	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// caller is a client of a server. The events of its calls are checked when the test
// ends.
type caller struct {
	*testing.T
	*server
	client *catena.Client
}

// over runs a test over TLS and in clear text.
func over(t *testing.T, test func(*testing.T, *caller)) {
	for _, protocol := range []string{"h2", "h2c"} {
		t.Run(protocol, func(t *testing.T) { test(t, newCaller(t, start(t, protocol == "h2"))) })
	}
}

func newCaller(t *testing.T, s *server) *caller {
	t.Helper()
	events := event.NewRecorder()
	opts := []catena.Option{catena.WithProxy(proxy.Proxy{}), catena.WithEventListener(events)}
	if s.cert != "" {
		config, err := servers.ClientTLS(s.cert, true)
		if err != nil {
			t.Fatal(err)
		}
		opts = append(opts, catena.WithTLSConfig(config))
	} else {
		opts = append(opts, catena.WithProtocols("h2c"))
	}
	client, err := catena.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		if err := catenatest.CheckEvents(events.Events()); err != nil {
			t.Error(err)
		}
	})
	return &caller{t, s, client}
}

// request is a call of a method, "/catena.Echo/Say".
func (c *caller) request(ctx context.Context, method string, body io.Reader) *http.Request {
	c.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+method, body)
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc+raw")
	req.Header.Set("TE", "trailers")
	return req
}

// do is for a call that is expected to be answered.
func (c *caller) do(req *http.Request) *http.Response {
	c.Helper()
	resp, err := c.client.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		c.Fatalf("%s by %s", resp.Status, resp.Proto)
	}
	return resp
}

// unary calls a method with one message and returns all that came back.
func (c *caller) unary(method string, message []byte) (answer []byte, resp *http.Response) {
	c.Helper()
	resp = c.do(c.request(c.Context(), method, bytes.NewReader(frame(message))))
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	return answer, resp
}

// stream is a call that has its response's head and can send and receive.
type stream struct {
	*testing.T
	resp *http.Response
	send *io.PipeWriter
}

// open begins a call of a method that sends its head at once. The test's end closes
// the stream.
func (c *caller) open(ctx context.Context, method string, fields ...string) *stream {
	c.Helper()
	body, send := io.Pipe()
	req := c.request(ctx, method, body)
	req.ContentLength = -1 // the body is not empty: nobody need wait for its first bytes
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	s := &stream{c.T, c.do(req), send}
	c.Cleanup(func() {
		s.resp.Body.Close()
		send.Close()
	})
	return s
}

func (s *stream) write(message []byte) error {
	_, err := s.send.Write(frame(message))
	return err
}

func (s *stream) read() ([]byte, error) { return readFrame(s.resp.Body) }

// end half-closes the stream and reads the status, which must be all that is left.
func (s *stream) end() (code string) {
	s.Helper()
	s.send.Close()
	if rest, err := io.ReadAll(s.resp.Body); err != nil || len(rest) > 0 {
		s.Errorf("%d bytes and the error %v at the end of the stream", len(rest), err)
	}
	return s.resp.Trailer.Get("Grpc-Status")
}

// frame is a message as gRPC sends it: not compressed, its length, itself.
func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

func readFrame(r io.Reader) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if head[0] != 0 {
		return nil, errors.New("the message is compressed")
	}
	message := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err := io.ReadFull(r, message)
	return message, err
}

// soon receives what must come.
func soon[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came within 10 s")
	}
	return v
}
