package route

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/catena-http/catena/internal/lifetime"
)

// DNS resolves host names. *net.Resolver is one. Network is "ip", "ip4" or
// "ip6". Answers are unmapped, and duplicates dropped, by Catena. Must be safe
// for concurrent use.
type DNS interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// DNSFunc makes a DNS of a function.
type DNSFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

// LookupNetIP calls f.
func (f DNSFunc) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return f(ctx, network, host)
}

// Lookup resolves host through n's DNS: the addresses in the resolver's order,
// unmapped and without duplicates. It returns when ctx ends even if the resolver
// does not.
func (n *Network) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	var addrs []netip.Addr
	var err error
	if r, ok := n.DNS.(*net.Resolver); ok {
		addrs, err = r.LookupNetIP(ctx, "ip", host)
	} else {
		addrs, err = n.lookups.do(ctx, n.DNS, host)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	if addrs = distinct(addrs); len(addrs) == 0 {
		return nil, &net.DNSError{Err: "the resolver returned no addresses", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

func distinct(addrs []netip.Addr) []netip.Addr {
	out := make([]netip.Addr, 0, len(addrs))
	seen := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		if a = a.Unmap(); a.IsValid() && !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}

// lookups runs the lookups of resolvers that may not obey their context, one
// goroutine a host at a time: callers that come while it runs share its answer.
// A flight whose callers have all gone is canceled, and stays known until the
// resolver returns, so that a resolver that hangs holds one goroutine a host.
type lookups struct {
	mu      sync.Mutex // guards flights and the waiters of each
	flights map[string]*flight
}

type flight struct {
	waiters int  // guarded by lookups.mu
	givenUp bool // guarded by lookups.mu: waiters was 0 while the resolver ran
	cancel  context.CancelFunc

	done      chan struct{} // closed when the fields below are set
	addrs     []netip.Addr
	err       error
	abandoned bool
}

func (l *lookups) do(ctx context.Context, dns DNS, host string) ([]netip.Addr, error) {
	for {
		f := l.join(ctx, dns, host)
		select {
		case <-f.done:
			l.leave(f)
		case <-ctx.Done():
			l.leave(f)
			return nil, ctx.Err()
		}
		// A flight that its callers gave up before this one came fails for a
		// reason that is not this caller's.
		if f.abandoned && f.err != nil && ctx.Err() == nil {
			continue
		}
		return f.addrs, f.err
	}
}

func (l *lookups) join(ctx context.Context, dns DNS, host string) *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.flights[host]; f != nil {
		f.waiters++
		return f
	}
	flightCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{waiters: 1, cancel: cancel, done: make(chan struct{})}
	if l.flights == nil {
		l.flights = make(map[string]*flight)
	}
	l.flights[host] = f
	go l.run(flightCtx, f, dns, host)
	return f
}

// run ends when the resolver returns, panics or ends the goroutine: all who wait
// get that as an error.
func (l *lookups) run(ctx context.Context, f *flight, dns DNS, host string) {
	lifetime.Run(func() (err error) {
		f.addrs, err = dns.LookupNetIP(ctx, "ip", host)
		return err
	}, func(err error) {
		f.err = err
		l.mu.Lock()
		delete(l.flights, host)
		f.abandoned = f.givenUp
		l.mu.Unlock()
		f.cancel()
		close(f.done)
	})
}

func (l *lookups) leave(f *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		f.givenUp = true
		f.cancel()
	}
}
