package catena_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/catena-http/catena/proxy"
)

// The proxies of a world, by name and address.
const (
	proxyHost  = other // has a certificate
	proxyAddr  = "192.0.2.2:3128"
	secondHost = "second.test"
	secondAddr = "192.0.2.5:3128"
)

// The answers of a proxy.
const (
	tunnelOpen   = "HTTP/1.1 200 Connection established\r\n\r\n"
	tunnelDenied = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"gate\"\r\n"
	deniedKept   = tunnelDenied + "Content-Length: 2\r\n\r\nno"
	deniedClosed = tunnelDenied + "Connection: close\r\nContent-Length: 2\r\n\r\nno"
	badGateway   = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\ndown"
)

// httpProxy is a proxy of a world. It answers the nth CONNECT, of all sockets, with
// answers[n], the last one again and again, and leads where it opens a tunnel.
type httpProxy struct {
	w       *world
	answers []string
	secure  bool

	mu   sync.Mutex
	asks []string // the heads of what it was asked
}

// proxy starts a proxy at addr.
func (w *world) proxy(addr string, secure bool, answers ...string) *httpProxy {
	w.Helper()
	p := &httpProxy{w: w, answers: answers, secure: secure}
	w.gate(addr, func(c net.Conn) {
		if secure {
			c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{testCertificate()}})
			defer c.Close()
		}
		p.serve(c)
	})
	return p
}

// gate lets talk run for every connection to addr.
func (w *world) gate(addr string, talk func(c net.Conn)) {
	w.Helper()
	w.net.AddHost(secondHost, "192.0.2.5")
	l, err := w.net.Listen(addr)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with talk
				defer c.Close()
				talk(c)
			}()
		}
	}()
}

func (p *httpProxy) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		head, err := headOf(r)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.asks = append(p.asks, head)
		answer := p.answers[min(len(p.asks), len(p.answers))-1]
		p.mu.Unlock()
		method, rest, _ := strings.Cut(head, " ")
		target, _, _ := strings.Cut(rest, " ")
		open := method == "CONNECT" && strings.HasPrefix(answer, "HTTP/1.1 2")
		if open {
			p.w.lead(c, r, target, answer)
			return
		}
		if _, err := io.WriteString(c, answer); err != nil || strings.Contains(answer, "Connection: close") {
			return
		}
	}
}

// lead says that the way is open, once it is, and copies between c and target.
func (w *world) lead(c net.Conn, r io.Reader, target, ready string) {
	to, err := w.net.DialContext(context.Background(), "tcp", target)
	if err != nil {
		return
	}
	defer to.Close()
	if _, err := io.WriteString(c, ready); err != nil {
		return
	}
	go func() { // ends with the two connections
		io.Copy(to, r)
		to.Close()
	}()
	io.Copy(c, to)
}

// socks5 starts a SOCKS5 proxy at addr that wants no credentials. It tells the names
// that it was asked for.
func (w *world) socks5(addr string, asked func(target string)) {
	w.Helper()
	w.gate(addr, func(c net.Conn) {
		b := make([]byte, 256)
		io.ReadFull(c, b[:2])
		io.ReadFull(c, b[:b[1]])
		c.Write([]byte{5, 0})
		io.ReadFull(c, b[:5])
		if b[3] != 3 {
			c.Write([]byte{5, 8, 0, 1, 0, 0, 0, 0, 0, 0})
			return
		}
		n := int(b[4])
		io.ReadFull(c, b[:n+2])
		target := string(b[:n]) + ":8080"
		if binary.BigEndian.Uint16(b[n:]) != 8080 {
			return
		}
		asked(target)
		w.lead(c, c, target, string([]byte{5, 0, 0, 1, 192, 0, 2, 1, 0, 80}))
	})
}

func headOf(r *bufio.Reader) (string, error) {
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

func proxyAt(t proxy.Type, host string) proxy.Proxy {
	return proxy.Proxy{Type: t, Host: host, Port: 3128}
}

// hostSelector is a proxy for each host, and one for "" that the others have.
type hostSelector map[string]proxy.Proxy

func (s hostSelector) Select(_ context.Context, u *url.URL) ([]proxy.Proxy, error) {
	if p, ok := s[u.Hostname()]; ok {
		return []proxy.Proxy{p}, nil
	}
	return []proxy.Proxy{s[""]}, nil
}

func (hostSelector) ConnectFailed(*url.URL, proxy.Proxy, error) {}
