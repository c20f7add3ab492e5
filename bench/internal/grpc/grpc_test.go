package grpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
)

func TestUnary(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		answer, resp := c.unary("/catena.Echo/Say", []byte("hello"))
		if want := frame([]byte("hello")); !bytes.Equal(answer, want) {
			t.Errorf("answer %q, want %q", answer, want)
		}
		want := http.Header{"Grpc-Status": {"0"}, "Grpc-Message": {""}, "X-Late": {"after the body"}}
		if diff := cmp.Diff(want, resp.Trailer); diff != "" {
			t.Errorf("trailers (-want +got):\n%s", diff)
		}
	})
}

// A failure without a message is a head alone: its status is a header field.
func TestTrailersOnly(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		tests := []struct{ name, method, status, message string }{
			{"the service fails", "/catena.Echo/Say", "9", "100 %25 no"},
			{"unknown method", "/catena.Echo/Missing", "12", "unknown method Missing for service catena.Echo"},
		}
		for _, tt := range tests {
			answer, resp := c.unary(tt.method, []byte("fail"))
			got := []string{resp.Header.Get("Grpc-Status"), resp.Header.Get("Grpc-Message")}
			if diff := cmp.Diff([]string{tt.status, tt.message}, got); diff != "" || len(answer) > 0 {
				t.Errorf("%s: answer %q, header (-want +got):\n%s", tt.name, answer, diff)
			}
		}
	})
}

func TestHealth(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		req := c.request(t.Context(), "/grpc.health.v1.Health/Check", bytes.NewReader(frame(nil)))
		req.Header.Set("Content-Type", "application/grpc")
		resp := c.do(req)
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		// Field 1, the status, is 1: SERVING.
		if want := frame([]byte{1 << 3, 1}); err != nil || !bytes.Equal(answer, want) || resp.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("answer %q, error %v, trailers %v; want %q and the status 0", answer, err, resp.Trailer, want)
		}
	})
}

// pingPong sends n messages, each when the answer to the one before has come.
func pingPong(s *stream, n int) error {
	for i := range n {
		message := fmt.Appendf(nil, "message %d", i)
		if err := s.write(message); err != nil {
			return err
		}
		got, err := s.read()
		if err != nil {
			return err
		}
		if !bytes.Equal(got, message) {
			return fmt.Errorf("got %q, want %q", got, message)
		}
	}
	return nil
}

func TestPingPong(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		s := c.open(t.Context(), "/catena.Echo/Talk")
		if err := pingPong(s, 1000); err != nil {
			t.Fatal(err)
		}
		if code := s.end(); code != "0" {
			t.Errorf("status %q", code)
		}
	})
}

// Both directions are busy at once: 32 MiB, far more than the server's window.
func TestBothDirections(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		const messages, size = 256, 128 << 10
		s := c.open(t.Context(), "/catena.Echo/Talk")
		sent := make(chan error, 1)
		go func() { // ends with the messages, or with the stream
			defer s.send.Close()
			for i := range messages {
				if err := s.write(bytes.Repeat([]byte{byte(i)}, size)); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		for i := range messages {
			got, err := s.read()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, size)) {
				t.Fatalf("message %d came back as %d other bytes", i, len(got))
			}
		}
		if err := soon(t, sent); err != nil {
			t.Error(err)
		}
		if code := s.end(); code != "0" {
			t.Errorf("status %q", code)
		}
	})
}

// The server answers what it can only know when the client has closed its half.
func TestHalfClose(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		body, send := io.Pipe()
		go func() { // ends with the messages; the client reads them
			defer send.Close()
			for range 300 {
				send.Write(frame(make([]byte, 1000)))
			}
		}()
		resp := c.do(c.request(t.Context(), "/catena.Echo/Count", body))
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if want := frame([]byte("300")); err != nil || !bytes.Equal(answer, want) || resp.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("answer %q, error %v, trailers %v; want %q and the status 0", answer, err, resp.Trailer, want)
		}
	})
}

// The server fails while the client still sends.
func TestFailureInTheMiddle(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		s := c.open(t.Context(), "/catena.Echo/Talk")
		if err := pingPong(s, 10); err != nil {
			t.Fatal(err)
		}
		if err := s.write([]byte("fail")); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(s.resp.Body); err != nil || len(rest) > 0 {
			t.Fatalf("%d bytes and the error %v after the failure", len(rest), err)
		}
		want := http.Header{"Grpc-Status": {"10"}, "Grpc-Message": {"told to"}}
		if diff := cmp.Diff(want, s.resp.Trailer); diff != "" {
			t.Errorf("trailers (-want +got):\n%s", diff)
		}
		// The stream is reset, so that the body is closed when more of it comes.
		stopped := make(chan error)
		go func() { // ends when the body is closed
			for {
				if err := s.write([]byte("more")); err != nil {
					close(stopped)
					return
				}
			}
		}()
		soon(t, stopped)
	})
}

