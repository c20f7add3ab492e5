package catena_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// ledger is what a server has done: how often for each request, by its X-Id.
type ledger struct {
	mu   sync.Mutex
	done map[string]int
}

func (l *ledger) enter(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[id]++
}

func (l *ledger) count(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done[id]
}

// unreliable is a server on loopback whose connections come to grief by chance.
type unreliable struct {
	ledger
	seed uint64
	addr string

	conns sync.WaitGroup // those that are open

	mu   sync.Mutex // guards the field below
	open map[*net.TCPConn]struct{}
}

// listen starts an unreliable server. serve talks on a connection, which is
// closed when it returns. The function returned waits for the last one's end.
func listenUnreliably(t *testing.T, seed uint64, serve func(u *unreliable, c *net.TCPConn, r *rand.Rand)) (u *unreliable, wait func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u = &unreliable{
		seed: seed, addr: l.Addr().String(),
		ledger: ledger{done: map[string]int{}}, open: map[*net.TCPConn]struct{}{},
	}
	accepting := make(chan struct{})
	go func() { // ends with the listener
		defer close(accepting)
		for n := uint64(0); ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := rand.New(rand.NewPCG(seed, n))
			u.conns.Go(func() { u.talk(c.(*net.TCPConn), r, serve) })
		}
	}()
	return u, func() {
		l.Close()
		<-accepting
		ended := make(chan struct{})
		go func() {
			u.conns.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("connections are open though the client is closed")
			u.resetSome(1)
		}
	}
}

func (u *unreliable) talk(c *net.TCPConn, r *rand.Rand, serve func(*unreliable, *net.TCPConn, *rand.Rand)) {
	u.mu.Lock()
	u.open[c] = struct{}{}
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		delete(u.open, c)
		u.mu.Unlock()
		c.Close()
	}()
	serve(u, c, r)
}

// resetSome resets each open connection with a probability.
func (u *unreliable) resetSome(probability float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.open {
		if rand.Float64() < probability {
			reset(c)
		}
	}
}

func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// badHTTP1 speaks HTTP/1.1 until fate ends it.
func badHTTP1(u *unreliable, c *net.TCPConn, r *rand.Rand) {
	if r.IntN(50) == 0 {
		reset(c)
		return
	}
	from := bufio.NewReader(c)
	for {
		// It may be closed while idle, or just as the next request arrives.
		c.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(300)) * time.Millisecond))
		if _, err := from.Peek(1); err != nil {
			return
		}
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		req, err := http.ReadRequest(from)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		fate := r.IntN(100)
		if fate < 2 {
			reset(c) // before anything was done
			return
		}
		id := req.Header.Get("X-Id")
		u.enter(id)
		if !misbehave(c, r, fate, id+" "+string(body)) {
			return
		}
	}
}

// misbehave answers text, and reports whether the connection goes on.
func misbehave(c *net.TCPConn, r *rand.Rand, fate int, text string) bool {
	plain := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	switch {
	case fate < 4: // what was asked is done, but nobody hears of it
		reset(c)
		return false
	case fate < 6:
		return false
	case fate < 8: // cut off in the middle
		io.WriteString(c, plain[:r.IntN(len(plain))])
		if r.IntN(2) == 0 {
			reset(c)
		}
		return false
	case fate < 11:
		io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+text)
		return false
	case fate < 14: // closed without a word after the answer
		io.WriteString(c, plain)
		return false
	case fate < 20:
		time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
		_, err := io.WriteString(c, plain)
		return err == nil
	case fate < 30:
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(text), text)
		return err == nil
	case fate < 33:
		io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
	}
	_, err := io.WriteString(c, plain)
	return err == nil
}

// badHTTP2 speaks HTTP/2 by prior knowledge until somebody resets it.
func badHTTP2(u *unreliable, c *net.TCPConn, r *rand.Rand) {
	var mu sync.Mutex // guards r
	chance := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
	ended := make(chan struct{})
	srv := &http.Server{Protocols: &http.Protocols{}, ErrorLog: discardLog, Handler: http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		id := req.Header.Get("X-Id")
		u.enter(id)
		switch fate := chance(1000); {
		case fate < 20: // the stream is reset
			panic(http.ErrAbortHandler)
		case fate < 30: // in the middle of the body
			io.WriteString(rw, id)
			rw.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case fate < 35: // GOAWAY
			rw.Header().Set("Connection", "close")
		case fate < 150:
			time.Sleep(time.Duration(chance(50)) * time.Millisecond)
		}
		io.WriteString(rw, id+" "+string(body))
	})}
	srv.Protocols.SetUnencryptedHTTP2(true)
	srv.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(ended)
		}
	}
	defer srv.Close()
	l := &oneConn{conn: c, closed: make(chan struct{})}
	go srv.Serve(l) // ends with Close
	<-ended
}

// oneConn is a listener that accepts a single connection.
type oneConn struct {
	conn   net.Conn
	taken  bool // of the one who accepts
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.taken {
		l.taken = true
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// answers reports whether body is the answer to the request id with text.
func answers(body, id, text string) bool { return body == strings.TrimSpace(id)+" "+text }
