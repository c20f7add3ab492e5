package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"
)

// largeSize is the size of what is sent through nginx.
const largeSize = 100 << 20

// TestNginx calls a real nginx in each protocol that it speaks.
func TestNginx(t *testing.T) {
	n := startNginx(t)
	large := filepath.Join(n.folder, "files", "large.bin")
	sum := writeLarge(t, large)
	tests := []struct {
		name, base, protocol string
		args                 []string
	}{
		{"http1", "http://127.0.0.1:" + n.Plain, "http/1.1", nil},
		{"http1 over TLS", "https://127.0.0.1:" + n.Secure, "http/1.1", []string{"--http1.1", "--cacert", n.CA}},
		{"http2", "https://127.0.0.1:" + n.Secure, "h2", []string{"--cacert", n.CA}},
		{"http2 in clear text", "http://127.0.0.1:" + n.Clear2, "h2c", []string{"--http2-prior-knowledge"}},
	}
	for _, tt := range tests {
		with := func(args ...string) []string { return append(append([]string{}, tt.args...), args...) }
		t.Run(tt.name+"/download", func(t *testing.T) {
			got := &sink{Hash: sha256.New()}
			code, stderr := runTo(t.Context(), got, with(tt.base+"/large.bin")...)
			if code != 0 || got.n != largeSize || got.sum() != sum {
				t.Fatalf("exit code %d, %d bytes, checksum %s; want 0, %d and %s\n%s", code, got.n, got.sum(), largeSize, sum, stderr)
			}
		})
		t.Run(tt.name+"/upload", func(t *testing.T) {
			name := strings.ReplaceAll(tt.name, " ", "-") + ".bin"
			got := catenaRun(t, "", with("-sS", "-f", "-T", large, tt.base+"/put/"+name)...)
			if got.code != 0 {
				t.Fatalf("exit code %d\n%s", got.code, got.stderr)
			}
			stored := filepath.Join(n.folder, "files", "put", name)
			if got := sumOf(t, stored); got != sum {
				t.Errorf("nginx stored %s, which has checksum %s, want %s", stored, got, sum)
			}
			os.Remove(stored)
		})
		t.Run(tt.name+"/reuse", func(t *testing.T) {
			got := catenaRun(t, "", with("--trace", tt.base+"/small.txt", tt.base+"/small.txt")...)
			if got.code != 0 || got.stdout != "small\nsmall\n" {
				t.Fatalf("exit code %d, output %q\n%s", got.code, got.stdout, got.stderr)
			}
			first, second, _ := strings.Cut(got.stderr, "CallEnd")
			if !strings.Contains(first, "ConnectEnd") || !strings.Contains(first, " "+tt.protocol+"\n") {
				t.Errorf("the first timeline does not connect by %s:\n%s", tt.protocol, first)
			}
			if !strings.Contains(second, "taken, pooled") || strings.Contains(second, "ConnectStart") {
				t.Errorf("the second timeline does not show that the connection is used again:\n%s", second)
			}
		})
	}
}

// sink is an output that is only counted and summed.
type sink struct {
	hash.Hash
	n int64
}

func (s *sink) Write(p []byte) (int, error) {
	s.n += int64(len(p))
	return s.Hash.Write(p)
}

func (s *sink) sum() string { return hex.EncodeToString(s.Sum(nil)) }

// writeLarge writes a file that no mistake leaves intact, and returns its
// checksum.
func writeLarge(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &sink{Hash: sha256.New()}
	content := io.LimitReader(rand.NewChaCha8([32]byte{}), largeSize)
	if _, err := io.Copy(io.MultiWriter(f, s), content); err != nil {
		t.Fatal(err)
	}
	return s.sum()
}

func sumOf(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &sink{Hash: sha256.New()}
	if _, err := io.Copy(s, f); err != nil {
		t.Fatal(err)
	}
	return s.sum()
}

// nginx is a running nginx and its configuration.
type nginx struct {
	folder                string
	Plain, Clear2, Secure string // ports
	CA                    string // the file of its certificate
}

var nginxConfig = template.Must(template.New("").Parse(`
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path temp/body;
	proxy_temp_path temp/proxy;
	fastcgi_temp_path temp/fastcgi;
	uwsgi_temp_path temp/uwsgi;
	scgi_temp_path temp/scgi;
	client_max_body_size 0;
	server {
		listen 127.0.0.1:{{.Plain}};
		listen 127.0.0.1:{{.Clear2}} http2;
		listen 127.0.0.1:{{.Secure}} ssl http2;
		ssl_certificate cert.pem;
		ssl_certificate_key key.pem;
		root files;
		location /put/ {
			dav_methods PUT;
			create_full_put_path on;
		}
	}
}
`))

// startNginx starts an nginx of the test's own on loopback, with all its files in
// the test's folder. It ends with the test.
func startNginx(t *testing.T) *nginx {
	t.Helper()
	binary := findNginx(t)
	n := &nginx{folder: t.TempDir()}
	n.CA = filepath.Join(n.folder, "cert.pem")
	for _, folder := range []string{"temp", "files"} {
		if err := os.Mkdir(filepath.Join(n.folder, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.write(t, "files/small.txt", []byte("small\n"))
	n.writeCertificate(t)
	// A port that is free now may be taken when nginx gets there.
	var err error
	for range 3 {
		if err = n.start(t, binary); err == nil {
			return n
		}
	}
	t.Fatal(err)
	return nil
}

// findNginx is where nginx is. CI has it: there it must not be missing.
func findNginx(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "nginx is missing: install the Debian package nginx-light, or run scripts/test-peers as root"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

func (n *nginx) start(t *testing.T, binary string) error {
	t.Helper()
	n.Plain, n.Clear2, n.Secure = freePort(t), freePort(t), freePort(t)
	var config bytes.Buffer
	if err := nginxConfig.Execute(&config, n); err != nil {
		t.Fatal(err)
	}
	n.write(t, "nginx.conf", config.Bytes())
	var output bytes.Buffer
	cmd := exec.Command(binary, "-p", n.folder+"/", "-e", "error.log", "-c", "nginx.conf")
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with nginx
		defer close(ended)
		cmd.Wait()
	}()
	for _, port := range []string{n.Plain, n.Clear2, n.Secure} {
		if !answers(port, ended) {
			cmd.Process.Kill()
			<-ended
			log, _ := os.ReadFile(filepath.Join(n.folder, "error.log"))
			return fmt.Errorf("nginx does not listen at port %s\n%s\n%s", port, &output, log)
		}
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	return nil
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

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func (n *nginx) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.folder, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (n *nginx) writeCertificate(t *testing.T) {
	t.Helper()
	certificate, err := selfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(certificate.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	n.write(t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}))
	n.write(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}))
}
