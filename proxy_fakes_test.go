package catena_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena/proxy"
)

// fakeNet leads from the addresses of documentation to listeners on loopback, and
// remembers what the client under test did with it.
type fakeNet struct {
	routes map[string]string       // host:port to a listener's address
	names  map[string][]netip.Addr // the client's DNS; the proxies resolve by routes

	lookups, dials transcript
}

// transcript is what was said, in order. Its methods may be called at any time.
type transcript struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (t *transcript) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func (t *transcript) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}

// LookupNetIP is the client's DNS.
func (n *fakeNet) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.lookups.add("%s", host)
	if addrs, ok := n.names[host]; ok {
		return addrs, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// dial is the client's.
func (n *fakeNet) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.dials.add("%s", addr)
	if _, err := netip.ParseAddrPort(addr); err != nil {
		return nil, fmt.Errorf("the client dials a name: %w", err)
	}
	return n.lead(ctx, network, addr)
}

func (n *fakeNet) lead(ctx context.Context, network, addr string) (net.Conn, error) {
	to, ok := n.routes[addr]
	if !ok {
		return nil, fmt.Errorf("there is nothing at %s", addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, to)
}

// fakeProxy is a proxy of one type. It remembers what it is told, in words.
type fakeProxy struct {
	kind  proxy.Type
	net   *fakeNet
	login string // the user and password it wants, "a:b"; "": none
	told  transcript
}

// start lets p listen on loopback until the test ends, and returns its address.
func (p *fakeProxy) start(t *testing.T, certificate tls.Certificate) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if p.kind == proxy.HTTPS {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}
	var talks sync.WaitGroup
	talks.Go(func() {
		for { // ends with the listener
			c, err := l.Accept()
			if err != nil {
				return
			}
			talks.Go(func() { // ends with the client's connection
				defer c.Close()
				p.talk(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		talks.Wait()
	})
	return l.Addr().String()
}

func (p *fakeProxy) talk(c net.Conn) {
	switch p.kind {
	case proxy.HTTP, proxy.HTTPS:
		p.talkHTTP(c)
	case proxy.SOCKS4, proxy.SOCKS4A:
		p.talkSOCKS4(c)
	case proxy.SOCKS5:
		p.talkSOCKS5(c)
	}
}

func (p *fakeProxy) talkHTTP(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		p.told.add("%s", headText(req))
		switch {
		case p.login != "" && basicLogin(req.Header.Get("Proxy-Authorization")) != p.login:
			io.WriteString(c, "HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic realm=\"proxy\"\r\nContent-Length: 0\r\n\r\n")
		case req.Method == http.MethodConnect:
			p.tunnel(c, r, req.RequestURI, "HTTP/1.1 200 Go on\r\n\r\n")
			return
		default:
			if p.forward(c, req) != nil {
				return
			}
		}
	}
}

// forward sends req on, without what is the proxy's, and the response back.
func (p *fakeProxy) forward(c net.Conn, req *http.Request) error {
	port := req.URL.Port()
	if port == "" {
		port = "80"
	}
	to, err := p.net.lead(context.Background(), "tcp", net.JoinHostPort(req.URL.Hostname(), port))
	if err != nil {
		return err
	}
	defer to.Close()
	req.Header.Del("Proxy-Authorization")
	if err := req.Write(to); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(to), req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return resp.Write(c)
}

// The numbers of the SOCKS protocols that the fakes use.
const (
	socks4Granted, socks4OtherUser          = 90, 93
	socks5NoAuth, socks5Password            = 0, 2
	socks5IPv4, socks5Name, socks5IPv6      = 1, 3, 4
	socks5NoMethod, socks5Denied       byte = 0xff, 1
)

func (p *fakeProxy) talkSOCKS4(c net.Conn) {
	r := bufio.NewReader(c)
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil {
		return
	}
	user, _ := r.ReadString(0)
	host := net.IP(head[4:8]).String()
	what := "address"
	if bytes.Equal(head[4:7], []byte{0, 0, 0}) && head[7] != 0 {
		host, _ = r.ReadString(0)
		host, what = strings.TrimSuffix(host, "\x00"), "name"
	}
	user = strings.TrimSuffix(user, "\x00")
	target := net.JoinHostPort(host, fmt.Sprint(int(head[2])<<8|int(head[3])))
	p.told.add("version %d, command %d, user %q, %s %s", head[0], head[1], user, what, target)
	reply := []byte{0, socks4Granted, 0, 0, 0, 0, 0, 0}
	if wanted, _, _ := strings.Cut(p.login, ":"); wanted != "" && wanted != user {
		reply[1] = socks4OtherUser
		c.Write(reply)
		return
	}
	p.tunnel(c, r, target, string(reply))
}

func (p *fakeProxy) talkSOCKS5(c net.Conn) {
	r := bufio.NewReader(c)
	b := make([]byte, 260)
	read := func(n int) []byte {
		if _, err := io.ReadFull(r, b[:n]); err != nil {
			clear(b)
		}
		return b[:n]
	}
	greeting := read(2)
	version := greeting[0]
	methods := bytes.Clone(read(int(greeting[1])))
	p.told.add("version %d, methods %d", version, methods)
	method := byte(socks5NoAuth)
	if p.login != "" {
		method = socks5Password
	}
	if !bytes.Contains(methods, []byte{method}) {
		c.Write([]byte{5, socks5NoMethod})
		return
	}
	c.Write([]byte{5, method})
	if method == socks5Password {
		user := string(read(int(read(2)[1])))
		login := user + ":" + string(read(int(read(1)[0])))
		p.told.add("login %s", login)
		if login != p.login {
			c.Write([]byte{1, socks5Denied})
			return
		}
		c.Write([]byte{1, 0})
	}
	head := read(4)
	command, kind := head[1], head[3]
	var host, what string
	switch kind {
	case socks5IPv4:
		host, what = net.IP(read(4)).String(), "address"
	case socks5IPv6:
		host, what = net.IP(read(16)).String(), "address"
	case socks5Name:
		host, what = string(read(int(read(1)[0]))), "name"
	}
	port := read(2)
	target := net.JoinHostPort(host, fmt.Sprint(int(port[0])<<8|int(port[1])))
	p.told.add("command %d, %s %s", command, what, target)
	p.tunnel(c, r, target, "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
}

// tunnel says that the way is open and copies between c and target. It tells what it
// can make of the client's first bytes.
func (p *fakeProxy) tunnel(c net.Conn, r *bufio.Reader, target, ready string) {
	to, err := p.net.lead(context.Background(), "tcp", target)
	if err != nil {
		p.told.add("%v", err)
		return
	}
	defer to.Close()
	if _, err := io.WriteString(c, ready); err != nil {
		return
	}
	var copies sync.WaitGroup
	copies.Go(func() { // ends with the client's connection
		defer to.Close()
		begin, err := r.Peek(3)
		if err != nil {
			return
		}
		switch {
		case begin[0] == 0x16: // a TLS record of a handshake
			p.told.add("TLS")
		case string(begin) == "PRI":
			p.told.add("HTTP/2 in clear text")
		default:
			p.told.add("HTTP/1.1 in clear text")
		}
		io.Copy(to, r)
	})
	io.Copy(c, to)
	c.Close()
	copies.Wait()
}

// headText is a request in words: its first line without the version, and its
// secrets. Host is in it where it is not the target's.
func headText(req *http.Request) string {
	parts := []string{req.Method + " " + req.RequestURI}
	if req.URL.Host != req.Host {
		parts = append(parts, "Host "+req.Host)
	}
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
		for _, value := range req.Header[name] {
			if login := basicLogin(value); login != "" {
				value = login
			}
			parts = append(parts, name+" "+value)
		}
	}
	return strings.Join(parts, ", ")
}

// basicLogin is the "user:password" of Basic credentials, "" of others.
func basicLogin(value string) string {
	encoded, ok := strings.CutPrefix(value, "Basic ")
	login, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return ""
	}
	return string(login)
}

// certificateFor makes a certificate for names and addresses, and the roots that
// trust it.
func certificateFor(t *testing.T, hosts ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:         true, BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, roots
}
