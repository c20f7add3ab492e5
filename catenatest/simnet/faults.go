package simnet

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Faults says what happens to a dial and to the connection that comes of it. The zero value is a healthy address.
type Faults struct {
	Refuse      bool          // the dial fails with ECONNREFUSED after a round trip, also if somebody listens
	BlackHole   bool          // nothing answers: the dial waits for its context's end
	DialError   error         // the dial fails with this after a round trip, such as syscall.EHOSTUNREACH
	AcceptDelay time.Duration // the listener's Accept sees the connection so much later; the dial does not notice
	ToServer    Link          // what the client sends
	ToClient    Link          // what the server sends
	Chance      float64       // a dial has these faults with this probability, else none; 0 means always
}

// A Link describes one direction of a connection. The zero value adds nothing to what the Network does.
type Link struct {
	Latency time.Duration // added to the network's
	Jitter  time.Duration // added to the network's; every packet draws anew
	Window  int           // bytes that may be written and not yet read; 0 means the network's

	// BytesPerSecond is the bandwidth: a packet of n bytes takes n/BytesPerSecond to send. 0 means no limit.
	BytesPerSecond int64

	// Chunk and Every make a slow drip: at most Chunk bytes leave, and Every must pass until the next do. 0 means
	// none. Chunk alone splits writes into packets of that size.
	Chunk int
	Every time.Duration

	Cut Cut
}

// A Cut ends a connection once its direction has carried After bytes; with 0 it ends as soon as it is connected. What
// is beyond is thrown away, though the Write that hits the limit succeeds. The zero value never cuts.
type Cut struct {
	How   CutKind
	After int64
}

// CutKind says how a connection ends.
type CutKind int

const (
	// CutNever: the connection does not end by itself.
	CutNever CutKind = iota
	// CutFIN: as if the sender's process had ended in good order. The receiver reads the bytes and io.EOF, and is
	// reset when it writes. The sender is reset.
	CutFIN
	// CutRST: the receiver reads the bytes and ECONNRESET. The sender is reset.
	CutRST
	// CutSilent: the receiver reads the bytes, then nothing arrives in either direction any more, as after
	// Conn.Vanish.
	CutSilent
)

// SetFaults scripts the dials to an address from now on: the first gets the first Faults, the next dial the second, and
// so on; the last stays in force. None at all makes the address healthy. The address is an IP address with a port, or
// without one for all ports that have no faults of their own. Open connections stay as they are. It panics if addr is
// neither.
func (n *Network) SetFaults(addr string, script ...Faults) {
	at := mustScope(addr)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(script) == 0 {
		delete(n.faults, at)
		return
	}
	n.faults[at] = slices.Clone(script)
}

// nextFaults takes the next entry of an address's script. The caller holds mu.
func (n *Network) nextFaults(to netip.AddrPort) Faults {
	for _, at := range []netip.AddrPort{to, netip.AddrPortFrom(to.Addr(), 0)} {
		if script := n.faults[at]; len(script) > 0 {
			n.faults[at] = rest(script)
			return script[0]
		}
	}
	return Faults{}
}

// rest is a script after its first step was played.
func rest[T any](script []T) []T {
	if len(script) > 1 {
		return script[1:]
	}
	return script
}

// mustScope parses an address with a port, or without one, which is port 0.
func mustScope(addr string) netip.AddrPort {
	if ip, err := netip.ParseAddr(addr); err == nil {
		return netip.AddrPortFrom(ip.Unmap(), 0)
	}
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		panic(fmt.Sprintf("simnet: %q is no IP address, with or without a port", addr))
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
