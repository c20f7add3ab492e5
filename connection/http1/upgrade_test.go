package http1_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

func TestUpgrade(t *testing.T) {
	for _, early := range []string{"", "early"} {
		client, server := tcpPair(t)
		var peer sync.WaitGroup
		peer.Go(func() {
			r := bufio.NewReader(server)
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			io.WriteString(server, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"+early)
			io.Copy(server, r)
			server.Close()
		})
		c := http1.NewConn(client, false)
		c.Begin(wire.Exchange{ReadTimeout: time.Minute, WriteTimeout: time.Minute})
		req := newRequest(t, "GET", "http://h/")
		req.Header.Set("Connection", "keep-alive, Upgrade")
		req.Header.Set("Upgrade", "echo")
		if err := c.WriteRequestHeaders(req, 0); err != nil {
			t.Fatal(err)
		}
		if err := c.FinishRequest(nil); err != nil {
			t.Fatal(err)
		}
		if resp := final(t, c); resp.StatusCode != 101 || resp.Body != http.NoBody {
			t.Fatal(resp.Status)
		}
		raw := c.Upgrade()
		c.End()
		if c.Reusable() {
			t.Error("reusable")
		}
		if _, err := io.WriteString(raw, "hello"); err != nil {
			t.Fatal(err)
		}
		if err := raw.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(raw)
		if string(got) != early+"hello" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		raw.Close()
		peer.Wait()
	}
}

// A connection without half-close gives a stream without it, and the deadlines of
// the exchange are gone.
func TestUpgradeInMemory(t *testing.T) {
	nc := answering("HTTP/1.1 101 Switching Protocols\r\n\r\nearly")
	c := http1.NewConn(nc, false)
	c.Begin(wire.Exchange{ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	req := newRequest(t, "GET", "http://h/")
	req.Header = http.Header{"connection": {"upgrade"}, "upgrade": {"x"}}
	c.WriteRequestHeaders(req, 0)
	c.FinishRequest(nil)
	final(t, c)
	raw := c.Upgrade()
	if _, ok := raw.(interface{ CloseWrite() error }); ok {
		t.Error("it has CloseWrite")
	}
	if !nc.readDeadline.IsZero() || !nc.writeDeadline.IsZero() {
		t.Errorf("deadlines %v, %v", nc.readDeadline, nc.writeDeadline)
	}
	p := make([]byte, 3)
	for _, want := range []string{"ear", "ly"} {
		if n, err := raw.Read(p); string(p[:n]) != want || err != nil {
			t.Errorf("got %q, %v", p[:n], err)
		}
	}
	if _, err := raw.Read(p); err != errOpen {
		t.Errorf("error is %v", err)
	}
}

// Without Upgrade the connection is no more HTTP's either.
func TestUpgradeNotTaken(t *testing.T) {
	c := http1.NewConn(answering("HTTP/1.1 101 Switching Protocols\r\n\r\n"), false)
	req := newRequest(t, "GET", "http://h/")
	req.Header = http.Header{"Connection": {"upgrade"}, "Upgrade": {"x"}}
	sendRequest(t, c, req)
	final(t, c)
	c.End()
	if c.Reusable() {
		t.Error("reusable")
	}
}

// An Upgrade field alone, or a Connection option alone, does not ask for a 101.
func TestHalfAskedUpgrade(t *testing.T) {
	for _, header := range []http.Header{{"Upgrade": {"x"}}, {"Connection": {"upgrade"}}, {"Connection": {"upgrades"}, "Upgrade": {"x"}}} {
		c := http1.NewConn(answering("HTTP/1.1 101 Switching Protocols\r\n\r\n"), false)
		req := newRequest(t, "GET", "http://h/")
		req.Header = header
		sendRequest(t, c, req)
		_, err := c.ReadResponseHeaders(nil)
		wantProtocolError(t, err, "did not ask")
	}
}

// A refused upgrade is a response like any other.
func TestRefusedUpgrade(t *testing.T) {
	c := http1.NewConn(answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"), false)
	req := newRequest(t, "GET", "http://h/")
	req.Header = http.Header{"Connection": {"upgrade"}, "Upgrade": {"x"}}
	sendRequest(t, c, req)
	body, err := io.ReadAll(final(t, c).Body)
	if string(body) != "no" || err != nil || !c.Reusable() {
		t.Errorf("body %q, error %v, reusable %v", body, err, c.Reusable())
	}
}

// Every 2xx to CONNECT opens the tunnel, whatever it says of its own length (RFC
// 9110 9.3.6); any other answer is framed as usual.
func TestConnect(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		early        int
		body         string // of an answer that opens no tunnel
	}{
		{"bare", "HTTP/1.1 200 OK\r\n\r\n", 0, ""},
		{"another 2xx", "HTTP/1.1 299 \r\n\r\n", 0, ""},
		{"HTTP/1.0", "HTTP/1.0 200 Connection established\r\n\r\n", 0, ""},
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0, ""},
		{"nonsense for a length", "HTTP/1.1 200 OK\r\nContent-Length: x, 2\r\n\r\n", 0, ""},
		{"coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, ""},
		{"coding in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", 0, ""},
		{"close", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", 0, ""},
		{"early bytes", "HTTP/1.1 200 OK\r\n\r\nearly", 5, ""},
		{"refusal", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\ndown", 4, "down"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nc := answering(tc.answer)
			c := http1.NewConn(nc, false)
			c.Begin(wire.Exchange{})
			req := &http.Request{Method: "CONNECT", URL: &url.URL{Opaque: "h:443"}, Host: "h:443"}
			if err := c.WriteRequestHeaders(req, 0); err != nil {
				t.Fatal(err)
			}
			if err := c.FinishRequest(nil); err != nil {
				t.Fatal(err)
			}
			if want := "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n"; nc.out.String() != want {
				t.Errorf("sent %q, want %q", nc.out.String(), want)
			}
			resp := final(t, c)
			if n := c.Early(); n != tc.early {
				t.Errorf("%d early bytes, want %d", n, tc.early)
			}
			if body, err := io.ReadAll(resp.Body); string(body) != tc.body || err != nil {
				t.Errorf("body %q, %v; want %q", body, err, tc.body)
			}
			opened := resp.StatusCode/100 == 2
			if c.Reusable() == opened {
				t.Errorf("reusable: %v", c.Reusable())
			}
			c.End()
		})
	}
}
