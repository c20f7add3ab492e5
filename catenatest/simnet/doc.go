// Package simnet is a network that lives in memory: listeners, dialers and a resolver, with latency and faults.
// It is made for tests, and above all for tests under [testing/synctest]: every wait in it is a wait on a channel
// or a timer, so a bubble's clock jumps ahead while a simulated packet travels, and an hour of timeouts costs
// nothing. It works as well outside of a bubble, in real time.
//
//	func TestSlowServer(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			n := simnet.New(simnet.WithLatency(100 * time.Millisecond))
//			defer n.Close()
//			n.AddHost("example.com", "192.0.2.1")
//			l, _ := n.Listen("192.0.2.1:80")
//			srv := &http.Server{Handler: handler}
//			go srv.Serve(l)
//			defer srv.Close()
//
//			tr := &http.Transport{DialContext: n.DialContext}
//			defer tr.CloseIdleConnections()
//			start := time.Now()
//			resp, err := (&http.Client{Transport: tr}).Get("http://example.com/")
//			// time.Since(start) is 600 ms sharp: a round trip each for the lookup, the connect and the exchange.
//		})
//	}
//
// A client of Catena is put on it by catena.WithDNS(n), catena.WithDialContext(n.DialContext) and, since the environment
// may name a proxy, catena.WithProxy(proxy.Proxy{}).
//
// # Bubbles
//
// Make the Network inside the bubble that uses it, and use it there only. Contexts given to it should come from
// that bubble too (t.Context() does): a wait for a context from outside does not let the clock move. The package
// starts no goroutine at all, so there is none to leak; what blocks in it is the caller, and Network.Close ends that.
// Clients, servers and the Network are closed before the bubble ends.
//
// # What a connection does
//
// A [Conn] is one end of a TCP-like byte stream. Bytes and ends of stream keep their order. The latency of its
// direction lies between a Write and the Read that sees it; a dial takes a round trip, an Accept half a one more,
// a lookup a round trip of the network's own latency. A window bounds the bytes that are written and not yet read
// (64 KiB unless set): beyond it Write blocks. The window opens as soon as the other end reads.
//
// An end that is closed with unread bytes, or that is sent bytes after it was closed, answers with a reset, like
// a kernel does. A reset is an ECONNRESET to Read, after the bytes that arrived before it, and to Write; a Write
// to a peer whose end of stream came first fails with EPIPE. Errors are *net.OpError like those of real sockets.
// There are no retransmissions and no keep-alive probes: a connection whose packets vanish stays silent for ever.
// A backlog has no limit.
//
// # Faults
//
// [Network.SetFaults] scripts the dials of an address: refused, dropped, slow, cut after so many bytes.
// [Network.SetDNSFault] does it for names. Open connections are changed by the methods of [Conn]: Stall and Resume,
// Vanish, Reset, SetLink; either end may be used, and Conn.Peer is the other one. Conns of the server's side are
// what Accept returns, and what [Network.Conns] lists.
//
// Chance and jitter are drawn from the network's seed, the address and the number of the dial. So connections do
// not disturb each other's draws, and a run with the same seed and the same dials per address repeats.
package simnet
