package route_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/route"
)

func lookUp(ctx context.Context, t *testing.T, n *route.Network) ([]string, error) {
	t.Helper()
	if err := n.Validate(); err != nil {
		t.Error(err)
	}
	addrs, err := n.Lookup(ctx, "a.test")
	var got []string
	for _, a := range addrs {
		got = append(got, a.String())
	}
	return got, err
}

func TestLookupCleansAnswers(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want []string }{
		"order":          {[]string{"192.0.2.2", "192.0.2.1"}, []string{"192.0.2.2", "192.0.2.1"}},
		"mapped":         {[]string{"::ffff:192.0.2.1"}, []string{"192.0.2.1"}},
		"duplicates":     {[]string{"192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "192.0.2.1"}, []string{"192.0.2.1", "2001:db8::1"}},
		"invalid":        {[]string{"", "192.0.2.1"}, []string{"192.0.2.1"}},
		"nothing":        {nil, nil},
		"nothing of use": {[]string{""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			n := &route.Network{DNS: route.DNSFunc(func(_ context.Context, network, host string) ([]netip.Addr, error) {
				asked = append(asked, network, host)
				var addrs []netip.Addr
				for _, s := range tc.answer {
					a, _ := netip.ParseAddr(s)
					addrs = append(addrs, a)
				}
				return addrs, nil
			})}
			got, err := lookUp(t.Context(), t, n)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			var dnsErr *net.DNSError
			if len(tc.want) == 0 && (!errors.As(err, &dnsErr) || !dnsErr.IsNotFound) || len(tc.want) > 0 && err != nil {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff([]string{"ip", "a.test"}, asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
		})
	}
}

// Calls that look up the same host at a time share one lookup, and the end of
// one is not that of the others.
func TestLookupsShareFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lookups atomic.Int32
		n := &route.Network{DNS: route.DNSFunc(func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
			lookups.Add(1)
			select {
			case <-time.After(time.Second):
				return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})}
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := lookUp(first, t, n); err != context.Canceled {
				t.Errorf("the one that was canceled got %v", err)
			}
		})
		synctest.Wait()
		for range 9 {
			wg.Go(func() {
				if got, err := lookUp(t.Context(), t, n); err != nil || len(got) != 1 {
					t.Errorf("got %v, %v", got, err)
				}
			})
		}
		synctest.Wait()
		cancel() // the one that started the lookup
		wg.Wait()
		if got := lookups.Load(); got != 1 {
			t.Errorf("%d lookups", got)
		}
		if _, err := lookUp(t.Context(), t, n); err != nil || lookups.Load() != 2 {
			t.Errorf("an answer was kept: %d lookups, %v", lookups.Load(), err)
		}
	})
}

// The lookup that everybody gave up is canceled; who comes then gets one of his
// own, not its failure.
func TestLookupAfterAbandonedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lookups atomic.Int32
		n := &route.Network{DNS: route.DNSFunc(func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
			if lookups.Add(1) > 1 {
				return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
			}
			<-ctx.Done()
			time.Sleep(time.Second) // slow to notice
			return nil, ctx.Err()
		})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := lookUp(ctx, t, n); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		start := time.Now()
		if got, err := lookUp(t.Context(), t, n); err != nil || len(got) != 1 {
			t.Errorf("got %v, %v", got, err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A resolver that never returns costs one goroutine a host, however many calls
// come and go; each of them ends with its context.
func TestResolverThatHangsCostsOneGoroutine(t *testing.T) {
	hang := make(chan struct{})
	n := &route.Network{DNS: route.DNSFunc(func(context.Context, string, string) ([]netip.Addr, error) {
		<-hang
		return nil, errors.New("too late")
	})}
	before := runtime.NumGoroutine()
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := lookUp(ctx, t, n); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	if more := runtime.NumGoroutine() - before; more > 2 { // the timer of a context may have one for a moment
		t.Errorf("%d goroutines more", more)
	}
	close(hang)
}

func TestLookupError(t *testing.T) {
	want := &net.DNSError{Err: "no such host", Name: "a.test", IsNotFound: true}
	n := &route.Network{DNS: route.DNSFunc(func(context.Context, string, string) ([]netip.Addr, error) { return nil, want })}
	if _, err := lookUp(t.Context(), t, n); err != error(want) {
		t.Errorf("got %v", err)
	}
}

func TestDefaultResolverObeysItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lookUp(ctx, t, &route.Network{}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}
