package http2_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http2"
)

// pieces answers each number in the request's body with as many bytes, at once.
func pieces(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		var n int
		if _, err := fmt.Fscanln(r.Body, &n); err != nil {
			return
		}
		w.Write([]byte(large[:n]))
		w.(http.Flusher).Flush()
	}
}

// chop carries what comes from one connection to another in parts of any size, at
// times with a pause between them, so that records and frames come by halves.
func chop(to io.Writer, from io.Reader, rng *rand.Rand) {
	buf := make([]byte, 32<<10)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		n, err := from.Read(buf)
		for p := buf[:n]; len(p) > 0; {
			k := 1 + rng.IntN(min(len(p), 1<<rng.IntN(16)))
			if _, err := to.Write(p[:k]); err != nil {
				return
			}
			p = p[k:]
			<-pause.C
			pause.Reset(time.Duration(rng.IntN(3)) * 50 * time.Microsecond)
		}
		if err != nil {
			return
		}
	}
}

// choppy is a way to addr where what comes back is chopped. Between it and the
// client lies what enter makes of a connection; nil: nothing.
func choppy(t *testing.T, addr string, enter func(net.Conn) net.Conn) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var relay sync.WaitGroup
	relay.Go(func() { // ends with the connection of either side
		defer l.Close()
		ours, err := l.Accept()
		if err != nil {
			return
		}
		defer ours.Close()
		theirs, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer theirs.Close()
		rng := rand.New(rand.NewPCG(1, 2))
		end := ours
		if enter != nil {
			ours = enter(ours)
		}
		relay.Go(func() {
			io.Copy(theirs, ours)
			theirs.Close()
		})
		chop(ours, theirs, rng)
		end.Close()
	})
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close(); relay.Wait() })
	return nc
}

// reader is a connection of an application's that reads what flipper wrote.
// showing is one that shows what lies below it.
type (
	reader  struct{ net.Conn }
	showing struct{ reader }
	flipper struct{ net.Conn }
)

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	flip(p[:n])
	return n, err
}

func (s showing) NetConn() net.Conn { return s.Conn }

func (f flipper) Write(p []byte) (int, error) {
	p = bytes.Clone(p)
	flip(p)
	return f.Conn.Write(p)
}

func flip(p []byte) {
	for i := range p {
		p[i] ^= 0x55
	}
}

// Over TLS a reader gets all that came, whatever the parts in which it came and
// whatever lies below: the connection has told it before it waits for more.
func TestReadersAreWokenWhateverIsBelow(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(pieces))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	addr := srv.Listener.Addr().String()
	config := func(version uint16) *tls.Config {
		return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MinVersion: version, MaxVersion: version}
	}
	const tls12, tls13 = tls.VersionTLS12, tls.VersionTLS13
	over := func(nc net.Conn, version uint16) net.Conn { return tls.Client(http2.Gather(nc), config(version)) }
	proxy := func(nc net.Conn) net.Conn { return tls.Server(nc, &tls.Config{Certificates: srv.TLS.Certificates}) }
	flips := func(nc net.Conn) net.Conn { return flipper{nc} }
	for name, dial := range map[string]func(t *testing.T) net.Conn{
		"TLS 1.2":                   func(t *testing.T) net.Conn { return over(choppy(t, addr, nil), tls12) },
		"TLS 1.3":                   func(t *testing.T) net.Conn { return over(choppy(t, addr, nil), tls13) },
		"without Gather":            func(t *testing.T) net.Conn { return tls.Client(choppy(t, addr, nil), config(tls13)) },
		"a wrapper":                 func(t *testing.T) net.Conn { return over(reader{choppy(t, addr, flips)}, tls13) },
		"a wrapper with NetConn":    func(t *testing.T) net.Conn { return over(showing{reader{choppy(t, addr, flips)}}, tls13) },
		"TLS 1.3 in TLS 1.3":        func(t *testing.T) net.Conn { return over(over(choppy(t, addr, proxy), tls13), tls13) },
		"TLS 1.2 in TLS 1.3":        func(t *testing.T) net.Conn { return over(over(choppy(t, addr, proxy), tls13), tls12) },
		"in TLS of the application": func(t *testing.T) net.Conn { return over(tls.Client(choppy(t, addr, proxy), config(tls13)), tls13) },
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, dial(t), http2.Options{Secure: true})
			var streams sync.WaitGroup
			defer streams.Wait()
			for i := range 4 {
				streams.Go(func() { talk(t, c, uint64(i)) })
			}
		})
	}
}

// talk asks for pieces on a stream of its own, each when it has the one before.
func talk(t *testing.T, c *http2.Conn, seed uint64) {
	s := open(t, c, terms, request(t, "POST", "https://x.test/"), -1)
	defer s.End()
	body := head(t, s).Body
	rng := rand.New(rand.NewPCG(seed, 0))
	late := time.AfterFunc(patience, s.Cancel)
	defer late.Stop()
	for i := range 30 {
		n := 1 + rng.IntN(1<<rng.IntN(18))
		if _, err := io.WriteString(s, strconv.Itoa(n)+"\n"); err != nil {
			t.Error(err)
			return
		}
		if k, err := io.ReadFull(body, make([]byte, n)); err != nil {
			t.Errorf("stream %d, piece %d: %d bytes of %d, %v", seed, i, k, n, err)
			return
		}
	}
	if err := s.FinishRequest(nil); err != nil {
		t.Error(err)
	}
	if n, err := body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("afterwards: %d, %v", n, err)
	}
}
