package http1_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

// Many exchanges follow each other on one connection.
func TestExchangesInARow(t *testing.T) {
	texts := []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 50_000) + "\r\nContent-Length: 5\r\n\r\nhello",
	}
	nc := answering("")
	c := http1.NewConn(nc, false)
	for round := range 20 {
		nc.in = []byte(texts[round%len(texts)])
		resp := get(t, c)
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		c.End()
		if !c.Reusable() {
			t.Fatalf("round %d: not reusable", round)
		}
	}
}

func TestRequestCloseIsNotReusable(t *testing.T) {
	for _, value := range []string{"close", "Close", "foo , close"} {
		req := newRequest(t, "GET", "http://h/")
		req.Header.Set("Connection", value)
		c := http1.NewConn(answering("HTTP/1.1 204 No Content\r\n\r\n"), false)
		sendRequest(t, c, req)
		final(t, c)
		if c.Reusable() {
			t.Errorf("%q: reusable", value)
		}
	}
	req := newRequest(t, "GET", "http://h/")
	req.Header.Set("Connection", "closed, keep-alive")
	c := http1.NewConn(answering("HTTP/1.1 204 No Content\r\n\r\n"), false)
	sendRequest(t, c, req)
	final(t, c)
	if !c.Reusable() {
		t.Error("a token that only resembles close")
	}
}

// A final status before the announced body was sent ends the connection.
func TestFailedExpectation(t *testing.T) {
	c := http1.NewConn(answering("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"), false)
	c.Begin(wire.Exchange{})
	req := newRequest(t, "POST", "http://h/")
	req.Header.Set("Expect", "100-continue")
	c.WriteRequestHeaders(req, 5)
	c.Flush()
	if ok, err := c.AwaitResponse(time.Second); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if resp := final(t, c); resp.StatusCode != 417 {
		t.Fatal(resp.Status)
	}
	c.AbortRequest()
	c.End()
	if c.Reusable() {
		t.Error("reusable")
	}
}

func TestReusableBeforeAnything(t *testing.T) {
	c := http1.NewConn(answering(""), false)
	c.Begin(wire.Exchange{})
	c.End()
	if !c.Reusable() {
		t.Error("an exchange of which nothing was sent spoils the connection")
	}
	c.Begin(wire.Exchange{})
	c.WriteRequestHeaders(newRequest(t, "GET", "http://h/"), 0)
	c.End()
	if c.Reusable() {
		t.Error("a request that was broken off does not")
	}
}

func TestSizeOfAnIdleConn(t *testing.T) {
	if size := unsafe.Sizeof(http1.Conn{}); size >= 300 {
		t.Errorf("a Conn has %d bytes", size)
	}
}

// An idle connection has no deadline in its way when it is examined.
// Exchanges that follow each other closely share one deadline each way.
func TestDeadlinesOutliveTheExchange(t *testing.T) {
	nc := answering("")
	c := http1.NewConn(nc, false)
	for range 10 {
		nc.in = []byte("HTTP/1.1 204 No Content\r\n\r\n")
		c.Begin(wire.Exchange{ReadTimeout: time.Hour, WriteTimeout: time.Hour})
		c.WriteRequestHeaders(newRequest(t, "GET", "http://h/"), 0)
		c.FinishRequest(nil)
		final(t, c)
		c.End()
	}
	if nc.deadlines != 2 {
		t.Errorf("%d deadlines were set, want one for reading and one for writing", nc.deadlines)
	}
}

// A deadline of one exchange does not reach the next one with other timeouts.
func TestDeadlinesFollowTheTimeouts(t *testing.T) {
	nc := answering("")
	c := http1.NewConn(nc, false)
	for _, timeout := range []time.Duration{time.Minute, 0, time.Minute, 0} {
		nc.in = []byte("HTTP/1.1 204 No Content\r\n\r\n")
		c.Begin(wire.Exchange{ReadTimeout: timeout, WriteTimeout: timeout})
		c.WriteRequestHeaders(newRequest(t, "GET", "http://h/"), 0)
		c.FinishRequest(nil)
		final(t, c)
		for side, got := range map[string]time.Time{"read": nc.readDeadline, "write": nc.writeDeadline} {
			if timeout == 0 && !got.IsZero() || timeout > 0 && time.Until(got) < timeout-time.Second {
				t.Errorf("timeout %v: %s deadline is %v", timeout, side, got)
			}
		}
		c.End()
	}
}

