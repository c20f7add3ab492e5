package simnet

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

// The addresses that dials come from.
var (
	clientIPv4 = netip.MustParseAddr("198.18.0.1") // RFC 2544: benchmark tests
	clientIPv6 = netip.MustParseAddr("2001:2::1")  // RFC 5180: the same
)

// DialContext connects to a listener; it returns a *Conn. The network is "tcp", "tcp4" or "tcp6". The host of addr is
// an IP address or a name that LookupNetIP knows, whose addresses are tried in turn, and the port is a number.
//
// A dial takes a round trip. It fails with a *net.OpError that wraps ECONNREFUSED if nobody listens, what the faults
// of the address say, the context's error (a Timeout for context.DeadlineExceeded), or net.ErrClosed after
// Network.Close. Into a black hole it waits for the last two.
func (n *Network) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	targets, err := n.targets(ctx, network, addr)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var first error
	for _, to := range targets {
		c, err := n.dial(ctx, to)
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to), Err: err}
		}
	}
	return nil, first
}

// targets resolves what DialContext was given; the result is not empty.
func (n *Network) targets(ctx context.Context, network, addr string) ([]netip.AddrPort, error) {
	family, ok := map[string]string{"tcp": "ip", "tcp4": "ip4", "tcp6": "ip6"}[network]
	if !ok {
		return nil, net.UnknownNetworkError(network)
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, &net.AddrError{Err: "port is not a number", Addr: addr}
	}
	ips, err := n.LookupNetIP(ctx, family, host)
	if err != nil {
		return nil, err
	}
	if len(ips) == 0 {
		return nil, notFound(host)
	}
	targets := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		targets[i] = netip.AddrPortFrom(ip.Unmap(), uint16(port))
	}
	return targets, nil
}

// attempt is one dial: its faults, and the two directions its connection will have.
type attempt struct {
	to       netip.AddrPort
	faults   Faults
	up, down *half // from the client, from the server
}

func (n *Network) dial(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := n.attempt(to)
	if err != nil {
		return nil, err
	}
	if a.faults.BlackHole {
		return nil, n.sleep(ctx, -1)
	}
	if err := n.sleep(ctx, a.up.delay()+a.down.delay()); err != nil {
		return nil, err
	}
	if a.faults.DialError != nil {
		return nil, a.faults.DialError
	}
	if a.faults.Refuse {
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	return n.connect(a)
}

// attempt counts a dial and draws all that is left to chance in it.
func (n *Network) attempt(to netip.AddrPort) (attempt, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return attempt{}, net.ErrClosed
	}
	n.dials[to]++
	draw := func(what string) *rand.Rand {
		h := fnv.New64a()
		h.Write([]byte(to.String() + " " + strconv.Itoa(n.dials[to]) + " " + what))
		return rand.New(rand.NewPCG(n.seed, h.Sum64()))
	}
	f := n.nextFaults(to)
	if f.Chance > 0 && draw("chance").Float64() >= f.Chance {
		f = Faults{}
	}
	up, down := n.newHalf(f.ToServer, draw("up")), n.newHalf(f.ToClient, draw("down"))
	up.back, down.back = down, up
	return attempt{to: to, faults: f, up: up, down: down}, nil
}

// connect makes the connection of an attempt whose round trip is over and hands it to the listener.
func (n *Network) connect(a attempt) (*Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, net.ErrClosed
	}
	l := n.listenerFor(a.to)
	if l == nil {
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	ip := clientIPv4
	if a.to.Addr().Is6() {
		ip = clientIPv6
	}
	client, server := newConns(n, a, netip.AddrPortFrom(ip, n.pickPort(ip)))
	n.serial++
	client.serial, server.serial = n.serial, n.serial
	accept := time.Now().Add(a.up.delay() + max(a.faults.AcceptDelay, 0))
	if !l.push(server, accept) {
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	n.conns[client], n.conns[server] = struct{}{}, struct{}{}
	return client, nil
}
