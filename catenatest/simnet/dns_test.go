package simnet_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/google/go-cmp/cmp"
)

func TestLookup(t *testing.T) {
	tests := []struct {
		name          string
		network, host string
		want          []string
		missing       bool
		took          time.Duration
	}{
		{"all, in order", "ip", "dual.test", []string{"2001:db8::1", "192.0.2.1", "192.0.2.2"}, false, 2 * time.Second},
		{"IPv4", "ip4", "dual.test", []string{"192.0.2.1", "192.0.2.2"}, false, 2 * time.Second},
		{"IPv6", "ip6", "dual.test", []string{"2001:db8::1"}, false, 2 * time.Second},
		{"case and dot", "ip6", "DUAL.test.", []string{"2001:db8::1"}, false, 2 * time.Second},
		{"mapped stay mapped", "ip4", "mapped.test", []string{"::ffff:192.0.2.1"}, false, 2 * time.Second},
		{"other family", "ip6", "mapped.test", nil, true, 2 * time.Second},
		{"empty answer", "ip", "empty.test", nil, false, 2 * time.Second},
		{"unknown", "ip", "unknown.test", nil, true, 2 * time.Second},
		{"literal", "ip", "192.0.2.77", []string{"192.0.2.77"}, false, 0},
		{"literal of the other family", "ip4", "2001:db8::1", nil, true, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				n.AddHost("dual.TEST", "2001:db8::1", "192.0.2.1", "192.0.2.2")
				n.AddHost("mapped.test", "::ffff:192.0.2.1")
				n.AddHost("empty.test")
				start := time.Now()
				ips, err := n.LookupNetIP(t.Context(), test.network, test.host)
				wantElapsed(t, start, test.took)
				if test.missing {
					wantNotFound(t, err)
				} else if err != nil {
					t.Error(err)
				}
				var got []string
				for _, ip := range ips {
					got = append(got, ip.String())
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			}, simnet.WithLatency(time.Second))
		})
	}
}

func TestLookupOfUnknownNetwork(t *testing.T) {
	n := simnet.New()
	defer n.Close()
	var dns *net.DNSError
	if _, err := n.LookupNetIP(t.Context(), "tcp", "dual.test"); !errors.As(err, &dns) {
		t.Errorf("error %v, want a *net.DNSError", err)
	}
}

func TestAnswersBelongToTheCaller(t *testing.T) {
	n := simnet.New()
	defer n.Close()
	n.AddHost("good.test", "192.0.2.1", "192.0.2.2")
	ips, _ := n.LookupNetIP(t.Context(), "ip", "good.test")
	ips[0] = ips[1]
	if ips, _ = n.LookupNetIP(t.Context(), "ip", "good.test"); ips[0].String() != "192.0.2.1" {
		t.Errorf("a caller changed the host's addresses to %v", ips)
	}
}

func TestDNSFaults(t *testing.T) {
	own := &net.DNSError{Err: "server misbehaving", Name: "good.test", IsTemporary: true}
	tests := []struct {
		name    string
		at      string
		script  []simnet.DNSFault
		want    []error // of the lookups; each has 5 s
		took    []time.Duration
		timeout bool
	}{
		{"healthy", "good.test", nil, []error{nil}, []time.Duration{2 * time.Second}, false},
		{"script", "Good.test.", []simnet.DNSFault{{Err: own}, {Err: syscall.EIO}, {}},
			[]error{own, syscall.EIO, nil, nil}, []time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}, false},
		{"every name", "*", []simnet.DNSFault{{Err: syscall.EIO}}, []error{syscall.EIO}, []time.Duration{2 * time.Second}, false},
		{"another name", "bad.test", []simnet.DNSFault{{Err: syscall.EIO}}, []error{nil}, []time.Duration{2 * time.Second}, false},
		{"delay", "good.test", []simnet.DNSFault{{Delay: time.Second}}, []error{nil}, []time.Duration{3 * time.Second}, false},
		{"delay beyond the context", "good.test", []simnet.DNSFault{{Delay: time.Minute}},
			[]error{context.DeadlineExceeded}, []time.Duration{5 * time.Second}, true},
		{"hang", "good.test", []simnet.DNSFault{{Hang: true}},
			[]error{context.DeadlineExceeded}, []time.Duration{5 * time.Second}, true},
		{"delay without the context", "good.test", []simnet.DNSFault{{Delay: time.Minute, IgnoreContext: true}},
			[]error{nil}, []time.Duration{62 * time.Second}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *simnet.Network) {
				n.AddHost("good.test", "192.0.2.1")
				n.SetDNSFault(test.at, test.script...)
				for i, want := range test.want {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					start := time.Now()
					_, err := n.LookupNetIP(ctx, "ip", "good.test")
					wantElapsed(t, start, test.took[i])
					var dns *net.DNSError
					if !errors.Is(err, want) || err != nil && !errors.As(err, &dns) {
						t.Errorf("lookup %d: %v, want %v in a *net.DNSError", i, err, want)
					}
					if dns != nil && dns.IsTimeout != test.timeout {
						t.Errorf("lookup %d: IsTimeout = %v, want %v", i, dns.IsTimeout, test.timeout)
					}
				}
				if got := n.Lookups("good.test"); got != len(test.want) {
					t.Errorf("Lookups = %d, want %d", got, len(test.want))
				}
				n.SetDNSFault(test.at)
				if _, err := n.LookupNetIP(t.Context(), "ip", "good.test"); err != nil {
					t.Errorf("after the faults: %v", err)
				}
			}, simnet.WithLatency(time.Second))
		})
	}
}

func TestCloseEndsAHangThatIgnoresItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		n.SetDNSFault("*", simnet.DNSFault{Hang: true, IgnoreContext: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		time.AfterFunc(time.Hour, func() { n.Close() })
		if _, err := n.LookupNetIP(ctx, "ip", "good.test"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("error %v, want net.ErrClosed", err)
		}
		wantElapsed(t, start, time.Hour)
	})
}
