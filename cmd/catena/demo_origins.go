package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// The hosts of the demo. Only its own resolver knows them.
const (
	shopHost  = "shop.test"  // https, HTTP/2
	oldHost   = "old.test"   // http
	twinsHost = "twins.test" // http, at two addresses, the first of which is dead

	insideHost = "inside.test" // http; not even the resolver, a proxy alone knows it
)

// origins are the demo's servers, on loopback.
type origins struct {
	shop, plain string // the servers' ports
	roots       *x509.CertPool
	gate, socks int           // the proxies' ports
	slow        chan struct{} // has a value when a request for /slow has arrived
	servers     []io.Closer
}

func startOrigins() (*origins, error) {
	o := &origins{slow: make(chan struct{}, 1)}
	certificate, err := selfSigned(shopHost)
	if err != nil {
		return nil, err
	}
	o.roots = x509.NewCertPool()
	o.roots.AddCert(certificate.Leaf)
	secure := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}}
	for _, start := range []func() error{
		func() (err error) { o.shop, err = o.serve(o.shopHandler(), secure); return err },
		func() (err error) { o.plain, err = o.serve(o.plainHandler(), nil); return err },
		func() (err error) { o.gate, err = o.serveProxy(serveGate); return err },
		func() (err error) { o.socks, err = o.serveProxy(serveSOCKS5); return err },
	} {
		if err := start(); err != nil {
			o.close()
			return nil, err
		}
	}
	return o, nil
}

// serveProxy starts a proxy, which close ends, and returns its port.
func (o *origins) serveProxy(talk func(c net.Conn)) (port int, err error) {
	s, err := listen(talk)
	if err != nil {
		return 0, err
	}
	o.servers = append(o.servers, s)
	return s.port(), nil
}

// serve starts a server, which close ends, and returns its port.
func (o *origins) serve(h http.Handler, secure *tls.Config) (port string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("start a server for the demo: %w", err)
	}
	s := &http.Server{
		Handler:           h,
		TLSConfig:         secure,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	o.servers = append(o.servers, s)
	go func() { // ends with close
		if secure != nil {
			s.ServeTLS(l, "", "")
		} else {
			s.Serve(l)
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

func (o *origins) close() {
	for _, s := range o.servers {
		s.Close()
	}
}

func (o *origins) shopHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello over "+r.Proto+"\n")
	})
	mux.HandleFunc("GET /moved", func(w http.ResponseWriter, _ *http.Request) {
		redirect(w, "/hello", http.StatusFound)
	})
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "an order of %d bytes\n", n)
	})
	mux.HandleFunc("GET /slow", func(_ http.ResponseWriter, r *http.Request) {
		o.slow <- struct{}{}
		<-r.Context().Done()
	})
	return mux
}

func (o *origins) plainHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+oldHost+"/start", func(w http.ResponseWriter, _ *http.Request) {
		redirect(w, o.shopURL("/moved"), http.StatusMovedPermanently)
	})
	mux.HandleFunc("GET "+twinsHost+"/", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "the second address answers\n")
	})
	mux.HandleFunc("GET "+insideHost+"/", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "you are inside\n")
	})
	return mux
}

// redirect answers without a body, which http.Redirect has.
func redirect(w http.ResponseWriter, to string, code int) {
	w.Header().Set("Location", to)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(code)
}

func (o *origins) shopURL(path string) string  { return "https://" + shopHost + ":" + o.shop + path }
func (o *origins) oldURL(path string) string   { return "http://" + oldHost + ":" + o.plain + path }
func (o *origins) twinsURL(path string) string { return "http://" + twinsHost + ":" + o.plain + path }
func (o *origins) insideURL(path string) string {
	return "http://" + insideHost + ":" + o.plain + path
}

// lookup is the demo's DNS. The servers listen at 127.0.0.1 only, so ::1 is a
// dead address: refused, or without a way there.
func lookup(_ context.Context, _, host string) ([]netip.Addr, error) {
	live, dead := netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()
	switch host {
	case shopHost, oldHost, gateHost, socksHost:
		return []netip.Addr{live}, nil
	case twinsHost:
		return []netip.Addr{dead, live}, nil
	}
	return nil, &net.DNSError{Err: "the demo knows no such host", Name: host, IsNotFound: true}
}

// selfSigned is a certificate for host, a name or an IP address, that nobody
// trusts yet.
func selfSigned(host string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: host},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
