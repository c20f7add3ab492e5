//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"
	"text/template"
)

// http2Server is a real server that runs and speaks HTTP/2.
type http2Server struct {
	CA     string
	bases  map[string]string // by the protocol, "h2" or "h2c": what URLs start with
	reload func()            // makes it read its configuration again; nil: it can't

	// What it serves beside small.txt, middle.bin and large.bin, as paths or as URLs
	// of the protocol. Empty: nothing.
	empty    string                       // answers 204
	trailers string                       // has the trailer X-Late: after the body
	sum      string                       // POST: the checksum of what was sent
	echo     string                       // POST: what was sent
	fields   string                       // returns three large fields
	refuse   func(protocol string) string // POST: answers before it has the body

	takesTrailers bool // of requests; nginx 1.22 ends the connection, apache2 drops them

	// cuts says that the reloading server may end a connection under a call on it.
	// mod_http2 2.0 does where its shutdown meets a new connection: a callback of its
	// own fails, and it closes, sometimes without a GOAWAY.
	cuts bool
}

// site is what the configuration of a server is made of.
type site struct {
	*realPeer
	Files, Backend string
	Clear, Secure  string // ports
	Root           bool   // whether it may, and must, say who serves
}

// newSite is a site whose server listens at a cleartext and a TLS port.
func newSite(t *testing.T, command, debian string, f files) *site {
	t.Helper()
	return &site{
		realPeer: newRealPeer(t, command, debian),
		Files:    f.folder,
		Backend:  startBackend(t, f.folder),
		Root:     os.Getuid() == 0,
	}
}

// serve starts the site's server by a configuration at its place.
func (s *site) serve(t *testing.T, name string, config *template.Template, args ...string) {
	t.Helper()
	s.start(t, func() (ports, _ []string) {
		s.Clear, s.Secure = freePort(t), freePort(t)
		s.write(t, name, render(t, config, s))
		return []string{s.Clear, s.Secure}, args
	})
}

func (s *site) bases() map[string]string {
	return map[string]string{"h2": "https://127.0.0.1:" + s.Secure, "h2c": "http://127.0.0.1:" + s.Clear}
}

func nginxHTTP2(t *testing.T, f files) http2Server {
	n := startNginx(t, startBackend(t, f.folder))
	if err := os.RemoveAll(n.folder + "/files"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(f.folder, n.folder+"/files"); err != nil {
		t.Fatal(err)
	}
	return http2Server{
		CA:       n.CA,
		bases:    map[string]string{"h2": "https://127.0.0.1:" + n.Secure, "h2c": "http://127.0.0.1:" + n.Clear2},
		reload:   func() { n.signal(t, syscall.SIGHUP) },
		empty:    "/empty",
		trailers: "/trailers",
		sum:      "/backend/sum",
		fields:   "/backend/fields",
		refuse:   at("/refuse"),
	}
}

// at is the same path for every protocol.
func at(path string) func(protocol string) string {
	return func(string) string { return path }
}

var apacheConfig = template.Must(template.New("").Parse(`
{{range .Modules}}LoadModule {{.}}_module /usr/lib/apache2/modules/mod_{{.}}.so
{{end}}
ServerRoot {{.Folder}}
DefaultRuntimeDir {{.Folder}}
ServerName 127.0.0.1
PidFile apache.pid
ErrorLog error.log
LogLevel warn ssl:error http2:info
{{if .Root}}
User #65534
Group #65534
{{end}}
Listen 127.0.0.1:{{.Clear}}
Listen 127.0.0.1:{{.Secure}}
StartServers 2
MaxKeepAliveRequests 0
LimitRequestFieldSize 65536
DocumentRoot {{.Files}}
<Directory {{.Files}}>
	Require all granted
</Directory>
<Location /refuse>
	Require all denied
</Location>
ProxyPass /backend/ http://{{.Backend}}/ responsefieldsize=65536
<VirtualHost 127.0.0.1:{{.Clear}}>
	Protocols h2c http/1.1
</VirtualHost>
<VirtualHost 127.0.0.1:{{.Secure}}>
	Protocols h2 http/1.1
	SSLEngine on
	SSLCertificateFile cert.pem
	SSLCertificateKeyFile key.pem
</VirtualHost>
`))

func (s *site) Folder() string { return s.folder }

// Modules are what apache2 is made of, on Debian.
func (s *site) Modules() []string {
	return []string{"mpm_event", "authz_core", "ssl", "http2", "proxy", "proxy_http"}
}

func apacheHTTP2(t *testing.T, f files) http2Server {
	s := newSite(t, "apache2", "apache2", f)
	s.serve(t, "apache.conf", apacheConfig, "-DFOREGROUND", "-f", s.folder+"/apache.conf")
	return http2Server{
		CA:       s.CA,
		bases:    s.bases(),
		reload:   func() { s.signal(t, syscall.SIGUSR1) },
		empty:    "/backend/empty",
		trailers: "/backend/trailers",
		sum:      "/backend/sum",
		fields:   "/backend/fields",
		refuse:   at("/refuse"),

		cuts: true,
	}
}

var haproxyConfig = template.Must(template.New("").Parse(`
global
	log stderr local0
	tune.bufsize 65536
	tune.maxrewrite 4096
defaults
	mode http
	log global
	timeout connect 10s
	timeout client 60s
	timeout server 60s
frontend site
	bind 127.0.0.1:{{.Clear}} proto h2
	bind 127.0.0.1:{{.Secure}} ssl crt both.pem alpn h2
	http-request deny deny_status 403 if { path /refuse }
	default_backend origin
backend origin
	server origin {{.Backend}}
`))

func haproxyHTTP2(t *testing.T, f files) http2Server {
	s := newSite(t, "haproxy", "haproxy", f)
	s.serve(t, "haproxy.conf", haproxyConfig, "-W", "-f", "haproxy.conf")
	return http2Server{
		CA:       s.CA,
		bases:    s.bases(),
		reload:   func() { s.signal(t, syscall.SIGUSR2) },
		empty:    "/empty",
		trailers: "/trailers",
		sum:      "/sum",
		fields:   "/fields",
		refuse:   at("/refuse"),

		takesTrailers: true,
	}
}

// nghttpdHTTP2 is one nghttpd for each protocol, and two more that answer before
// they have a body: for that one is another server.
func nghttpdHTTP2(t *testing.T, f files) http2Server {
	first := newRealPeer(t, "nghttpd", "nghttp2-server")
	run := func(secure bool, args ...string) (base string) {
		p := &realPeer{binary: first.binary, folder: first.folder}
		p.start(t, func() (ports, all []string) {
			port := freePort(t)
			all = append(all, "-a", "127.0.0.1", "-d", f.folder)
			all = append(all, args...)
			if secure {
				base = "https://127.0.0.1:" + port
				return []string{port}, append(all, port, "key.pem", "cert.pem")
			}
			base = "http://127.0.0.1:" + port
			return []string{port}, append(all, "--no-tls", port)
		})
		return base
	}
	whole := []string{"--echo-upload", "--trailer", "x-late: after the body", "--padding", "200"}
	early := map[string]string{"h2": run(true, "--early-response"), "h2c": run(false, "--early-response")}
	return http2Server{
		CA:       first.CA,
		bases:    map[string]string{"h2": run(true, whole...), "h2c": run(false, whole...)},
		trailers: "/small.txt",
		echo:     "/echo",
		refuse:   func(protocol string) string { return early[protocol] + "/refuse" },
	}
}