// Closing the response's body ends the request's, which has nothing to send.
func TestCloseAfterTheEnd(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		s := c.open(t.Context(), "/catena.Echo/Talk")
		if err := s.write([]byte("fail")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(s.resp.Body); err != nil {
			t.Fatal(err)
		}
		s.resp.Body.Close()
		if err := s.write([]byte("more")); err == nil {
			t.Error("the request's body is still read")
		}
	})
}

// The server sees that the client gives up, in whatever way.
func TestCancel(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		tests := []struct {
			name string
			stop func(cancel func(), s *stream)
			want error // of the next Read
		}{
			{"by context", func(cancel func(), _ *stream) { cancel() }, context.Canceled},
			{"by closing the body", func(_ func(), s *stream) { s.resp.Body.Close() }, nil},
			{"by its own body", func(_ func(), s *stream) { s.send.CloseWithError(errBody) }, errBody},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := (&caller{t, c.server, c.client}).open(ctx, "/catena.Echo/Wait")
				tt.stop(cancel, s)
				if err := soon(t, c.ended); !errors.Is(err, context.Canceled) {
					t.Errorf("the server's context ended by %v, want it canceled", err)
				}
				if _, err := s.resp.Body.Read(make([]byte, 1)); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("Read: %v, want %v", err, tt.want)
				}
				if err := s.write([]byte("more")); err == nil {
					t.Error("the request's body is still read")
				}
			})
		}
	})
}

var errBody = errors.New("out of messages")

// A writer that waits for the window of a server that does not read can be stopped.
func TestCancelBlockedUpload(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := c.open(ctx, "/catena.Echo/Wait")
		progress, stopped := make(chan int, 1<<10), make(chan error, 1)
		go func() { // ends with the stream
			for n := 0; ; n++ {
				if err := s.write(make([]byte, 64<<10)); err != nil {
					stopped <- err
					return
				}
				progress <- n
			}
		}()
		for blocked := false; !blocked; {
			select {
			case <-progress:
			case err := <-stopped:
				t.Fatal(err)
			case <-time.After(300 * time.Millisecond):
				blocked = true
			}
		}
		cancel()
		soon(t, stopped)
		soon(t, c.ended)
	})
}

func TestDeadline(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		// The server's status races with its reset of the stream.
		t.Run("of the server", func(t *testing.T) {
			s := (&caller{t, c.server, c.client}).open(t.Context(), "/catena.Echo/Wait", "Grpc-Timeout", "50m")
			soon(t, c.ended)
			_, err := s.read()
			code := s.resp.Trailer.Get("Grpc-Status")
			if reset := err != nil && strings.Contains(err.Error(), "stream was reset: CANCEL"); !reset && (err != io.EOF || code != "4") {
				t.Errorf("error %v, status %q; want a reset or the status 4", err, code)
			}
		})
		t.Run("of the context", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			s := (&caller{t, c.server, c.client}).open(ctx, "/catena.Echo/Wait")
			if _, err := s.read(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Read: %v, want %v", err, context.DeadlineExceeded)
			}
			if err := soon(t, c.ended); !errors.Is(err, context.Canceled) {
				t.Errorf("the server's context ended by %v, want it canceled", err)
			}
		})
	})
}

func TestManyStreams(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		const streams = 32
		c.unary("/catena.Echo/Say", nil) // connects
		var open [streams]*stream
		connections := map[uint64]bool{}
		for i := range open {
			open[i] = c.open(t.Context(), "/catena.Echo/Talk")
			info, _ := catena.InfoOf(open[i].resp)
			connections[info.Connection.ID()] = true
		}
		var calls sync.WaitGroup
		for _, s := range open {
			calls.Go(func() {
				if err := pingPong(s, 50); err != nil {
					t.Error(err)
				}
				if code := s.end(); code != "0" {
					t.Errorf("status %q", code)
				}
			})
		}
		calls.Wait()
		if len(connections) != 1 {
			t.Errorf("%d streams on %d connections, want 1", streams, len(connections))
		}
	})
}

// The server stops when its streams have ended, and they go on until then.
func TestGracefulStop(t *testing.T) {
	over(t, func(t *testing.T, c *caller) {
		s := c.open(t.Context(), "/catena.Echo/Talk")
		if err := pingPong(s, 1); err != nil {
			t.Fatal(err)
		}
		stopped := make(chan struct{})
		go func() { // ends with the stream, or with the server
			defer close(stopped)
			c.GracefulStop()
		}()
		if err := pingPong(s, 100); err != nil {
			t.Fatal(err)
		}
		select {
		case <-stopped:
			t.Error("the server stopped although a stream was open")
		default:
		}
		if code := s.end(); code != "0" {
			t.Errorf("status %q", code)
		}
		soon(t, stopped)
	})
}
