package http2_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/connection/http2/internal/oracle"
	"github.com/catena-http/catena/internal/wire"
)

// A contender runs whole exchanges on one connection.
type contender struct {
	name string
	// connect returns how to run an exchange of req with a body of size bytes
	// (0: none), and how to end the connection.
	connect func(tb testing.TB, addr string, secure bool) (func(req *http.Request, body io.Reader, size int64) error, func())
}

var contenders = []contender{
	{"mux", func(tb testing.TB, addr string, secure bool) (func(*http.Request, io.Reader, int64) error, func()) {
		c, err := http2.NewConn(benchDial(tb, addr, secure), http2.Options{Secure: secure})
		if err != nil {
			tb.Fatal(err)
		}
		return streams(c, c.NewStream), func() { c.Close() }
	}},
	{"xnet", func(tb testing.TB, addr string, secure bool) (func(*http.Request, io.Reader, int64) error, func()) {
		c, err := oracle.NewConn(benchDial(tb, addr, secure), oracle.Options{Secure: secure})
		if err != nil {
			tb.Fatal(err)
		}
		return streams(c, c.NewStream), func() { c.Close() }
	}},
	{"nethttp", func(tb testing.TB, addr string, secure bool) (func(*http.Request, io.Reader, int64) error, func()) {
		tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
		if secure {
			tr.Protocols.SetHTTP2(true)
			tr.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
			tr.ForceAttemptHTTP2 = true
		} else {
			tr.Protocols.SetUnencryptedHTTP2(true)
		}
		tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { return net.Dial(network, addr) }
		return func(req *http.Request, body io.Reader, size int64) error {
			if size > 0 {
				req = req.Clone(req.Context())
				req.Body, req.ContentLength = io.NopCloser(body), size
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		}, tr.CloseIdleConnections
	}},
}

// codec is what both implementations of the stream have.
type codec interface {
	WriteRequestHeaders(*http.Request, int64) error
	io.ReaderFrom
	FinishRequest(http.Header) error
	ReadResponseHeaders(func()) (*http.Response, error)
	End()
}

// streams runs each exchange on a stream of c of its own.
func streams[S codec](c interface{ Reserve() bool }, open func(wire.Exchange) S) func(*http.Request, io.Reader, int64) error {
	return func(req *http.Request, body io.Reader, size int64) error {
		if !c.Reserve() {
			return errors.New("no slot")
		}
		return runCodec(open(terms), req, body, size)
	}
}

func runCodec(s codec, req *http.Request, body io.Reader, size int64) error {
	defer s.End()
	if err := s.WriteRequestHeaders(req, size); err != nil {
		return err
	}
	if size > 0 {
		if _, err := s.ReadFrom(body); err != nil {
			return err
		}
	}
	if err := s.FinishRequest(nil); err != nil {
		return err
	}
	resp, err := s.ReadResponseHeaders(nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func benchDial(tb testing.TB, addr string, secure bool) net.Conn {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	if secure {
		return tls.Client(http2.Gather(nc), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	}
	return nc
}

func benchAddr(addrs [2 * benchPorts]string, mode int, secure bool) (addr, url string) {
	if secure {
		return addrs[mode+benchPorts], "https://x.test/small?a=b"
	}
	return addrs[mode], "http://x.test/small?a=b"
}

// eachContender runs f for each in both schemes.
func eachContender(b *testing.B, f func(b *testing.B, c contender, secure bool)) {
	for _, secure := range []bool{false, true} {
		for _, c := range contenders {
			b.Run(map[bool]string{false: "clear/", true: "tls/"}[secure]+c.name, func(b *testing.B) { f(b, c, secure) })
		}
	}
}

func BenchmarkSmallGet(b *testing.B) {
	addrs := startBenchServer(b)
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			eachContender(b, func(b *testing.B, c contender, secure bool) {
				addr, url := benchAddr(addrs, benchSmall, secure)
				exchange, end := c.connect(b, addr, secure)
				defer end()
				runCallers(b, callers, b.N, exchange, url)
			})
		})
	}
}

// runCallers runs n small exchanges by a number of callers.
func runCallers(b *testing.B, callers, n int, exchange func(*http.Request, io.Reader, int64) error, url string) {
	one := func() error {
		req, err := http.NewRequest("GET", url, nil)
		if err != nil {
			return err
		}
		req.Header["User-Agent"] = []string{"bench"}
		req.Header["Accept"] = []string{"*/*"}
		return exchange(req, nil, 0)
	}
	if err := one(); err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	defer cpu(b)()
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := one(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkDownload(b *testing.B) {
	addrs := startBenchServer(b)
	eachContender(b, func(b *testing.B, c contender, secure bool) {
		addr, url := benchAddr(addrs, benchDown, secure)
		exchange, end := c.connect(b, addr, secure)
		defer end()
		b.SetBytes(benchLarge)
		defer cpu(b)()
		for b.Loop() {
			req, _ := http.NewRequest("GET", url, nil)
			if err := exchange(req, nil, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUpload(b *testing.B) {
	addrs := startBenchServer(b)
	eachContender(b, func(b *testing.B, c contender, secure bool) {
		addr, url := benchAddr(addrs, benchUp, secure)
		exchange, end := c.connect(b, addr, secure)
		defer end()
		b.SetBytes(benchLarge)
		defer cpu(b)()
		for b.Loop() {
			req, _ := http.NewRequest("POST", url, nil)
			if err := exchange(req, io.LimitReader(zeros{}, benchLarge), benchLarge); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// zeros is an endless reader of nothing much.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// cpu reports the processor time of this process for each operation: unlike the
// time on the clock it does not depend on the server's speed, or on others.
func cpu(b *testing.B) func() {
	before := cpuTime(b)
	return func() { b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkIdle tells what a connection costs that has carried an exchange and
// waits for the next.
func BenchmarkIdle(b *testing.B) {
	addrs := startBenchServer(b)
	for _, c := range contenders {
		b.Run(c.name, func(b *testing.B) {
			const conns = 300
			addr, url := benchAddr(addrs, benchSmall, false)
			for b.Loop() {
				before := inUse()
				for range conns {
					exchange, end := c.connect(b, addr, false)
					defer end()
					req, _ := http.NewRequest("GET", url, nil)
					if err := exchange(req, nil, 0); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(inUse()-before)/conns, "B/conn")
			}
		})
	}
}

// inUse is the memory in use: heap and stacks.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