// The two sides run at the same time: an upload whose answer is watched.
func TestUploadBesideRead(t *testing.T) {
	client, server := tcpPair(t)
	var peer sync.WaitGroup
	defer peer.Wait()
	peer.Go(func() {
		req, err := http.ReadRequest(bufio.NewReader(server))
		if err != nil {
			return
		}
		io.CopyN(io.Discard, req.Body, 1<<20)
		io.WriteString(server, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
	})
	c := http1.NewConn(client, false)
	c.Begin(wire.Exchange{ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second})
	defer c.End()
	if err := c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), -1); err != nil {
		t.Fatal(err)
	}
	uploaded := make(chan error, 1)
	go func() {
		_, err := c.ReadFrom(zeros{})
		uploaded <- err
	}()
	resp := final(t, c)
	if !c.Written() {
		t.Error("not written")
	}
	c.InterruptWrite()
	if err := <-uploaded; err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("upload: error is %v", err)
	}
	c.AbortRequest()
	if body, err := io.ReadAll(resp.Body); string(body) != "big" || err != nil {
		t.Errorf("body %q, %v", body, err)
	}
	if c.Reusable() {
		t.Error("reusable")
	}
	client.Close()
	server.Close()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func tcpPair(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// On a socket a slow peer is not timed out as long as it takes something, and a
// silent one is in time.
func TestWriteTimeoutOnASocket(t *testing.T) {
	client, server := tcpPair(t)
	server.(*net.TCPConn).SetReadBuffer(1 << 20) // else the kernel may hold all that is sent
	const timeout = 500 * time.Millisecond
	const slow = 8
	stopped := make(chan time.Time, 1)
	var peer sync.WaitGroup
	defer peer.Wait()
	defer server.Close()
	pattern := make([]byte, 1009)
	for i := range pattern {
		pattern[i] = byte(i * i >> 3)
	}
	content := bytes.Repeat(pattern, 64<<10) // more than the peer takes and the kernel holds
	peer.Go(func() {
		// Take a part several times, for longer than one timeout in all.
		ticker := time.NewTicker(timeout / 3)
		defer ticker.Stop()
		buffer := make([]byte, 4<<20)
		for i := range slow {
			<-ticker.C
			n, err := io.ReadFull(server, buffer)
			if at := i * len(buffer); !bytes.Equal(buffer[:n], content[at:at+n]) {
				t.Error("the peer got something else")
			}
			if err != nil {
				break
			}
		}
		stopped <- time.Now()
	})
	c := http1.NewConn(client, false)
	c.Begin(wire.Exchange{WriteTimeout: timeout})
	defer c.End()
	c.WriteRequestHeaders(newRequest(t, "POST", "http://h/"), 1<<30)
	c.Flush()
	http.ReadRequest(bufio.NewReaderSize(io.LimitReader(server, int64(len("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1073741824\r\n\r\n"))), 16))
	began := time.Now()
	_, err := c.Write(content)
	if !isTimeout(err) {
		t.Fatalf("error is %v", err)
	}
	failed := time.Now()
	if took := failed.Sub(began); took < slow*timeout/3 {
		t.Fatalf("it failed after %v while the peer was reading", took)
	}
	// The kernel may go on for a while with what fits its buffers.
	if late := failed.Sub(<-stopped); late < timeout*9/10 || late > 2*timeout {
		t.Errorf("it failed %v after the peer's last read", late)
	}
}

// Against a server that is not ours.
func TestAgainstNetHTTP(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		for len(body) > 0 {
			n := min(len(body), 3000)
			w.Write(body[:n])
			w.(http.Flusher).Flush()
			body = body[n:]
		}
		w.Header().Set("X-Sum", r.Trailer.Get("X-Sum"))
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(l) })
	defer serving.Wait()
	defer server.Close()

	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := http1.NewConn(nc, false)
	for _, size := range []int{1, 100, 10_000, 1_000_000} {
		for _, declared := range []int64{int64(size), -1} {
			content := strings.Repeat("x", size)
			req := newRequest(t, "POST", "http://"+l.Addr().String()+"/echo")
			req.Trailer = http.Header{"X-Sum": nil}
			c.Begin(wire.Exchange{ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second})
			if err := c.WriteRequestHeaders(req, declared); err != nil {
				t.Fatal(err)
			}
			if _, err := c.ReadFrom(strings.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			if err := c.FinishRequest(http.Header{"X-Sum": {fmt.Sprint(size)}}); err != nil {
				t.Fatal(err)
			}
			resp := final(t, c)
			body, err := io.ReadAll(resp.Body)
			if string(body) != content || err != nil {
				t.Fatalf("size %d: %d bytes, %v", size, len(body), err)
			}
			if sum := resp.Trailer.Get("X-Sum"); declared < 0 && sum != fmt.Sprint(size) {
				t.Errorf("size %d: trailer %v", size, resp.Trailer)
			}
			c.End()
			if !c.Reusable() {
				t.Fatalf("size %d: not reusable", size)
			}
		}
	}
}
