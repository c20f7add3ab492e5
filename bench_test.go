package catena_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
)

// benchServer is the environment variable that makes the test binary a server: a
// process of its own, so that a client's allocations and CPU are its own. It
// does as little as a server can, so that what is measured is the client.
const benchServer = "CATENA_BENCH_SERVER"

const benchBody = "a small body, such as an API answers with in JSON..."

var benchResponse = fmt.Sprintf("HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Sun, 01 Nov 2026 10:00:00 GMT\r\n"+
	"Content-Type: text/plain\r\nContent-Length: %d\r\nConnection: keep-alive\r\n\r\n%s", len(benchBody), benchBody)

func init() {
	if os.Getenv(benchServer) != "" {
		serveBench()
	}
}

// serveBench answers every request head with the same response until its standard
// input ends.
func serveBench() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	serveConnections(l.(*net.TCPListener))
}

// startBenchServer starts the server process and returns its URL.
func startBenchServer(b testing.TB) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchServer+"=1", "GOMAXPROCS=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(addr) + "/"
}

type doer interface {
	Do(*http.Request) (*http.Response, error)
}

func newBenchClient(b testing.TB, opts ...catena.Option) *catena.Client {
	b.Helper()
	c, err := catena.New(opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// benchSockets are connections that are no client: they show what the same bytes
// cost, written and read, and so how far any client can get.
type benchSockets chan *benchSocket

type benchSocket struct {
	net.Conn
	response []byte
}

func newBenchSockets(b *testing.B, url string, n int) benchSockets {
	b.Helper()
	sockets := make(benchSockets, n)
	for range n {
		nc, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { nc.Close() })
		sockets <- &benchSocket{nc, make([]byte, len(benchResponse))}
	}
	return sockets
}

var benchRequest = []byte("GET / HTTP/1.1\r\nHost: 127.0.0.1:50000\r\n" +
	"Accept-Encoding: gzip\r\nConnection: Keep-Alive\r\nUser-Agent: bench\r\n\r\n")

func (s benchSockets) getOnce() error {
	socket := <-s
	defer func() { s <- socket }()
	if _, err := socket.Write(benchRequest); err != nil {
		return err
	}
	_, err := io.ReadFull(socket, socket.response)
	return err
}

// BenchmarkGet is small GETs over loopback HTTP/1.1 on pooled connections, the
// request made once for each caller: catena, with interceptors and a listener
// too, against net/http and against the bare sockets.
func BenchmarkGet(b *testing.B) {
	url := startBenchServer(b)
	pass := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) { return c.Proceed(c.Request()) })
	var ten []chain.Interceptor
	for range 10 {
		ten = append(ten, pass)
	}
	clients := []struct {
		name   string
		client func(b *testing.B) doer
	}{
		{"nethttp", func(b *testing.B) doer {
			t := &http.Transport{MaxIdleConnsPerHost: 256, MaxIdleConns: 256}
			b.Cleanup(t.CloseIdleConnections)
			return &http.Client{Transport: t}
		}},
		{"catena", func(b *testing.B) doer { return newBenchClient(b) }},
		{"catena-10-interceptors-listener", func(b *testing.B) doer {
			return newBenchClient(b, catena.WithInterceptor(ten...), catena.WithEventListener(event.NopListener{}))
		}},
	}
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d/socket", callers), func(b *testing.B) {
			sockets := newBenchSockets(b, url, callers)
			b.ReportAllocs()
			parallel(b, callers, sockets.getOnce)
		})
		for _, c := range clients {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, c.name), func(b *testing.B) {
				client := c.client(b)
				b.ReportAllocs()
				parallel(b, callers, func() error { return getOnce(client, url) })
			})
		}
	}
}

// parallel shares b.N calls of f between callers goroutines.
func parallel(b *testing.B, callers int, f func() error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	errs := make(chan error, callers)
	before := processCPU()
	b.ResetTimer()
	for range callers {
		go func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processCPU()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func getOnce(client doer, url string) error {
	req, err := http.NewRequestWithContext(context.Background(), "GET", url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}

// BenchmarkAllocs counts what one pooled GET allocates, from Do to the body's
// end, without the request's construction.
func BenchmarkAllocs(b *testing.B) {
	url := startBenchServer(b)
	client := newBenchClient(b)
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 512)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = resp.Body.Read(buf)
		}
		resp.Body.Close()
		if err != io.EOF {
			b.Fatal(err)
		}
	}
}
