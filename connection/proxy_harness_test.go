package connection

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// opened is the shortest answer that opens a tunnel.
const opened = "HTTP/1.1 200 OK\r\n\r\n"

// challenge is a 407 that keeps the connection.
const challenge = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 6\r\n\r\ndenied"

// fakeProxy is an HTTP proxy at p.test, 192.0.2.9:80. It answers as its script says,
// and leads to whatever a CONNECT asks for where that opens a tunnel.
type fakeProxy struct {
	w      *world
	config *tls.Config // of an HTTPS proxy; nil: an HTTP proxy

	// answer is what is said to the nth request, of all sockets; nil: opened. An
	// empty answer closes the socket.
	answer func(n int, head string) string
	// eager lets an origin that speaks first come in one piece with the answer.
	eager bool
	// hangsUp closes the socket after a refusal, whatever that says.
	hangsUp bool

	mu      sync.Mutex
	heads   []string // of the requests it got
	sockets int
	early   int // bytes that came before its answer
}

// newProxy starts p and lets calls go through it.
func (w *world) newProxy(p *fakeProxy) *fakeProxy {
	p.w = w
	w.raw("p.test", "192.0.2.9", func(_ int, c net.Conn) {
		p.mu.Lock()
		p.sockets++
		p.mu.Unlock()
		if p.config != nil {
			c = tls.Server(c, p.config)
			defer c.Close()
		}
		p.serve(c)
	})
	kind := proxy.HTTP
	if p.config != nil {
		kind = proxy.HTTPS
	}
	w.through(proxy.Proxy{Type: kind, Host: "p.test", Port: 80})
	return p
}

// through lets calls go through proxies, in a Network of its own.
func (w *world) through(proxies ...proxy.Proxy) {
	w.network = w.network.With(func(n *route.Network) { n.ProxySelector = proxy.Fixed(proxies...) })
}

func (w *world) authenticator(answer func(via proxy.Proxy, resp *http.Response) (*http.Request, error)) {
	w.network = w.network.With(func(n *route.Network) { n.ProxyAuthenticator = authenticatorFunc(answer) })
}

type authenticatorFunc func(proxy.Proxy, *http.Response) (*http.Request, error)

func (f authenticatorFunc) Authenticate(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
	return f(via, resp)
}

// credentials answers every real challenge with text in Proxy-Authorization.
func credentials(text func(n int) string) authenticatorFunc {
	n := 0
	return func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
		if resp.Header.Get("Proxy-Authenticate") == "Catena-Preemptive" {
			return nil, nil
		}
		n++
		next := resp.Request.Clone(resp.Request.Context())
		next.Header.Set("Proxy-Authorization", text(n))
		return next, nil
	}
}

func (p *fakeProxy) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		head, err := readRawHead(r)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.heads = append(p.heads, head)
		n := len(p.heads)
		p.mu.Unlock()
		p.listen(c, r)
		answer := opened
		if p.answer != nil {
			answer = p.answer(n, head)
		}
		if p.eager {
			p.relay(c, r, strings.Fields(head)[1], answer)
			return
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
		answer = answer[strings.LastIndex(answer, "HTTP/1."):] // without interim ones
		switch status := strings.Fields(answer + " - -")[1]; {
		case strings.HasPrefix(status, "2") && strings.HasPrefix(head, "CONNECT "):
			p.relay(c, r, strings.Fields(head)[1], "")
			return
		case answer == "", p.hangsUp, strings.Contains(answer, "close"), strings.Contains(answer, "HTTP/1.0") && !strings.Contains(answer, "keep-alive"):
			return
		}
	}
}

// listen waits a little for what should not come: bytes before the answer.
func (p *fakeProxy) listen(c net.Conn, r *bufio.Reader) {
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := r.Peek(1)
	c.SetReadDeadline(time.Time{})
	if err == nil {
		p.mu.Lock()
		p.early += r.Buffered()
		p.mu.Unlock()
	}
}

// relay copies between c and target, whose first bytes come after first, if that is
// not empty.
func (p *fakeProxy) relay(c net.Conn, r io.Reader, target, first string) {
	to, err := p.w.net.DialContext(context.Background(), "tcp", target)
	if err != nil {
		return
	}
	defer to.Close()
	if first != "" {
		b := make([]byte, 1024)
		n, _ := to.Read(b)
		io.WriteString(c, first+string(b[:n]))
	}
	go func() { // ends with the two connections
		io.Copy(to, r)
		to.Close()
	}()
	io.Copy(c, to)
}

func readRawHead(r *bufio.Reader) (string, error) {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		head.WriteString(line)
		if line == "\r\n" {
			return head.String(), nil
		}
	}
}

// saw compares the requests that the proxy got, and that they were all.
func (p *fakeProxy) saw(want ...string) {
	p.w.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if diff := cmp.Diff(want, p.heads); diff != "" {
		p.w.t.Errorf("what the proxy saw (-want +got):\n%s", diff)
	}
	if p.early > 0 {
		p.w.t.Errorf("%d bytes came before the proxy's answer", p.early)
	}
}

// connectTo is the CONNECT that a.test is asked for with, with more fields in
// their order.
func connectTo(target string, fields ...string) string {
	return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n" +
		strings.Join(append(fields, ""), "\r\n") + "User-Agent: test\r\n\r\n"
}

const keepAlive = "Proxy-Connection: Keep-Alive"

// decisions are the FollowUpDecisions of a call.
func decisions(c *call) (all []string) {
	for _, e := range c.events.Events() {
		if e.Name == "FollowUpDecision" {
			all = append(all, string(e.Why))
		}
	}
	return all
}

func statusOf(err error) int {
	var refused *route.ProxyError
	if errors.As(err, &refused) {
		return refused.StatusCode
	}
	return 0
}

// secureHost is tlsHost for a.test, by HTTP/1.1.
func (w *world) secureHost() {
	w.t.Helper()
	w.tlsHost("a.test", "192.0.2.1", &tls.Config{Certificates: []tls.Certificate{testAuthority().issue("a.test")}}, hello)
}

// proxyNamed is an HTTP proxy of the harness's port.
func proxyNamed(host string) proxy.Proxy { return proxy.Proxy{Type: proxy.HTTP, Host: host, Port: 80} }
