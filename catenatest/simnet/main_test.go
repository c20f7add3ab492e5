package simnet_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/catenatest/simnet"
	"go.uber.org/goleak"
)

const server80 = "192.0.2.1:80"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test in virtual time on a network of its own.
func bubble(t *testing.T, test func(t *testing.T, n *simnet.Network), opts ...simnet.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(opts...)
		defer n.Close()
		test(t, n)
	})
}

func listen(t *testing.T, n *simnet.Network, addr string) net.Listener {
	t.Helper()
	l, err := n.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func dial(t *testing.T, n *simnet.Network, addr string) *simnet.Conn {
	t.Helper()
	c, err := n.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*simnet.Conn)
}

// connect makes a connection to server80.
func connect(t *testing.T, n *simnet.Network) (client, server *simnet.Conn) {
	t.Helper()
	l := listen(t, n, server80)
	client = dial(t, n, server80)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, c.(*simnet.Conn)
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if n, err := io.WriteString(w, text); n != len(text) || err != nil {
		t.Fatalf("Write = %d, %v; want %d, nil", n, err, len(text))
	}
}

// wantRead reads to the end or an error and compares.
func wantRead(t *testing.T, c net.Conn, text string, want error) {
	t.Helper()
	got, err := io.ReadAll(c)
	if string(got) != text || !errors.Is(err, want) {
		t.Errorf("read %q, %v; want %q, %v", got, err, text, want)
	}
}

// wantErr checks an error of a Conn: its reason, its type and its timeout.
func wantErr(t *testing.T, err, want error) {
	t.Helper()
	var op *net.OpError
	if !errors.Is(err, want) || !errors.As(err, &op) {
		t.Errorf("error %v; want a *net.OpError around %v", err, want)
		return
	}
	var timeout interface{ Timeout() bool }
	if wants := errors.As(want, &timeout) && timeout.Timeout(); op.Timeout() != wants {
		t.Errorf("%v: Timeout() = %v, want %v", err, op.Timeout(), wants)
	}
}

func wantElapsed(t *testing.T, since time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(since); got != want {
		t.Errorf("took %v, want %v", got, want)
	}
}

// writeUntilError writes small pieces, with virtual time between them, until one fails.
func writeUntilError(t *testing.T, c net.Conn) error {
	t.Helper()
	for range 100 {
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

var (
	errReset = error(syscall.ECONNRESET)
	errPipe  = error(syscall.EPIPE)
)
