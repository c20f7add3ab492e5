package http1_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

// pipe is a Conn whose peer is at the other end of a net.Pipe.
type pipe struct {
	c      *http1.Conn
	server net.Conn
	read   *bufio.Reader
	peer   sync.WaitGroup // the goroutines that play the server
}

func newPipe(t *testing.T) *pipe {
	client, server := net.Pipe()
	p := &pipe{c: http1.NewConn(client, false), server: server, read: bufio.NewReader(server)}
	t.Cleanup(func() {
		client.Close()
		server.Close()
		p.peer.Wait()
	})
	return p
}

// answer reads a request and says text.
func (p *pipe) answer(text string) {
	req, err := http.ReadRequest(p.read)
	if err != nil {
		return
	}
	io.Copy(io.Discard, req.Body)
	io.WriteString(p.server, text)
}

func (p *pipe) get(t *testing.T, x wire.Exchange) {
	t.Helper()
	p.c.Begin(x)
	if err := p.c.WriteRequestHeaders(newRequest(t, "GET", "http://h/"), 0); err != nil {
		t.Fatal(err)
	}
	if err := p.c.FinishRequest(nil); err != nil {
		t.Fatal(err)
	}
}

// wantLate checks the promise: never early, at most a tenth or a second late.
func wantLate(t *testing.T, began time.Time, timeout time.Duration) {
	t.Helper()
	took := time.Since(began)
	if took < timeout || took > timeout+min(timeout/10, time.Second) {
		t.Errorf("it took %v of %v", took, timeout)
	}
}

func TestHeadTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{10 * time.Millisecond, time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			p := newPipe(t)
			p.peer.Go(func() { p.answer("") })
			p.get(t, wire.Exchange{ReadTimeout: timeout})
			began := time.Now()
			_, err := p.c.ReadResponseHeaders(nil)
			if !isTimeout(err) {
				t.Errorf("error is %v", err)
			}
			wantLate(t, began, timeout)
		})
	}
}

// A head that drips is bounded as a whole; an interim head starts anew.
func TestHeadTimeoutIsForAllOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t)
		p.peer.Go(func() {
			p.answer("")
			time.Sleep(900 * time.Millisecond)
			io.WriteString(p.server, "HTTP/1.1 103 Early Hints\r\n\r\n")
			for _, ch := range []byte("HTTP/1.1 200 OK\r\nX: and so on") {
				time.Sleep(200 * time.Millisecond)
				if _, err := p.server.Write([]byte{ch}); err != nil {
					return
				}
			}
		})
		p.get(t, wire.Exchange{ReadTimeout: time.Second})
		if resp, err := p.c.ReadResponseHeaders(nil); err != nil || resp.StatusCode != 103 {
			t.Fatal(resp, err)
		}
		began := time.Now()
		if _, err := p.c.ReadResponseHeaders(nil); !isTimeout(err) {
			t.Errorf("error is %v", err)
		}
		wantLate(t, began, time.Second)
		p.server.Close()
	})
}

// A body has its timeout for each read: a drip passes, silence does not.
func TestBodyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t)
		p.peer.Go(func() {
			p.answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
			for range 40 {
				time.Sleep(150 * time.Millisecond)
				p.server.Write([]byte("x"))
			}
		})
		p.get(t, wire.Exchange{ReadTimeout: 200 * time.Millisecond})
		resp := final(t, p.c)
		n, err := io.ReadFull(resp.Body, make([]byte, 40))
		if n != 40 || err != nil {
			t.Fatalf("the drip: %d, %v", n, err)
		}
		began := time.Now()
		if _, err := resp.Body.Read(make([]byte, 1)); !isTimeout(err) {
			t.Errorf("error is %v", err)
		}
		wantLate(t, began, 200*time.Millisecond)
		resp.Body.Close()
		if p.c.Reusable() {
			t.Error("reusable")
		}
	})
}

// An exchange's timeout neither outlives it nor is taken from the one before.
func TestTimeoutsOfFollowingExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t)
		ok := "HTTP/1.1 204 No Content\r\n\r\n"
		wait := make(chan time.Duration)
		p.peer.Go(func() {
			for d := range wait {
				p.answer("")
				time.Sleep(d)
				if d < time.Hour*24 {
					io.WriteString(p.server, ok)
				}
			}
		})
		for _, timeout := range []time.Duration{time.Hour, time.Minute, time.Second, 0, time.Minute} {
			wait <- max(timeout, time.Hour) * 9 / 10 * boolTo(timeout == 0 || timeout == time.Hour)
			p.get(t, wire.Exchange{ReadTimeout: timeout, WriteTimeout: timeout})
			if _, err := p.c.ReadResponseHeaders(nil); err != nil {
				t.Fatalf("timeout %v: %v", timeout, err)
			}
			p.c.End()
			if !p.c.Reusable() {
				t.Fatal("not reusable")
			}
			time.Sleep(2 * time.Hour) // idle, longer than any deadline
		}
		close(wait)
	})
}

func boolTo(b bool) time.Duration {
	if b {
		return 1
	}
	return 0
}

