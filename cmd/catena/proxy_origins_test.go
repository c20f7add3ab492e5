//go:build unix

package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// origin is a server of our own, behind real proxies, that is called by one protocol.
type origin struct {
	name      string
	url       string // of 127.0.0.1, without a path
	secure    bool
	protocol  string   // what a connection to it speaks
	protocols []string // what a client of it offers

	mu       sync.Mutex // guards what follows
	requests int
	strays   []string // fields that are for proxies only, and came here
}

// proxied are the origins, one for each protocol.
type proxied struct {
	roots *x509.CertPool
	all   []*origin
	http  *origin
	https *origin // by HTTP/1.1
}

// startProxied starts the origins, on 127.0.0.1 and, where there is one, on ::1:
// proxies differ in which address of localhost they take.
func startProxied(t *testing.T) *proxied {
	t.Helper()
	certificate, err := selfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	o := &proxied{roots: x509.NewCertPool()}
	o.roots.AddCert(certificate.Leaf)
	h1, h2 := []string{"http/1.1"}, []string{"h2", "http/1.1"}
	o.all = []*origin{
		{name: "http", protocol: "http/1.1", protocols: h2},
		{name: "https by http1", secure: true, protocol: "http/1.1", protocols: h1},
		{name: "https by http2", secure: true, protocol: "h2", protocols: h2},
		{name: "http2 in clear text", protocol: "h2c", protocols: []string{"h2c"}},
	}
	o.http, o.https = o.all[0], o.all[1]
	for _, origin := range o.all {
		origin.start(t, certificate)
	}
	return o
}

func (o *origin) start(t *testing.T, certificate tls.Certificate) {
	t.Helper()
	s := &http.Server{
		Handler:   o,
		Protocols: &http.Protocols{},
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	s.Protocols.SetHTTP1(o.protocol == "http/1.1")
	s.Protocols.SetHTTP2(o.protocol == "h2")
	s.Protocols.SetUnencryptedHTTP2(o.protocol == "h2c")
	t.Cleanup(func() { s.Close() })
	serve := func(l net.Listener) { // ends with the server
		if o.secure {
			s.ServeTLS(l, "", "")
		} else {
			s.Serve(l)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.url = "http://" + l.Addr().String()
	if o.secure {
		o.url = "https://" + l.Addr().String()
	}
	go serve(l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if l, err := net.Listen("tcp", "[::1]:"+port); err == nil {
		go serve(l)
	}
}

// byName is the origin's URL with a name in it, which somebody has to look up.
func (o *origin) byName() string { return strings.Replace(o.url, "127.0.0.1", "localhost", 1) }

// ServeHTTP answers a POST with the checksum of what was sent.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.requests++
	for _, name := range []string{"Proxy-Authorization", "Proxy-Connection"} {
		if r.Header[name] != nil {
			o.strays = append(o.strays, name)
		}
	}
	o.mu.Unlock()
	if r.Method != http.MethodPost {
		io.WriteString(w, "small\n")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	io.WriteString(w, sum(body))
}

// seen returns how many requests came since it was last asked, and the strays.
func (o *origin) seen() (requests int, strays []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	requests, strays = o.requests, o.strays
	o.requests, o.strays = 0, nil
	return requests, strays
}
