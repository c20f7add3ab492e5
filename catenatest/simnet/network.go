package simnet

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	defaultWindow = 64 << 10
	defaultSeed   = 1
	firstPort     = 49152 // of the dynamic range, RFC 6335 section 6
)

// A Network is a set of listeners, the connections to them and the names of its hosts. All methods are safe for
// concurrent use. The zero value is not usable: call New.
type Network struct {
	// Immutable after New.
	seed    uint64
	latency time.Duration
	jitter  time.Duration
	window  int
	done    chan struct{} // closed by Close

	// mu guards all below. A listener's gate may be taken under it, a connection's never.
	mu        sync.Mutex
	closed    bool
	listeners map[netip.AddrPort]*listener
	conns     map[*Conn]struct{} // ends that are not closed
	serial    uint64             // of the latest connection
	port      uint16             // latest port picked
	faults    map[netip.AddrPort][]Faults
	dials     map[netip.AddrPort]int
	accepts   map[netip.AddrPort]int
	hosts     map[string][]netip.Addr
	dnsFaults map[string][]DNSFault
	lookups   map[string]int
}

// An Option sets up a Network.
type Option func(*Network)

// WithSeed sets the seed of everything that is drawn by chance; the default is 1. A test that varies it should log
// it, see Network.Seed.
func WithSeed(seed uint64) Option { return func(n *Network) { n.seed = seed } }

// WithLatency sets the one-way latency of every packet; the default is 0. A Link adds to it.
func WithLatency(d time.Duration) Option { return func(n *Network) { n.latency = max(d, 0) } }

// WithJitter adds a latency drawn from [0, d) to every packet's; the default is 0. Order is kept.
func WithJitter(d time.Duration) Option { return func(n *Network) { n.jitter = max(d, 0) } }

// WithWindow sets how many bytes each direction of a connection holds until they are read; the default is 64 KiB.
// Less than 1 means the default.
func WithWindow(bytes int) Option {
	return func(n *Network) {
		if bytes > 0 {
			n.window = bytes
		}
	}
}

// New makes an empty network.
func New(opts ...Option) *Network {
	n := &Network{
		seed:      defaultSeed,
		window:    defaultWindow,
		done:      make(chan struct{}),
		listeners: make(map[netip.AddrPort]*listener),
		conns:     make(map[*Conn]struct{}),
		port:      firstPort - 1,
		faults:    make(map[netip.AddrPort][]Faults),
		dials:     make(map[netip.AddrPort]int),
		accepts:   make(map[netip.AddrPort]int),
		hosts:     make(map[string][]netip.Addr),
		dnsFaults: make(map[string][]DNSFault),
		lookups:   make(map[string]int),
	}
	for _, opt := range opts {
		opt(n)
	}
	return n
}

// Close closes every listener and both ends of every connection, and ends the dials and lookups that wait, black-holed
// and hanging ones included. They fail with net.ErrClosed. It returns nil, and may be called again.
func (n *Network) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	close(n.done)
	listeners, conns := n.listeners, n.conns
	n.listeners, n.conns = nil, nil
	n.mu.Unlock()
	for _, l := range listeners {
		l.shut()
	}
	for c := range conns {
		c.shut()
	}
	return nil
}

// Seed returns the seed in use.
func (n *Network) Seed() uint64 { return n.seed }

// Dials counts the dials to addr ("192.0.2.1:80"), failed and waiting ones included. It panics if addr is not an IP
// address with a port.
func (n *Network) Dials(addr string) int {
	at := mustAddrPort(addr)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[at]
}

// Accepts counts the connections that Accept returned for addr, the address that was dialed. It panics if addr is not
// an IP address with a port.
func (n *Network) Accepts(addr string) int {
	at := mustAddrPort(addr)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.accepts[at]
}

// Open counts the ends of connections that have not been closed: 2 for a connection that both sides hold, 1 where only
// one side closed. A connection that nobody accepted yet counts as held by the server. It is 0 after a test that leaks
// no connection.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// Conns lists the open server ends of the connections that were dialed to addr, the oldest first, also those that are
// not accepted yet. It panics if addr is not an IP address with a port.
func (n *Network) Conns(addr string) []*Conn {
	at := mustAddrPort(addr)
	n.mu.Lock()
	defer n.mu.Unlock()
	var conns []*Conn
	for c := range n.conns {
		if c.server && c.target == at {
			conns = append(conns, c)
		}
	}
	slices.SortFunc(conns, func(a, b *Conn) int { return cmp.Compare(a.serial, b.serial) })
	return conns
}

func (n *Network) forget(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// pickPort returns a port that is used by no listener. The caller holds mu.
func (n *Network) pickPort(ip netip.Addr) uint16 {
	for {
		n.port++
		if n.port < firstPort { // wrapped
			n.port = firstPort
		}
		if _, used := n.listeners[netip.AddrPortFrom(ip, n.port)]; !used {
			return n.port
		}
	}
}

// sleep waits for d (negative: for ever), the context's end or the network's.
func (n *Network) sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d == 0 {
		return nil
	}
	var elapsed <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		elapsed = timer.C
	}
	select {
	case <-elapsed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-n.done:
		return net.ErrClosed
	}
}

func mustAddrPort(addr string) netip.AddrPort {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		panic(fmt.Sprintf("simnet: %q is not an IP address with a port", addr))
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