// While the request is being written the response has all the time there is;
// then the timeout runs.
func TestReadTimeoutStartsAtTheRequestsEnd(t *testing.T) {
	for name, end := range map[string]func(*http1.Conn){
		"finish": func(c *http1.Conn) { c.FinishRequest(nil) },
		"abort":  func(c *http1.Conn) { c.AbortRequest() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipe(t)
				p.peer.Go(func() { io.Copy(io.Discard, p.server) })
				p.c.Begin(wire.Exchange{ReadTimeout: time.Second, WriteTimeout: time.Second})
				if err := p.c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), -1); err != nil {
					t.Fatal(err)
				}
				var ended time.Time
				done := make(chan struct{})
				p.peer.Go(func() {
					defer close(done)
					for range 10 {
						time.Sleep(700 * time.Millisecond)
						p.c.Write([]byte("piece"))
						p.c.Flush()
					}
					ended = time.Now()
					end(p.c)
				})
				_, err := p.c.ReadResponseHeaders(nil)
				<-done
				if !isTimeout(err) {
					t.Errorf("error is %v", err)
				}
				wantLate(t, ended, time.Second)
			})
		})
	}
}

// So it is where the head has come before, and the body is what is waited for.
func TestReadTimeoutOfABodyStartsAtTheRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t)
		p.peer.Go(func() {
			io.WriteString(p.server, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
			io.Copy(io.Discard, p.server)
		})
		p.c.Begin(wire.Exchange{ReadTimeout: time.Second, WriteTimeout: time.Second})
		if err := p.c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), -1); err != nil {
			t.Fatal(err)
		}
		resp, err := p.c.ReadResponseHeaders(nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		p.peer.Go(func() {
			time.Sleep(3 * time.Second)
			p.c.FinishRequest(nil)
		})
		if _, err := io.ReadAll(resp.Body); !isTimeout(err) {
			t.Errorf("error is %v", err)
		}
		wantLate(t, began.Add(3*time.Second), time.Second)
	})
}

// A head that has begun has its timeout although the request is unfinished, and
// the request's end gives it no other one.
func TestReadTimeoutStartsAtTheFirstByte(t *testing.T) {
	for name, await := range map[string]func(c *http1.Conn){
		"awaited":  func(c *http1.Conn) { c.AwaitResponse(time.Hour) },
		"read":     func(*http1.Conn) {},
		"finished": func(c *http1.Conn) { time.AfterFunc(2500*time.Millisecond, func() { c.FinishRequest(nil) }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipe(t)
				var begun time.Time
				p.peer.Go(func() {
					http.ReadRequest(p.read)
					time.Sleep(2 * time.Second)
					begun = time.Now()
					io.WriteString(p.server, "HTTP/1.1 1")
					io.Copy(io.Discard, p.read)
				})
				p.c.Begin(wire.Exchange{ReadTimeout: time.Second})
				p.c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), -1)
				p.c.Flush()
				await(p.c)
				if _, err := p.c.ReadResponseHeaders(nil); !isTimeout(err) {
					t.Errorf("error is %v", err)
				}
				wantLate(t, begun, time.Second)
			})
		})
	}
}

func TestAwaitResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t)
		p.peer.Go(func() {
			req, _ := http.ReadRequest(p.read)
			time.Sleep(1500 * time.Millisecond)
			io.WriteString(p.server, "HTTP/1.1 100 Continue\r\n\r\n")
			io.Copy(io.Discard, req.Body)
			time.Sleep(5 * time.Second)
			io.WriteString(p.server, "HTTP/1.1 204 No Content\r\n\r\n")
		})
		p.c.Begin(wire.Exchange{ReadTimeout: 6 * time.Second})
		req := newRequest(t, "POST", "http://h/")
		req.Header.Set("Expect", "100-continue")
		if err := p.c.WriteRequestHeaders(req, 4); err != nil {
			t.Fatal(err)
		}
		if err := p.c.Flush(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if ok, err := p.c.AwaitResponse(time.Second); ok || err != nil || time.Since(began) != time.Second {
			t.Errorf("silence: %v, %v after %v", ok, err, time.Since(began))
		}
		for range 2 { // consumes nothing
			if ok, err := p.c.AwaitResponse(time.Second); !ok || err != nil {
				t.Errorf("answer: %v, %v", ok, err)
			}
		}
		if resp, err := p.c.ReadResponseHeaders(nil); err != nil || resp.StatusCode != 100 {
			t.Fatal(resp, err)
		}
		p.c.Write([]byte("body"))
		if err := p.c.FinishRequest(nil); err != nil {
			t.Fatal(err)
		}
		if resp, err := p.c.ReadResponseHeaders(nil); err != nil || resp.StatusCode != 204 || !p.c.Reusable() {
			t.Error(resp, err)
		}
	})
}

// A long wait for 100 Continue does not lengthen the head's timeout.
func TestAwaitResponseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t)
		p.peer.Go(func() {
			http.ReadRequest(p.read)
			io.WriteString(p.server, "HTTP/1.1 ")
			io.Copy(io.Discard, p.read)
		})
		p.c.Begin(wire.Exchange{ReadTimeout: time.Second})
		p.c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), 4)
		p.c.Flush()
		if ok, err := p.c.AwaitResponse(time.Hour); !ok || err != nil {
			t.Fatal(ok, err)
		}
		p.c.AbortRequest()
		began := time.Now()
		if _, err := p.c.ReadResponseHeaders(nil); !isTimeout(err) {
			t.Errorf("error is %v", err)
		}
		wantLate(t, began, time.Second)
	})
}

func TestAwaitResponseAtTheEnd(t *testing.T) {
	c := http1.NewConn(ending(""), false)
	c.Begin(wire.Exchange{})
	if ok, err := c.AwaitResponse(time.Second); ok || !errors.Is(err, io.EOF) {
		t.Errorf("got %v, %v", ok, err)
	}
}
