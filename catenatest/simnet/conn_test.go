package simnet_test

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/google/go-cmp/cmp"
)

func TestAddrs(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		got := []string{client.LocalAddr().String(), client.RemoteAddr().String(), server.LocalAddr().String(), server.RemoteAddr().String()}
		want := []string{"198.18.0.1:49152", server80, server80, "198.18.0.1:49152"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if _, ok := client.LocalAddr().(*net.TCPAddr); !ok {
			t.Errorf("LocalAddr is a %T", client.LocalAddr())
		}
		if client.Peer() != server || server.Peer() != client {
			t.Error("Peer is not the other end")
		}
	})
}

func TestDeadlines(t *testing.T) {
	full := make([]byte, 100)
	tests := []struct {
		name string
		do   func(c *simnet.Conn) error // c's window of 10 bytes is full, and nothing is there to read
		took time.Duration
	}{
		{"read", func(c *simnet.Conn) error {
			c.SetReadDeadline(time.Now().Add(time.Second))
			_, err := c.Read(full)
			return err
		}, time.Second},
		{"write", func(c *simnet.Conn) error {
			c.SetWriteDeadline(time.Now().Add(2 * time.Second))
			_, err := c.Write(full)
			return err
		}, 2 * time.Second},
		{"set during the read", func(c *simnet.Conn) error {
			time.AfterFunc(time.Second, func() { c.SetDeadline(time.Now().Add(time.Second)) })
			_, err := c.Read(full)
			return err
		}, 2 * time.Second},
		{"past, during the write", func(c *simnet.Conn) error {
			time.AfterFunc(time.Second, func() { c.SetDeadline(time.Unix(1, 0)) })
			_, err := c.Write(full)
			return err
		}, time.Second},
		{"read while bytes are there", func(c *simnet.Conn) error {
			c.Peer().Write(full[:5])
			time.Sleep(time.Second)
			c.SetReadDeadline(time.Now())
			_, err := c.Read(full)
			return err
		}, time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				client, _ := connect(t, n)
				write(t, client, "0123456789")
				start := time.Now()
				wantErr(t, test.do(client), os.ErrDeadlineExceeded)
				wantElapsed(t, start, test.took)
			}, simnet.WithWindow(10))
		})
	}
}

func TestClearedDeadlineLetsReadGoOn(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		client.SetReadDeadline(time.Now())
		_, err := client.Read(make([]byte, 1))
		wantErr(t, err, os.ErrDeadlineExceeded)
		client.SetReadDeadline(time.Time{})
		write(t, server, "late")
		server.Close()
		wantRead(t, client, "late", nil)
	})
}

func TestHalfClose(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		write(t, client, "request")
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		_, err := client.Write([]byte("more"))
		wantErr(t, err, errPipe)
		wantRead(t, server, "request", nil)
		write(t, server, "response")
		server.Close()
		wantRead(t, client, "response", nil)
	}, simnet.WithLatency(time.Second))
}

func TestCloseRead(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		write(t, server, "early")
		if err := client.CloseRead(); err != nil {
			t.Fatal(err)
		}
		wantRead(t, client, "", nil)
		write(t, server, strings.Repeat("x", 1000)) // far beyond the window
		write(t, client, "request")
		client.Close()
		wantRead(t, server, "request", nil)
		wantErr(t, writeUntilError(t, server), errPipe)
	}, simnet.WithWindow(10))
}

func TestEndings(t *testing.T) {
	tests := []struct {
		name        string
		end         func(server *simnet.Conn)
		read, write error // of the client, afterwards
	}{
		{"close", func(s *simnet.Conn) { s.Close() }, nil, errPipe},
		{"reset", func(s *simnet.Conn) { s.Reset() }, errReset, errReset},
		{"close with unread bytes", func(s *simnet.Conn) {
			s.Peer().Write([]byte("unread"))
			time.Sleep(time.Second)
			s.Close()
		}, errReset, errReset},
		{"close before bytes arrive", func(s *simnet.Conn) {
			s.Peer().Write([]byte("on their way"))
			s.Close()
		}, nil, errPipe},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				client, server := connect(t, n)
				write(t, server, "last words")
				test.end(server)
				wantRead(t, client, "last words", test.read)
				wantErr(t, writeUntilError(t, client), test.write)
				_, err := server.Read(make([]byte, 1))
				wantErr(t, err, net.ErrClosed)
				_, err = server.Write(make([]byte, 1))
				wantErr(t, err, net.ErrClosed)
				wantErr(t, server.Close(), net.ErrClosed)
			}, simnet.WithLatency(10*time.Millisecond))
		})
	}
}

