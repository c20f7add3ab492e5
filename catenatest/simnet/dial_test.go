package simnet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/google/go-cmp/cmp"
)

func TestDial(t *testing.T) {
	tests := []struct {
		name          string
		network, addr string
		remote        string // of the connection
		err           error  // found by errors.Is
	}{
		{"address", "tcp", "192.0.2.1:80", "192.0.2.1:80", nil},
		{"mapped address", "tcp", "[::ffff:192.0.2.1]:80", "192.0.2.1:80", nil},
		{"IPv6", "tcp6", "[2001:db8::1]:443", "[2001:db8::1]:443", nil},
		{"name", "tcp", "good.test:80", "192.0.2.1:80", nil},
		{"name whose first address refuses", "tcp4", "second.test:80", "192.0.2.1:80", nil},
		{"any IPv4", "tcp", "203.0.113.7:8080", "203.0.113.7:8080", nil},
		{"any IPv6 does not listen there", "tcp", "[2001:db8::2]:8080", "", syscall.ECONNREFUSED},
		{"any, both families", "tcp", "203.0.113.7:9090", "203.0.113.7:9090", nil},
		{"nobody listens", "tcp", "192.0.2.1:81", "", syscall.ECONNREFUSED},
		{"name whose addresses all refuse", "tcp", "second.test:81", "", syscall.ECONNREFUSED},
		{"no address of the family", "tcp6", "good.test:80", "", errNotFound},
		{"unknown name", "tcp", "bad.test:80", "", errNotFound},
		{"name without addresses", "tcp", "empty.test:80", "", errNotFound},
		{"unknown network", "udp", "192.0.2.1:80", "", net.UnknownNetworkError("udp")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				for _, addr := range []string{"192.0.2.1:80", "[2001:db8::1]:443", "0.0.0.0:8080", ":9090"} {
					listen(t, n, addr)
				}
				n.AddHost("good.test", "192.0.2.1")
				n.AddHost("second.test", "192.0.2.99", "192.0.2.1")
				n.AddHost("empty.test")
				c, err := n.DialContext(t.Context(), test.network, test.addr)
				if test.err != nil {
					if test.err == errNotFound {
						wantNotFound(t, err)
					} else {
						wantErr(t, err, test.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := c.RemoteAddr().String(); got != test.remote {
					t.Errorf("connected to %s, want %s", got, test.remote)
				}
			})
		})
	}
}

var errNotFound = errors.New("not found")

func wantNotFound(t *testing.T, err error) {
	t.Helper()
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("error %v, want a *net.DNSError with IsNotFound", err)
	}
}

func TestMalformedDials(t *testing.T) {
	n := simnet.New()
	defer n.Close()
	for _, addr := range []string{"", "192.0.2.1", "192.0.2.1:http", "192.0.2.1:65536", "192.0.2.1:-1"} {
		_, err := n.DialContext(t.Context(), "tcp", addr)
		var op *net.OpError
		if !errors.As(err, &op) {
			t.Errorf("DialContext(%q): %v, want a *net.OpError", addr, err)
		}
	}
}

func TestDialAsksItsContextFirst(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		listen(t, n, server80)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := n.DialContext(ctx, "tcp", server80)
		wantErr(t, err, context.Canceled)
		if n.Dials(server80) != 0 {
			t.Error("a dial with a context that had ended was begun")
		}
		n.AddHost("good.test", "192.0.2.1")
		if _, err := n.LookupNetIP(ctx, "ip", "good.test"); !errors.Is(err, context.Canceled) {
			t.Errorf("lookup: %v, want context.Canceled", err)
		}
	})
}

func TestDialIsCanceledOnItsWay(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		listen(t, n, server80)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*ms)
		defer cancel()
		start := time.Now()
		_, err := n.DialContext(ctx, "tcp", server80)
		wantErr(t, err, context.DeadlineExceeded)
		wantElapsed(t, start, 1500*ms)
		if n.Open() != 0 {
			t.Errorf("%d ends are open", n.Open())
		}
	}, simnet.WithLatency(time.Second))
}

