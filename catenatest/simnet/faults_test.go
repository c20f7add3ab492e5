package simnet_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/google/go-cmp/cmp"
)

func TestScriptedDials(t *testing.T) {
	refuse := simnet.Faults{Refuse: true}
	unreachable := simnet.Faults{DialError: syscall.EHOSTUNREACH}
	tests := []struct {
		name   string
		at     string
		script []simnet.Faults
		want   []error // of the dials, in order
	}{
		{"none", server80, nil, []error{nil, nil}},
		{"the last stays", server80, []simnet.Faults{{}, refuse}, []error{nil, syscall.ECONNREFUSED, syscall.ECONNREFUSED}},
		{"recovery", server80, []simnet.Faults{refuse, unreachable, {}}, []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, nil, nil}},
		{"every port", "192.0.2.1", []simnet.Faults{refuse}, []error{syscall.ECONNREFUSED}},
		{"another port", "192.0.2.1:81", []simnet.Faults{refuse}, []error{nil}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				listen(t, n, server80)
				n.SetFaults(test.at, test.script...)
				for i, want := range test.want {
					start := time.Now()
					_, err := n.DialContext(t.Context(), "tcp", server80)
					if !errors.Is(err, want) {
						t.Errorf("dial %d: %v, want %v", i, err, want)
					}
					wantElapsed(t, start, 2*time.Second) // a round trip, failed or not
				}
				n.SetFaults(test.at)
				dial(t, n, server80)
			}, simnet.WithLatency(time.Second))
		})
	}
}

func TestChanceFollowsTheSeed(t *testing.T) {
	run := func(seed uint64) (pattern string) {
		bubble(t, func(t *testing.T, n *simnet.Network) {
			listen(t, n, server80)
			n.SetFaults(server80, simnet.Faults{Refuse: true, Chance: 0.5})
			for range 64 {
				if _, err := n.DialContext(t.Context(), "tcp", server80); err != nil {
					pattern += "x"
				} else {
					pattern += "."
				}
			}
		}, simnet.WithSeed(seed))
		return pattern
	}
	first := run(3)
	if again := run(3); first != again {
		t.Errorf("the same seed gives\n%s and\n%s", first, again)
	}
	if other := run(4); first == other {
		t.Errorf("two seeds give %s", first)
	}
	if failed := strings.Count(first, "x"); failed < 16 || failed > 48 {
		t.Errorf("%d of 64 dials failed at a chance of one half", failed)
	}
}

func TestBlackHoleEnds(t *testing.T) {
	tests := []struct {
		name string
		run  func(ctx context.Context, n *simnet.Network) context.Context
		want error
	}{
		{"deadline", func(ctx context.Context, _ *simnet.Network) context.Context {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			context.AfterFunc(ctx, cancel)
			return ctx
		}, context.DeadlineExceeded},
		{"cancel", func(ctx context.Context, _ *simnet.Network) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Minute, cancel)
			return ctx
		}, context.Canceled},
		{"network's close", func(ctx context.Context, n *simnet.Network) context.Context {
			time.AfterFunc(time.Minute, func() { n.Close() })
			return ctx
		}, net.ErrClosed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				listen(t, n, server80)
				n.SetFaults(server80, simnet.Faults{BlackHole: true})
				start := time.Now()
				_, err := n.DialContext(test.run(t.Context(), n), "tcp", server80)
				wantErr(t, err, test.want)
				wantElapsed(t, start, time.Minute)
			})
		})
	}
}

func TestCuts(t *testing.T) {
	cut := func(how simnet.CutKind, after int64) simnet.Link {
		return simnet.Link{Cut: simnet.Cut{How: how, After: after}}
	}
	tests := []struct {
		name   string
		link   simnet.Link
		text   string
		client error // of its Read after text
		server error // of its Write at last
	}{
		{"FIN", cut(simnet.CutFIN, 4), "abcd", nil, errReset},
		{"FIN at the write's end", cut(simnet.CutFIN, 6), "abcdef", nil, errReset},
		{"FIN at once", cut(simnet.CutFIN, 0), "", nil, errReset},
		{"FIN in a drip", simnet.Link{Chunk: 1, Every: time.Second, Cut: simnet.Cut{How: simnet.CutFIN, After: 3}}, "abc", nil, errReset},
		{"RST", cut(simnet.CutRST, 4), "abcd", errReset, errReset},
		{"RST at once", cut(simnet.CutRST, 0), "", errReset, errReset},
		{"silent", cut(simnet.CutSilent, 4), "abcd", os.ErrDeadlineExceeded, os.ErrDeadlineExceeded},
		{"never", simnet.Link{}, "abcdefghi", os.ErrDeadlineExceeded, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				n.SetFaults(server80, simnet.Faults{ToClient: test.link})
				client, server := connect(t, n)
				client.SetReadDeadline(time.Now().Add(time.Hour))
				server.SetDeadline(time.Now().Add(time.Hour))
				if test.link.Cut.After > 0 || test.link.Cut.How == simnet.CutNever {
					write(t, server, "abcdef")
					if test.link.Cut.How != simnet.CutNever {
						time.Sleep(time.Second)
					} else {
						write(t, server, "ghi")
					}
				}
				wantRead(t, client, test.text, test.client)
				if test.link.Cut.How == simnet.CutNever {
					return
				}
				_, err := server.Write(make([]byte, 100<<10))
				wantErr(t, err, test.server)
				_, err = server.Read(make([]byte, 1))
				wantErr(t, err, test.server)
			}, simnet.WithLatency(10*ms))
		})
	}
}

