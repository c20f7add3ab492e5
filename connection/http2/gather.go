package http2

import (
	"net"
	"sync"
)

// gathered is how much is encrypted before it is written.
const gathered = 128 << 10

var gatherBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, gathered+4<<10) // records have headers
	return &b
}}

// Gather wraps the connection below a TLS client, tls.Client(Gather(nc), cfg): a
// Conn over that client then writes several records of a body by one system call,
// where crypto/tls makes one for each, and knows before a read waits. Other wrappers
// may lie between them if they have a method NetConn. It knows of waits only where nc
// is a *net.TCPConn or has a method ReadsFrom() net.Conn that returns one, which is
// read in its place then.
func Gather(nc net.Conn) net.Conn { return &gatherer{Conn: nc} }

// gatherer holds back what is written while somebody wants to write more. TLS may
// write by itself meanwhile, an answer to a change of keys for one: its records
// have to keep their order.
type gatherer struct {
	net.Conn

	// Of the reading goroutine: see tell.
	sock *socket // nil: waits go untold
	into []byte  // what is read into

	mu      sync.Mutex // guards what follows
	holding bool
	held    *[]byte
}

// NetConn is the connection underneath.
func (g *gatherer) NetConn() net.Conn { return g.Conn }

// tell has wait called before a Read waits for the socket underneath, and reports
// whether there is one. It comes before the first Read of the goroutine that reads.
func (g *gatherer) tell(wait func()) bool {
	nc := g.Conn
	if over, ok := nc.(interface{ ReadsFrom() net.Conn }); ok {
		nc = over.ReadsFrom() // NetConn would promise nothing about Read
	}
	g.sock = newSocket(nc, func() []byte { return g.into }, wait)
	return g.sock != nil
}

func (g *gatherer) Read(p []byte) (int, error) {
	if g.sock == nil {
		return g.Conn.Read(p)
	}
	g.into = p
	defer func() { g.into = nil }()
	return g.sock.read()
}

// Write writes p, or holds it back.
func (g *gatherer) Write(p []byte) (int, error) {
	g.mu.Lock()
	if !g.holding {
		g.mu.Unlock()
		return g.Conn.Write(p)
	}
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = gatherBuffers.Get().(*[]byte)
	}
	*g.held = append(*g.held, p...)
	return len(p), nil
}

// hold begins to hold back what is written.
func (g *gatherer) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holding = true
}

// release has what was held back written by write, and then lets writes through.
// After an error they are held back for good.
func (g *gatherer) release(write func(p []byte) error) error {
	for {
		g.mu.Lock()
		held := g.held
		g.held = nil
		g.holding = held != nil
		g.mu.Unlock()
		if held == nil {
			return nil
		}
		if err := write(*held); err != nil {
			return err
		}
		*held = (*held)[:0]
		gatherBuffers.Put(held)
	}
}

// gathererOf is the lowest gatherer below nc; nil: there is none. Of TLS in TLS it
// holds what the outer one writes: only a socket can go on after a deadline.
func gathererOf(nc net.Conn) (lowest *gatherer) {
	for {
		if g, ok := nc.(*gatherer); ok {
			lowest = g
		}
		over, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			return lowest
		}
		nc = over.NetConn()
	}
}
