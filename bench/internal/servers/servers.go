package servers

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// Addrs are the addresses of a server's listeners by protocol: "h1", "h1-tls",
// "h2c" and "h2-tls".
type Addrs map[string]string

// The paths that a server answers.
const (
	SmallPath   = "/small"   // any method: 53 bytes; a small body is read and thrown away
	FirstPath   = "/first"   // GET: the same to a connection's first request; later ones get 409
	BodyPath    = "/body"    // GET: the file
	DiscardPath = "/discard" // POST of any size: read and thrown away (the Go server's only)
)

// small is a body such as an API answers with.
const small = `{"id":53,"name":"a small body","as":"an API answers"}`

// process is a server that was started. stop tells it to end.
type process struct {
	cmd  *exec.Cmd
	stop func() error
	done chan struct{} // closed when it has ended, after err is set
	err  error
}

func start(cmd *exec.Cmd, stop func() error) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &process{cmd: cmd, stop: stop, done: make(chan struct{})}
	go func() { // ends with the process
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Stop ends the process, by its id, and waits for it.
func (p *process) Stop() {
	p.stop()
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.cmd.Process.Signal(syscall.SIGKILL)
		<-p.done
	}
}

// await waits until every address accepts a connection.
func (p *process) await(ctx context.Context, addrs Addrs) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, addr := range addrs {
		for {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", addr)
			if err == nil {
				conn.Close()
				break
			}
			select {
			case <-p.done:
				return fmt.Errorf("%s ended at once: %w", p.cmd.Path, p.err)
			case <-ctx.Done():
				return fmt.Errorf("%s does not accept at %s: %w", p.cmd.Path, addr, err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// freeAddrs finds a free port for each protocol.
func freeAddrs(protocols []string) (Addrs, error) {
	addrs := Addrs{}
	for _, proto := range protocols {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all stay open until all are found
		addrs[proto] = l.Addr().String()
	}
	return addrs, nil
}

// pinned makes args a command that runs on the last processor alone, where
// taskset exists and there is more than one.
func pinned(ctx context.Context, cpus int, args ...string) *exec.Cmd {
	if taskset, err := exec.LookPath("taskset"); err == nil && cpus > 1 {
		args = append([]string{taskset, "-c", strconv.Itoa(cpus - 1)}, args...)
	}
	return exec.CommandContext(ctx, args[0], args[1:]...)
}