func TestBlockedCallsEnd(t *testing.T) {
	tests := []struct {
		name        string
		end         func(n *simnet.Network, c *simnet.Conn)
		read, write error
	}{
		{"own close", func(_ *simnet.Network, c *simnet.Conn) { c.Close() }, net.ErrClosed, net.ErrClosed},
		{"peer's reset", func(_ *simnet.Network, c *simnet.Conn) { c.Peer().Reset() }, errReset, errReset},
		{"peer's close with unread bytes", func(_ *simnet.Network, c *simnet.Conn) { c.Peer().Close() }, errReset, errReset},
		{"network's close", func(n *simnet.Network, _ *simnet.Conn) { n.Close() }, net.ErrClosed, net.ErrClosed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				client, _ := connect(t, n)
				var wg sync.WaitGroup
				wg.Go(func() {
					_, err := client.Read(make([]byte, 1))
					wantErr(t, err, test.read)
				})
				wg.Go(func() {
					sent, err := client.Write(make([]byte, 100))
					wantErr(t, err, test.write)
					if sent != 10 {
						t.Errorf("Write = %d, want the window's 10", sent)
					}
				})
				synctest.Wait()
				time.Sleep(time.Second)
				test.end(n, client)
				wg.Wait()
			}, simnet.WithWindow(10), simnet.WithLatency(time.Millisecond))
		})
	}
}

func TestWindowHoldsWriterBack(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		done := make(chan time.Duration)
		start := time.Now()
		go func() {
			client.Write(make([]byte, 64<<10+1))
			done <- time.Since(start)
		}()
		synctest.Wait()
		if got := client.Sent(); got != 64<<10 {
			t.Errorf("a writer nobody reads from sent %d bytes, want %d", got, 64<<10)
		}
		time.Sleep(3 * time.Second)
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if took := <-done; took != 3*time.Second {
			t.Errorf("Write took %v, want 3s", took)
		}
	})
}

// A Write that comes while another waits for room does not take the room.
func TestConcurrentWritesAreNotMixed(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		var wg sync.WaitGroup
		wg.Go(func() { client.Write([]byte(strings.Repeat("a", 1000))) })
		synctest.Wait()
		var got []byte
		b := make([]byte, 7)
		for range 10 {
			n, _ := server.Read(b)
			got = append(got, b[:n]...)
			wg.Go(func() { client.Write([]byte(strings.Repeat("b", 10))) })
			synctest.Wait()
		}
		go func() {
			wg.Wait()
			client.Close()
		}()
		rest, err := io.ReadAll(server)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat("a", 1000) + strings.Repeat("b", 100)
		if diff := cmp.Diff(want, string(got)+string(rest)); diff != "" {
			t.Error(diff)
		}
	}, simnet.WithWindow(7))
}

// The reset that answers bytes on their way comes a round trip after they left, also to a writer who waits.
func TestBytesOnTheirWayToAClosedEnd(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		start := time.Now()
		time.AfterFunc(5*ms, func() { server.Close() })
		sent, err := client.Write(make([]byte, 100))
		wantErr(t, err, errPipe)
		wantElapsed(t, start, 20*ms)
		if sent != 10 {
			t.Errorf("Write = %d, want the window's 10", sent)
		}
	}, simnet.WithWindow(10), simnet.WithLatency(10*ms))
}

func TestEmptyReadAndWrite(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, _ := connect(t, n)
		for name, call := range map[string]func([]byte) (int, error){"Read": client.Read, "Write": client.Write} {
			if n, err := call(nil); n != 0 || err != nil {
				t.Errorf("%s(nil) = %d, %v", name, n, err)
			}
		}
	})
}