func TestReceiverOfACutIsReset(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		n.SetFaults(server80, simnet.Faults{ToClient: simnet.Link{Cut: simnet.Cut{How: simnet.CutFIN}}})
		client, _ := connect(t, n)
		wantRead(t, client, "", nil)
		wantErr(t, writeUntilError(t, client), errPipe)
	})
}

func TestStallAndResume(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		start := time.Now()
		time.AfterFunc(0, func() {
			write(t, server, "arrived ")
			time.Sleep(2 * time.Second)
			write(t, server, "on its way ")
			server.Stall()
			write(t, server, "held")
			server.Close()
			time.Sleep(time.Minute)
			server.Resume()
		})
		want := []read{{time.Second, "arrived "}, {62 * time.Second, "on its way "}}
		got := reads(client, start)
		if diff := cmp.Diff(want[:1], got[:1]); diff != "" {
			t.Error(diff)
		}
		rest := ""
		for _, r := range got[1:] {
			if r.At < 62*time.Second || r.At > 63*time.Second {
				t.Errorf("%q at %v, want 62s to 63s", r.Text, r.At)
			}
			rest += r.Text
		}
		if rest != "on its way heldEOF" {
			t.Errorf("after Resume came %q", rest)
		}
	}, simnet.WithLatency(time.Second))
}

func TestStallHoldsOneDirectionInTheSameInstant(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		server.Stall()
		write(t, server, "held")
		time.Sleep(time.Second)
		client.SetReadDeadline(time.Now().Add(time.Hour))
		wantRead(t, client, "", os.ErrDeadlineExceeded)
		write(t, client, "passes")
		client.CloseWrite()
		wantRead(t, server, "passes", nil)
	})
}

func TestVanish(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		write(t, server, "arrived")
		time.Sleep(time.Second)
		write(t, server, "lost")
		client.Vanish()
		write(t, client, "0123456789")
		time.Sleep(time.Second)
		server.Resume() // does not bring it back
		server.SetDeadline(time.Now().Add(time.Hour))
		wantRead(t, server, "", os.ErrDeadlineExceeded)
		server.Close()
		client.SetDeadline(time.Now().Add(time.Hour))
		wantRead(t, client, "arrived", os.ErrDeadlineExceeded)
		client.SetDeadline(time.Now().Add(time.Hour))
		sent, err := client.Write(make([]byte, 100<<10))
		wantErr(t, err, os.ErrDeadlineExceeded)
		if sent != 64<<10-10 {
			t.Errorf("Write = %d, want the window's rest of %d", sent, 64<<10-10)
		}
	}, simnet.WithLatency(10*ms))
}

func TestBytesHeldBackAreBouncedAfterResume(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		client, server := connect(t, n)
		client.Stall()
		write(t, client, "to nobody")
		server.Close()
		wantRead(t, client, "", nil)
		time.Sleep(time.Second)
		write(t, client, "not answered yet")
		client.Resume()
		_, err := client.Write([]byte("answered"))
		wantErr(t, err, errPipe)
	})
}

func TestSetLinkCutsAnOpenConnection(t *testing.T) {
	for _, after := range []int64{0, 3} {
		bubble(t, func(t *testing.T, n *simnet.Network) {
			client, server := connect(t, n)
			write(t, server, "before ")
			server.SetLink(simnet.Link{Cut: simnet.Cut{How: simnet.CutRST, After: after}})
			if after > 0 {
				write(t, server, "after")
			}
			wantRead(t, client, "before "+"after"[:after], errReset)
		})
	}
}

func TestAcceptDelay(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		l := listen(t, n, server80)
		n.SetFaults(server80, simnet.Faults{AcceptDelay: time.Minute}, simnet.Faults{})
		start := time.Now()
		slow := dial(t, n, server80)
		wantElapsed(t, start, 2*time.Second)
		dial(t, n, server80)
		first, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		wantElapsed(t, start, 5*time.Second) // the second dial, and half a round trip
		if first == net.Conn(slow.Peer()) {
			t.Error("the delayed connection came first")
		}
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		wantElapsed(t, start, time.Minute+3*time.Second)
	}, simnet.WithLatency(time.Second))
}
