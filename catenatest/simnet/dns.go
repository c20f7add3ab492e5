package simnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A DNSFault says what happens to a lookup. The zero value is a healthy name.
type DNSFault struct {
	Err   error         // the lookup fails with it, wrapped in a *net.DNSError unless it is one
	Delay time.Duration // added to the network's round trip
	Hang  bool          // the lookup never answers

	// IgnoreContext makes a lookup that is delayed or hangs outlive its context, like a resolver that cannot be
	// canceled. Network.Close still ends it.
	IgnoreContext bool
}

// AddHost sets the addresses of a name, in the order in which lookups return them. Names are compared without case and
// trailing dot. A name without addresses is known, but its lookups return an empty list without error. It panics if an
// address is invalid.
func (n *Network) AddHost(name string, addrs ...string) {
	ips := make([]netip.Addr, len(addrs))
	for i, addr := range addrs {
		ip, err := netip.ParseAddr(addr)
		if err != nil {
			panic(fmt.Sprintf("simnet: host %q has %q, which is not an IP address", name, addr))
		}
		ips[i] = ip
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[canonical(name)] = ips
}

// SetDNSFault scripts the lookups of a name from now on: the first gets the first fault, and so on; the last stays in
// force. None at all makes the name healthy. The name "*" stands for all that have no faults of their own.
func (n *Network) SetDNSFault(name string, script ...DNSFault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(script) == 0 {
		delete(n.dnsFaults, canonical(name))
		return
	}
	n.dnsFaults[canonical(name)] = slices.Clone(script)
}

// Lookups counts the lookups of a name, failed and waiting ones included; those of IP addresses do not count.
func (n *Network) Lookups(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lookups[canonical(name)]
}

// LookupNetIP is the resolver, in the form of net.Resolver's method. The network is "ip", "ip4" or "ip6"; an IP
// address as host is returned at once. A lookup takes a round trip of the network's latency. A name that is not known,
// or has addresses of the other family only, is a *net.DNSError with IsNotFound.
func (n *Network) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if network != "ip" && network != "ip4" && network != "ip6" {
		return nil, &net.DNSError{Err: net.UnknownNetworkError(network).Error(), Name: host}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ofFamily(host, network, []netip.Addr{ip})
	}
	fault := n.nextDNSFault(host)
	if err := n.answerTime(ctx, fault); err != nil {
		return nil, lookupError(host, err)
	}
	if fault.Err != nil {
		return nil, lookupError(host, fault.Err)
	}
	n.mu.Lock()
	ips, known := n.hosts[canonical(host)]
	n.mu.Unlock()
	if !known {
		return nil, notFound(host)
	}
	if len(ips) == 0 {
		return []netip.Addr{}, nil
	}
	return ofFamily(host, network, ips)
}

// nextDNSFault counts a lookup and takes the next entry of the name's script.
func (n *Network) nextDNSFault(host string) DNSFault {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups[canonical(host)]++
	for _, name := range []string{canonical(host), "*"} {
		if script := n.dnsFaults[name]; len(script) > 0 {
			n.dnsFaults[name] = rest(script)
			return script[0]
		}
	}
	return DNSFault{}
}

// answerTime waits as long as the answer takes.
func (n *Network) answerTime(ctx context.Context, fault DNSFault) error {
	select {
	case <-n.done:
		return net.ErrClosed
	default:
	}
	if fault.IgnoreContext {
		ctx = context.WithoutCancel(ctx)
	}
	if fault.Hang {
		return n.sleep(ctx, -1)
	}
	return n.sleep(ctx, 2*n.latency+max(fault.Delay, 0))
}

// ofFamily keeps the addresses of the network's family.
func ofFamily(host, network string, ips []netip.Addr) ([]netip.Addr, error) {
	var kept []netip.Addr
	for _, ip := range ips {
		v4 := ip.Is4() || ip.Is4In6()
		if network == "ip" || v4 == (network == "ip4") {
			kept = append(kept, ip)
		}
	}
	if len(kept) == 0 {
		return nil, notFound(host)
	}
	return kept, nil
}

func notFound(host string) error {
	return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// lookupError makes a *net.DNSError of what went wrong.
func lookupError(host string, err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return err
	}
	var timeout interface{ Timeout() bool }
	return &net.DNSError{
		Err:       err.Error(),
		Name:      host,
		IsTimeout: errors.As(err, &timeout) && timeout.Timeout(),
		UnwrapErr: err,
	}
}

func canonical(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "."))
}
