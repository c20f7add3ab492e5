//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// realPeer is a real server that a test starts on loopback. All its files are in a
// folder of the test's, and its logs are shown if the test fails.
type realPeer struct {
	binary, folder string
	CA             string // the file of its certificate, for 127.0.0.1; the key is in key.pem

	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

// newRealPeer is a peer that does not run yet. Without the command, of which
// scripts/test-peers knows the Debian package, the test is skipped; in CI it fails.
func newRealPeer(t *testing.T, command, debian string) *realPeer {
	t.Helper()
	p := &realPeer{binary: findPeer(t, command, debian), folder: t.TempDir()}
	// Some peers, started as root, serve as somebody else: the way to the folder is
	// opened for them.
	if err := os.Chmod(filepath.Dir(p.folder), 0o755); err != nil {
		t.Fatal(err)
	}
	certificate, err := selfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(certificate.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	key = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})
	p.CA = p.write(t, "cert.pem", cert)
	p.write(t, "key.pem", key)
	p.write(t, "both.pem", append(cert, key...))
	t.Cleanup(func() {
		if t.Failed() {
			p.showLogs(t)
		}
	})
	return p
}

func findPeer(t *testing.T, command, debian string) string {
	t.Helper()
	for _, folder := range []string{"", "/usr/sbin/", "/usr/local/sbin/"} {
		if path, err := exec.LookPath(folder + command); err == nil {
			return path
		}
	}
	missing := command + " is missing: install the Debian package " + debian + ", or run scripts/test-peers as root"
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// write writes a file of the peer's, which anybody may read.
func (p *realPeer) write(t *testing.T, name string, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(p.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// start runs the peer until the test ends, and returns when it listens at ports.
// configure is asked for them and for the arguments; a port that was free then may
// be taken when the peer gets there, so it may be asked again.
func (p *realPeer) start(t *testing.T, configure func() (ports, args []string)) {
	t.Helper()
	var err error
	for range 3 {
		ports, args := configure()
		if err = p.run(t, ports, args); err == nil {
			t.Cleanup(p.stop)
			return
		}
	}
	t.Fatal(err)
}

func (p *realPeer) run(t *testing.T, ports, args []string) error {
	t.Helper()
	output, err := os.OpenFile(filepath.Join(p.folder, "output.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	p.cmd = exec.Command(p.binary, args...)
	p.cmd.Dir = p.folder
	p.cmd.Stdout, p.cmd.Stderr = output, output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { // ends with the process
		defer close(ended)
		cmd.Wait()
	}(p.cmd, p.ended)
	for _, port := range ports {
		if !answers(port, p.ended) {
			p.stop()
			return fmt.Errorf("%s does not listen at port %s", p.binary, port)
		}
	}
	return nil
}

// signal sends a signal to the peer's first process.
func (p *realPeer) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stop ends the peer: it may clean up, but not for long.
func (p *realPeer) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	giveUp := time.NewTimer(5 * time.Second)
	defer giveUp.Stop()
	select {
	case <-p.ended:
	case <-giveUp.C:
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // with its children
		<-p.ended
	}
}

// showLogs prints the ends of the peer's logs.
func (p *realPeer) showLogs(t *testing.T) {
	const enough = 8 << 10
	logs, _ := filepath.Glob(filepath.Join(p.folder, "*.log"))
	for _, name := range logs {
		log, err := os.ReadFile(name)
		if err != nil || len(log) == 0 {
			continue
		}
		t.Logf("%s of %s:\n%s", filepath.Base(name), p.binary, log[max(0, len(log)-enough):])
	}
}

// answers waits until something listens at port.
func answers(port string, ended <-chan struct{}) bool {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	giveUp := time.NewTimer(10 * time.Second)
	defer giveUp.Stop()
	for {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			conn.Close()
			return true
		}
		select {
		case <-ended:
			return false
		case <-giveUp.C:
			return false
		case <-again.C:
		}
	}
}

// freePort is a port that nobody has now. Systems give ports from above 32768 to
// those who ask for any: they leave this one alone until the peer takes it.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10000 + rand.IntN(20000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free between 10000 and 30000")
	return ""
}
