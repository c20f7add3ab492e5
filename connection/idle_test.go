package connection

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/catena-http/catena/route"
)

// idleServer makes the test binary a server of its own, so that its memory is not
// the client's.
const idleServer = "CATENA_TEST_IDLE_SERVER"

// serveIdle answers one request a connection and keeps it. It ends with stdin.
func serveIdle() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				r := bufio.NewReader(c)
				for {
					if _, err := http.ReadRequest(r); err != nil {
						return
					}
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello from ")
				}
			}()
		}
	}()
	io.WriteString(os.Stdout, l.Addr().String()+"\n")
	io.Copy(io.Discard, os.Stdin)
}

// startIdleServer is the address of a server in another process.
func startIdleServer(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), idleServer+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

// An idle cleartext connection costs little memory and no goroutine.
func TestIdleConnectionIsSmall(t *testing.T) {
	const (
		connections = 2000
		limit       = 2 << 10 // bytes of heap and stack, each
	)
	addr := startIdleServer(t)
	w := newWorld(t, PoolOptions{MaxIdle: connections, MaxIdlePerAddress: connections}, func(n *route.Network) {
		n.DialContext, n.ConnectionListener = nil, nil
	})
	open := func(n int) {
		calls := make([]*call, n)
		for i := range calls {
			calls[i] = w.hold("http://" + addr + "/")
		}
		for _, c := range calls {
			c.finish()
		}
	}
	open(1) // what is needed once
	before, goroutines := inUse(), runtime.NumGoroutine()
	open(connections)
	w.expect(connections, connections)
	each := (int64(inUse()) - int64(before)) / connections
	t.Logf("%d bytes a connection", each)
	if each > limit {
		t.Errorf("an idle connection costs %d bytes, more than %d", each, limit)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 10 {
		t.Errorf("idle connections have %d goroutines", more)
	}
}

// inUse is the heap and the stacks that are in use after a collection.
func inUse() uint64 {
	var m runtime.MemStats
	for range 3 { // pools of buffers are emptied by the second one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
