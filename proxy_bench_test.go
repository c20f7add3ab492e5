package catena_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/proxy"
)

// BenchmarkProxied compares pooled calls through a proxy with direct ones to the same
// server, which takes both, in turns: the server's and the machine's moods fall on
// both alike. "ratio" is the median, over the turns, of the time of proxied calls by that
// of direct ones, ns/op the mean time of a proxied call.
func BenchmarkProxied(b *testing.B) {
	for _, bench := range []struct {
		name   string
		scheme string
		proxy  proxy.Type
	}{
		{"plain", "http", proxy.HTTP},
		{"plain over TLS", "http", proxy.HTTPS}, // compared with https
		{"tunnel", "https", proxy.HTTP},
		{"tunnel over TLS", "https", proxy.HTTPS}, // encrypts twice
	} {
		b.Run(bench.name, func(b *testing.B) {
			addr := serveProxied(b)
			port, _ := strconv.Atoi(addr.Port())
			opts := []catena.Option{
				catena.WithProtocols("http/1.1"),
				catena.WithTLSConfig(&tls.Config{RootCAs: testRoots(), ServerName: origin}),
				catena.WithProxyTLSConfig(&tls.Config{RootCAs: testRoots(), ServerName: origin}),
			}
			direct := newBenchClient(b, opts...)
			proxied := newBenchClient(b, append(opts, catena.WithProxy(proxy.Proxy{Type: bench.proxy, Host: "127.0.0.1", Port: port}))...)
			url := bench.scheme + "://" + addr.Host + "/"
			baseline := url
			if bench.proxy == proxy.HTTPS {
				baseline = "https://" + addr.Host + "/"
			}
			var spent time.Duration
			var ratios []float64
			const turn = 32
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				for range turn {
					fetch(b, direct, baseline)
				}
				between := time.Now()
				for range turn {
					fetch(b, proxied, url)
				}
				took := time.Since(between)
				spent += took
				ratios = append(ratios, float64(took)/float64(between.Sub(start)))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*turn), "ns/op")
			if n := proxied.Pool().ConnectionCount(); n != 1 {
				b.Errorf("%d connections", n)
			}
		})
	}
}

func fetch(b *testing.B, client *catena.Client, url string) {
	resp, err := client.Get(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// serveProxied is an origin in clear text and over TLS, and a proxy that leads to
// itself, on one port.
func serveProxied(b *testing.B) *url.URL {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the client's side
				defer c.Close()
				answerLayers(c)
			}()
		}
	}()
	return &url.URL{Host: l.Addr().String()}
}

// answerLayers answers every request on c, in whatever layers of TLS and tunnels it
// comes.
func answerLayers(c net.Conn) {
	r := bufio.NewReader(c)
	const handshake = 22
	if first, err := r.Peek(1); err != nil {
		return
	} else if first[0] == handshake {
		answerLayers(tls.Server(readAhead{c, r}, &tls.Config{Certificates: []tls.Certificate{testCertificate()}}))
		return
	}
	for {
		head, err := headOf(r)
		if err != nil {
			return
		}
		if head[:4] == "CONN" {
			io.WriteString(c, tunnelOpen)
			answerLayers(readAhead{c, r})
			return
		}
		if _, err := io.WriteString(c, benchResponse); err != nil {
			return
		}
	}
}

// readAhead is a connection of which some has been read into r.
type readAhead struct {
	net.Conn
	r *bufio.Reader
}

func (c readAhead) Read(p []byte) (int, error) { return c.r.Read(p) }
