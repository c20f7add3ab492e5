package catena_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// The ways to speak HTTP that scenarios run over.
const (
	h1     = "h1"     // HTTP/1.1 in cleartext
	https1 = "https1" // HTTP/1.1 over TLS
	h2     = "h2"     // HTTP/2 over TLS
	h2c    = "h2c"    // HTTP/2 by prior knowledge
)

var (
	allProtocols = []string{https1, h2, h1, h2c}
	onHTTP1      = []string{https1, h1}
	onHTTP2      = []string{h2, h2c}
	overTLS      = []string{https1, h2}
)

// The names and addresses of a world; every server listens on port 8080.
const (
	origin     = "origin.test" // 192.0.2.1
	other      = "other.test"  // 192.0.2.2
	twin       = "twin.test"   // 192.0.2.3 and 192.0.2.4
	originAddr = "192.0.2.1:8080"
	twinAddr1  = "192.0.2.3:8080"
	twinAddr2  = "192.0.2.4:8080"
	latency    = 10 * time.Millisecond // one way
)

// world is a client, the servers it calls and the network between them, in a
// synctest bubble.
type world struct {
	*testing.T
	protocol string
	net      *simnet.Network
	client   *catena.Client // as the scenario wants it, derived from root
	root     *catena.Client
	calls    *event.Recorder
	conns    *event.ConnectionRecorder
	lasting  context.Context // of the servers' handlers
	end      context.CancelFunc
}

// newWorld is a world without a server. It ends with the test: nothing may be
// left open then.
func newWorld(t *testing.T, protocol string, opts ...catena.Option) *world {
	t.Helper()
	w := &world{T: t, protocol: protocol, calls: event.NewRecorder(), conns: event.NewConnectionRecorder()}
	w.lasting, w.end = context.WithCancel(t.Context())
	// The window takes all that HTTP/2's flow control lets through: its engine
	// holds a mutex while it writes, and a wait for a mutex stops a bubble's clock.
	w.net = simnet.New(simnet.WithLatency(latency), simnet.WithWindow(4<<20))
	w.net.AddHost(origin, "192.0.2.1")
	w.net.AddHost(other, "192.0.2.2")
	w.net.AddHost(twin, "192.0.2.3", "192.0.2.4")
	all := []catena.Option{
		catena.WithDNS(w.net), catena.WithDialContext(w.net.DialContext),
		catena.WithProxy(proxy.Proxy{}),
		catena.WithTLSConfig(&tls.Config{RootCAs: testRoots()}),
		catena.WithEventListener(w.calls), catena.WithConnectionListener(w.conns),
	}
	switch protocol {
	case https1:
		all = append(all, catena.WithProtocols("http/1.1"))
	case h2c:
		all = append(all, catena.WithProtocols("h2c"))
	}
	client, err := catena.New(append(all, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	w.client, w.root = client, client
	return w
}

// close ends the world and checks that the client has left nothing open.
func (w *world) close() {
	w.Helper()
	w.root.Close()
	if n := w.client.Pool().ConnectionCount(); n != 0 {
		w.Errorf("the pool still has %d connections", n)
	}
	w.end()
	time.Sleep(10 * time.Second) // for servers that sleep, net/http's own among them
	w.net.Close()
}

func (w *world) secure() bool { return w.protocol == https1 || w.protocol == h2 }

// listen opens the port of all servers.
func (w *world) listen() net.Listener {
	w.Helper()
	l, err := w.net.Listen(":8080")
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// serve lets handler answer for every host, in the world's protocol. A request's
// context ends with the world at the latest.
func (w *world) serve(handler http.HandlerFunc) {
	w.Helper()
	srv := &http.Server{Handler: handler, Protocols: &http.Protocols{}, ErrorLog: discardLog}
	l := w.listen()
	srv.Protocols.SetHTTP1(w.protocol == https1 || w.protocol == h1)
	srv.Protocols.SetHTTP2(w.protocol == h2)
	srv.Protocols.SetUnencryptedHTTP2(w.protocol == h2c)
	srv.BaseContext = func(net.Listener) context.Context { return w.lasting }
	srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{testCertificate()}}
	if w.secure() {
		go srv.ServeTLS(l, "", "") // ends with Close
	} else {
		go srv.Serve(l) // ends with Close
	}
	w.Cleanup(func() { srv.Close() })
}

// peer lets talk run for every connection, which is closed when it returns.
func (w *world) peer(talk func(c net.Conn)) {
	w.Helper()
	l := w.listen()
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

// swallow reads until the client closes and says nothing.
func swallow(c net.Conn) { io.Copy(io.Discard, c) }

// secured is the server's side of c, over TLS where the world's protocol is.
func (w *world) secured(c net.Conn) net.Conn {
	if !w.secure() {
		return c
	}
	return tls.Server(c, &tls.Config{Certificates: []tls.Certificate{testCertificate()}, NextProtos: w.alpn()})
}

func (w *world) alpn() []string {
	if w.protocol == h2 {
		return []string{"h2"}
	}
	return []string{"http/1.1"}
}

// url is that of a path on a host, in the world's scheme.
func (w *world) url(host, path string) string {
	scheme := "http://"
	if w.secure() {
		scheme = "https://"
	}
	return scheme + host + ":8080" + path
}

// request is one to origin; body may be nil.
func (w *world) request(method, path string, body io.Reader) *http.Request {
	w.Helper()
	return w.requestTo(method, w.url(origin, path), body)
}

func (w *world) requestTo(method, url string, body io.Reader) *http.Request {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, url, body)
	if err != nil {
		w.Fatal(err)
	}
	return req
}

// finish executes a call and reads its body to the end.
func finish(call *catena.Call) (body string, err error) {
	resp, err := call.Execute()
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

// do is finish for a request that has to succeed with a body.
func (w *world) do(req *http.Request, want string, opts ...catena.CallOption) {
	w.Helper()
	got, err := finish(w.client.NewCall(req, opts...))
	if err != nil {
		w.Errorf("%s %s: %v", req.Method, req.URL, err)
	} else if got != want {
		w.Errorf("%s %s: body %q, want %q", req.Method, req.URL, got, want)
	}
}

// get is do for a GET of origin.
func (w *world) get(path, want string) {
	w.Helper()
	w.do(w.request("GET", path, nil), want)
}

// fail is finish for a request that has to fail, with its error.
func (w *world) fail(req *http.Request, opts ...catena.CallOption) error {
	w.Helper()
	body, err := finish(w.client.NewCall(req, opts...))
	if err == nil {
		w.Errorf("%s %s: no error, body %q", req.Method, req.URL, body)
	}
	return err
}

// hidden is a body of which nothing is known: neither its length nor how to
// begin anew.
type hidden struct{ io.Reader }

func bodyOf(text string) io.Reader { return hidden{strings.NewReader(text)} }

// The certificate of all servers of a world, valid in a bubble's year 2000 too.
var testCertificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "catena tests"},
		NotBefore:    time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		DNSNames:     []string{origin, other, twin},
		IPAddresses:  []net.IP{net.IPv4(192, 0, 2, 1)},
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
})

var testRoots = sync.OnceValue(func() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(testCertificate().Leaf)
	return roots
})
