package http2

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// settledConn is a connection to a server that takes everything and says nothing,
// as if it had sent its SETTINGS.
func settledConn(t *testing.T) *Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	go io.Copy(io.Discard, theirs) // ends with the connection
	c, err := NewConn(ours, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.greeted = true
	return c
}

func bodyRequest(t *testing.T) *http.Request {
	t.Helper()
	req, err := http.NewRequest("POST", "http://x.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// A stream that is opened while the connection ends is refused, or ended as the
// others are. It never waits for an answer that can not come.
func TestStreamsMeetTheEnd(t *testing.T) {
	tests := map[string]func(c *Conn){
		"GOAWAY":    func(c *Conn) { c.goneAway(goAway{last: 0, code: xhttp2.ErrCodeNo}) },
		"a failure": func(c *Conn) { c.fail(io.ErrUnexpectedEOF) },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				c := settledConn(t)
				for _, s := range openWhile(c, bodyRequest(t), end) {
					if s.mayWrite() == nil {
						t.Errorf("stream %d waits for an answer", s.id)
					}
					s.End()
				}
				c.Close()
			}
		})
	}
}

// openWhile has several callers open streams until end has its way, and returns
// the last streams that they have opened.
func openWhile(c *Conn, req *http.Request, end func(c *Conn)) (last []*Stream) {
	var callers sync.WaitGroup
	var mu sync.Mutex // guards last
	busy := make(chan struct{}, 4)
	for range cap(busy) {
		callers.Go(func() {
			var open *Stream
			for n := 0; c.Reserve(); n++ {
				s := c.NewStream(wire.Exchange{})
				if s.WriteRequestHeaders(req, 1) != nil {
					s.End()
					break
				}
				if open != nil {
					open.End()
				}
				if open = s; n == 10 {
					busy <- struct{}{}
				}
			}
			if open != nil {
				mu.Lock()
				defer mu.Unlock()
				last = append(last, open)
			}
		})
	}
	<-busy
	end(c)
	callers.Wait()
	return last
}

// The end of a body that comes after the connection's has nothing left to join.
func TestFinishAfterTheEnd(t *testing.T) {
	c := settledConn(t)
	c.Reserve()
	s := c.NewStream(wire.Exchange{})
	defer s.End()
	if err := s.WriteRequestHeaders(bodyRequest(t), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	// FinishRequest has seen just before that the stream may write.
	if err := c.out.finish(s, nil); err != nil {
		t.Error(err)
	}
}
