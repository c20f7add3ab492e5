package http1_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t)
		p.c.Begin(wire.Exchange{WriteTimeout: time.Second})
		p.c.WriteRequestHeaders(newRequest(t, "GET", "http://h/"), 0)
		began := time.Now()
		if err := p.c.FinishRequest(nil); !isTimeout(err) {
			t.Errorf("error is %v", err)
		}
		wantLate(t, began, time.Second)
		if p.c.Written() {
			t.Error("written")
		}
	})
}

// A peer that takes a large body slowly is not timed out.
func TestWriteTimeoutIsForEachPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t)
		p.peer.Go(func() {
			buffer := make([]byte, 4096)
			for {
				if _, err := p.server.Read(buffer); err != nil {
					return
				}
				time.Sleep(200 * time.Millisecond)
			}
		})
		const size = 200_000
		p.c.Begin(wire.Exchange{WriteTimeout: time.Second})
		p.c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), 2*size)
		if _, err := p.c.Write(make([]byte, size)); err != nil {
			t.Errorf("Write: %v", err)
		}
		if _, err := p.c.ReadFrom(strings.NewReader(strings.Repeat("x", size))); err != nil {
			t.Errorf("ReadFrom: %v", err)
		}
	})
}

func TestInterruptWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t)
		p.c.Begin(wire.Exchange{WriteTimeout: time.Hour})
		p.c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), 1<<20)
		began := time.Now()
		p.peer.Go(func() {
			time.Sleep(time.Second)
			p.c.InterruptWrite()
		})
		_, err := p.c.Write(make([]byte, 1<<20))
		if err == nil || !strings.Contains(err.Error(), "interrupted") || time.Since(began) != time.Second {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
		if _, err := p.c.Write(make([]byte, 1)); err == nil {
			t.Error("a later write succeeded")
		}
		p.c.AbortRequest()
		p.peer.Go(func() { io.WriteString(p.server, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n") })
		if resp := final(t, p.c); resp.StatusCode != 413 || p.c.Reusable() {
			t.Errorf("status %d, reusable %v", resp.StatusCode, p.c.Reusable())
		}
	})
}

// A first write after InterruptWrite fails too, and the next exchange is free.
func TestInterruptBeforeWrite(t *testing.T) {
	nc := answering("")
	c := http1.NewConn(nc, false)
	c.Begin(wire.Exchange{})
	c.InterruptWrite()
	c.WriteRequestHeaders(newRequest(t, "GET", "http://h/"), 0)
	if err := c.FinishRequest(nil); err == nil || nc.writes > 0 {
		t.Errorf("error %v, %d writes", err, nc.writes)
	}
	c.End()
	c.Begin(wire.Exchange{})
	c.WriteRequestHeaders(newRequest(t, "GET", "http://h/"), 0)
	if err := c.FinishRequest(nil); err != nil || !nc.writeDeadline.IsZero() {
		t.Errorf("the next exchange: error %v, deadline %v", err, nc.writeDeadline)
	}
}

// Deadlines are moved only now and then.
func TestDeadlinesAreSetRarely(t *testing.T) {
	body := strings.Repeat("x", 1<<20)
	nc := answering("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + body)
	nc.step = 1000
	c := http1.NewConn(nc, false)
	c.Begin(wire.Exchange{ReadTimeout: time.Hour, WriteTimeout: time.Hour})
	c.WriteRequestHeaders(newRequest(t, "GET", "http://h/"), 0)
	c.FinishRequest(nil)
	io.ReadAll(final(t, c).Body)
	c.End()
	if nc.deadlines > 3 {
		t.Errorf("%d deadlines were set", nc.deadlines)
	}
}

// TLS writes by itself while it is read: no deadline of a write that is over may meet
// it. In clear text the deadline stays, to be moved less often.
func TestWriteDeadlineOverTLSEndsWithTheWrite(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s := answering("HTTP/1.1 204 No Content\r\n\r\n")
		c := http1.NewConn(s, secure)
		c.Begin(wire.Exchange{WriteTimeout: time.Second})
		if err := c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), 4); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		if s.writes == 0 || s.writeDeadline.IsZero() != secure {
			t.Errorf("secure %t: after %d writes the deadline is %v", secure, s.writes, s.writeDeadline)
		}
		c.InterruptWrite()
		c.Write([]byte("body"))
		if s.writeDeadline.IsZero() {
			t.Errorf("secure %t: an interrupted connection can be written to", secure)
		}
	}
}
