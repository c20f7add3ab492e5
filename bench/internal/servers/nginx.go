package servers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"text/template"

	"github.com/catena-http/catena/bench/internal/client"
)

// ErrNoNginx is returned where nginx is not installed.
var ErrNoNginx = errors.New("nginx is not installed (Debian: apt-get install nginx-light); -server go measures against the Go server alone")

// Nginx is a running nginx: one worker, pinned to the last processor.
type Nginx struct {
	*process
	Addrs   Addrs
	Version string // "nginx/1.22.1"
}

// StartNginx starts it over f's certificate and body. It ends with Stop or ctx.
func StartNginx(ctx context.Context, f Files) (*Nginx, error) {
	path, err := findNginx()
	if err != nil {
		return nil, err
	}
	addrs, err := freeAddrs(client.Protocols())
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(f.Dir, "nginx.conf")
	if err := writeConf(conf, f, addrs); err != nil {
		return nil, err
	}
	cmd := pinned(ctx, runtime.NumCPU(), path, "-p", f.Dir, "-e", filepath.Join(f.Dir, "nginx.log"), "-c", conf)
	cmd.Stderr = os.Stderr
	quit := func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Cancel = quit
	p, err := start(cmd, quit)
	if err != nil {
		return nil, err
	}
	if err := p.await(ctx, addrs); err != nil {
		p.Stop()
		return nil, err
	}
	return &Nginx{p, addrs, version(path)}, nil
}

func findNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // root's path is not everybody's
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoNginx
}

func version(path string) string {
	out, _ := exec.Command(path, "-v").CombinedOutput()
	return strings.TrimSpace(string(regexp.MustCompile(`nginx/[0-9.]+`).Find(out)))
}

func writeConf(name string, f Files, addrs Addrs) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	err = conf.Execute(file, map[string]any{
		"Files": f, "Addrs": addrs, "Root": os.Getuid() == 0, "Small": small,
		"SmallPath": SmallPath, "FirstPath": FirstPath, "BodyPath": BodyPath,
	})
	return errors.Join(err, file.Close())
}

// conf is a server that is no bottleneck of its own making: no logs, connections
// that live as long as the run, one cipher for all. nginx 1.22 has HTTP/2 by the
// listener, so each protocol has its own. HTTP/2 is served without sendfile, with
// which every frame is of 8 KiB and costs a system call.
var conf = template.Must(template.New("nginx.conf").Parse(`
daemon off;
{{if .Root}}user root root;{{end}}
worker_processes 1;
worker_rlimit_nofile 20000;
pid {{.Files.Dir}}/nginx.pid;
events { worker_connections 16384; }
http {
	access_log off;
	default_type application/json;
	keepalive_timeout 1h;
	keepalive_requests 1000000000;
	keepalive_time 24h;
	client_max_body_size 0;
	http2_max_concurrent_streams 512;
	client_body_temp_path {{.Files.Dir}}/tmp-body;
	proxy_temp_path {{.Files.Dir}}/tmp-proxy;
	fastcgi_temp_path {{.Files.Dir}}/tmp-fastcgi;
	uwsgi_temp_path {{.Files.Dir}}/tmp-uwsgi;
	scgi_temp_path {{.Files.Dir}}/tmp-scgi;
	ssl_certificate {{.Files.Cert}};
	ssl_certificate_key {{.Files.Key}};
	ssl_protocols TLSv1.3;
	ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
	ssl_session_cache off;
	ssl_session_tickets on;
	server {
		listen {{index .Addrs "h1"}} backlog=4096;
		listen {{index .Addrs "h1-tls"}} ssl backlog=4096;
		sendfile on;
		tcp_nopush on;
		{{template "locations" .}}
	}
	server {
		listen {{index .Addrs "h2c"}} http2 backlog=4096;
		listen {{index .Addrs "h2-tls"}} ssl http2 backlog=4096;
		output_buffers 2 512k;
		{{template "locations" .}}
	}
}
{{define "locations"}}
		location = {{.SmallPath}} { return 200 '{{.Small}}'; }
		location = {{.FirstPath}} {
			if ($connection_requests != 1) { return 409; }
			return 200 '{{.Small}}';
		}
		location = {{.BodyPath}} { alias {{.Files.Body}}; }
{{end}}`))
