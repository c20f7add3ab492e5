//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
)

// largeSize is the size of what is sent through nginx.
const largeSize = 100 << 20

// TestNginx calls a real nginx in each protocol that it speaks.
func TestNginx(t *testing.T) {
	n := startNginx(t, "127.0.0.1:1")
	large := filepath.Join(n.folder, "files", "large.bin")
	sum := writeLarge(t, large, largeSize)
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
func writeLarge(t *testing.T, name string, size int64) string {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &sink{Hash: sha256.New()}
	content := io.LimitReader(rand.NewChaCha8([32]byte{}), size)
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
	*realPeer
	Plain, Clear2, Secure string // ports
	Backend               string // host:port that /backend/ leads to
	Root                  bool   // whether it may, and must, say who serves
}

var nginxConfig = template.Must(template.New("").Parse(`
daemon off;
{{if .Root}}user root;{{end}}
worker_processes 1;
pid nginx.pid;
error_log error.log info;
events { worker_connections 256; }
http {
	access_log off;
	client_body_temp_path temp/body;
	proxy_temp_path temp/proxy;
	fastcgi_temp_path temp/fastcgi;
	uwsgi_temp_path temp/uwsgi;
	scgi_temp_path temp/scgi;
	client_max_body_size 0;
	large_client_header_buffers 8 64k;
	keepalive_requests 1000000;
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
		location = /empty { return 204; }
		location = /refuse { return 403 "refused\n"; }
		location = /trailers {
			try_files /small.txt =404;
			add_trailer X-Late "after the body";
		}
		location /backend/ {
			proxy_pass http://{{.Backend}}/;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_request_buffering off;
			proxy_buffer_size 64k;
			proxy_buffers 8 64k;
			proxy_busy_buffers_size 128k;
		}
	}
}
`))

// startNginx starts an nginx in front of backend, host:port.
func startNginx(t *testing.T, backend string) *nginx {
	t.Helper()
	n := &nginx{realPeer: newRealPeer(t, "nginx", "nginx-light"), Backend: backend, Root: os.Getuid() == 0}
	if err := os.Mkdir(filepath.Join(n.folder, "temp"), 0o755); err != nil {
		t.Fatal(err)
	}
	n.write(t, "files/small.txt", []byte("small\n"))
	n.start(t, func() (ports, args []string) {
		n.Plain, n.Clear2, n.Secure = freePort(t), freePort(t), freePort(t)
		n.write(t, "nginx.conf", render(t, nginxConfig, n))
		return []string{n.Plain, n.Clear2, n.Secure}, []string{"-p", n.folder + "/", "-e", "error.log", "-c", "nginx.conf"}
	})
	return n
}

// render is a configuration of a peer's.
func render(t *testing.T, config *template.Template, data any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := config.Execute(&b, data); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