func TestListen(t *testing.T) {
	n := simnet.New()
	defer n.Close()
	l := listen(t, n, server80)
	_, err := n.Listen(server80)
	wantErr(t, err, syscall.EADDRINUSE)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, l.Close(), net.ErrClosed)
	_, err = l.Accept()
	wantErr(t, err, net.ErrClosed)
	listen(t, n, server80) // free again
	wantErr(t, l.Close(), net.ErrClosed)
	dial(t, n, server80) // the old listener's second Close did not touch the new one

	a, b := listen(t, n, "192.0.2.1:0").Addr(), listen(t, n, "192.0.2.1:0").Addr()
	if a.String() == b.String() || a.(*net.TCPAddr).Port == 0 {
		t.Errorf("port 0 picked %v and %v", a, b)
	}
	if _, err := n.Listen("localhost:80"); err == nil {
		t.Error("Listen took a name")
	}
}

func TestListenerCloseResetsBacklog(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		l := listen(t, n, server80)
		client := dial(t, n, server80)
		time.AfterFunc(time.Second, func() { l.Close() })
		wantRead(t, client, "", errReset)
		_, err := n.DialContext(t.Context(), "tcp", server80)
		wantErr(t, err, syscall.ECONNREFUSED)
	})
}

func TestCloseEndsAccept(t *testing.T) {
	for _, end := range []string{"listener", "network"} {
		t.Run(end, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				l := listen(t, n, server80)
				time.AfterFunc(time.Second, func() {
					if end == "listener" {
						l.Close()
					} else {
						n.Close()
					}
				})
				_, err := l.Accept()
				wantErr(t, err, net.ErrClosed)
			})
		})
	}
}

func TestClosedNetworkRefuses(t *testing.T) {
	n := simnet.New()
	n.AddHost("good.test", "192.0.2.1")
	listen(t, n, server80)
	client := dial(t, n, server80)
	for range 2 {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	wantErr(t, client.SetDeadline(time.Now()), net.ErrClosed)
	_, err := n.Listen("192.0.2.1:81")
	wantErr(t, err, net.ErrClosed)
	_, err = n.DialContext(t.Context(), "tcp", server80)
	wantErr(t, err, net.ErrClosed)
	if _, err = n.LookupNetIP(t.Context(), "ip", "good.test"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("lookup: %v", err)
	}
}

func TestCounters(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		counts := func() string {
			return fmt.Sprintf("dials %d, accepts %d, open %d, conns %d", n.Dials(server80), n.Accepts(server80), n.Open(), len(n.Conns(server80)))
		}
		var got []string
		step := func() { got = append(got, counts()) }
		n.DialContext(t.Context(), "tcp", server80)
		step()
		l := listen(t, n, server80)
		client := dial(t, n, server80)
		other := dial(t, n, server80)
		step()
		server, _ := l.Accept()
		step()
		client.Close()
		step()
		server.Close()
		step()
		if conns := n.Conns(server80); len(conns) != 1 || conns[0] != other.Peer() {
			t.Errorf("Conns = %v", conns)
		}
		want := []string{
			"dials 1, accepts 0, open 0, conns 0",
			"dials 3, accepts 0, open 4, conns 2",
			"dials 3, accepts 1, open 4, conns 2",
			"dials 3, accepts 1, open 3, conns 2",
			"dials 3, accepts 1, open 2, conns 1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestImpossibleSetUpsPanic(t *testing.T) {
	n := simnet.New()
	defer n.Close()
	for name, do := range map[string]func(){
		"SetFaults": func() { n.SetFaults("example.com:80") },
		"AddHost":   func() { n.AddHost("example.com", "192.0.2.300") },
		"Dials":     func() { n.Dials("192.0.2.1") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			do()
		}()
	}
}

func TestErrorsReadAsSentences(t *testing.T) {
	n := simnet.New()
	defer n.Close()
	client, server := connect(t, n)
	client.SetDeadline(time.Unix(1, 0))
	_, late := client.Read(make([]byte, 1))
	client.SetDeadline(time.Time{})
	server.Reset()
	_, reset := client.Read(make([]byte, 1))
	_, refused := n.DialContext(t.Context(), "tcp", "192.0.2.1:81")
	got := []string{late.Error(), reset.Error(), refused.Error()}
	want := []string{
		"read tcp 198.18.0.1:49152->192.0.2.1:80: " + os.ErrDeadlineExceeded.Error(),
		"read tcp 198.18.0.1:49152->192.0.2.1:80: read: connection reset by peer",
		"dial tcp 192.0.2.1:81: connect: connection refused",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
