//go:build unix

package main

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
)

var apacheAuthConfig = template.Must(template.New("").Parse(`
{{range .AuthModules}}LoadModule {{.}}_module /usr/lib/apache2/modules/mod_{{.}}.so
{{end}}
ServerRoot {{.Folder}}
DefaultRuntimeDir {{.Folder}}
ServerName 127.0.0.1
PidFile apache.pid
ErrorLog error.log
{{if .Root}}
User #65534
Group #65534
{{end}}
Listen 127.0.0.1:{{.Clear}}
Listen 127.0.0.1:{{.Secure}}
StartServers 2
ProxyPass / http://{{.Backend}}/
<Location /basic/>
	AuthType Basic
	AuthName gate
	AuthUserFile basic.txt
	Require valid-user
</Location>
<Location /digest/>
	AuthType Digest
	AuthName gate
	AuthUserFile digest.txt
	Require valid-user
</Location>
<Location /stale/>
	AuthType Digest
	AuthName gate
	AuthDigestNonceLifetime 1
	AuthUserFile digest.txt
	Require valid-user
</Location>
<VirtualHost 127.0.0.1:{{.Secure}}>
	Protocols h2 http/1.1
	SSLEngine on
	SSLCertificateFile cert.pem
	SSLCertificateKeyFile key.pem
</VirtualHost>
`))

// AuthModules are what apache2 asks for credentials with.
func (s *site) AuthModules() []string {
	return append(s.Modules(), "authn_core", "authn_file", "authz_user", "auth_basic", "auth_digest")
}

var nginxAuthConfig = template.Must(template.New("").Parse(`
daemon off;
{{if .Root}}user nobody nogroup;{{end}}
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
	server {
		listen 127.0.0.1:{{.Clear}};
		listen 127.0.0.1:{{.Secure}} ssl http2;
		ssl_certificate cert.pem;
		ssl_certificate_key key.pem;
		location / { proxy_pass http://{{.Backend}}; proxy_request_buffering off; }
		location /basic/ {
			auth_basic gate;
			auth_basic_user_file basic.txt;
			proxy_pass http://{{.Backend}};
			proxy_request_buffering off;
		}
	}
}
`))

// authSite is a real server that wants credentials, in front of an origin.
type authSite struct {
	*site
	behind *origin
}

func newAuthSite(t *testing.T, command, debian string, behind *origin) authSite {
	t.Helper()
	s := &site{
		realPeer: newRealPeer(t, command, debian),
		Backend:  strings.TrimPrefix(behind.url, "http://"),
		Root:     os.Getuid() == 0,
	}
	s.write(t, "basic.txt", []byte(peerUser+":"+peerCrypt+"\n"))
	secret := md5.Sum([]byte(peerUser + ":" + peerRealm + ":" + peerPassword))
	s.write(t, "digest.txt", []byte(peerUser+":"+peerRealm+":"+hex.EncodeToString(secret[:])+"\n"))
	return authSite{s, behind}
}

func startApacheAuth(t *testing.T, behind *origin) authSite {
	t.Helper()
	s := newAuthSite(t, "apache2", "apache2", behind)
	s.serve(t, "apache.conf", apacheAuthConfig, "-DFOREGROUND", "-f", s.folder+"/apache.conf")
	return s
}

// lock is how an origin is called that wants credentials.
type lock struct {
	site           authSite
	base, protocol string
	protocols      []string
}

func (s authSite) locks() []lock {
	clear, secure := "http://127.0.0.1:"+s.Clear, "https://127.0.0.1:"+s.Secure
	h1, h2 := []string{"http/1.1"}, []string{"h2", "http/1.1"}
	return []lock{{s, clear, "http/1.1", h2}, {s, secure, "http/1.1", h1}, {s, secure, "h2", h2}}
}

func (l lock) caller(t *testing.T, a auth.Authenticator, options ...catena.Option) *peerCaller {
	t.Helper()
	options = append(options, catena.WithProtocols(l.protocols...))
	if a != nil {
		options = append(options, catena.WithAuthenticator(a))
	}
	return newPeerCaller(t, l.site.trusted(t), options...)
}

// originKey is what a client has for an origin.
type originKey struct {
	name          string
	user          string // in the URL
	authenticator func() auth.Authenticator
	refusals      int // of three GETs
	opens         bool
}

func originKeys(scheme string, right func(user, password string) auth.Authenticator) []originKey {
	with := func(password string) func() auth.Authenticator {
		return func() auth.Authenticator { return right(peerUser, password) }
	}
	inURL := originKey{"in the URL", peerUser + ":" + peerPassword, nil, 0, true}
	if scheme != "Basic" {
		inURL.refusals, inURL.opens = 3, false
	}
	return []originKey{
		inURL,
		{"none", "", nil, 3, false},
		{scheme, "", with(peerPassword), 3, true},
		{scheme + ", wrong", "", with(badPassword), 6, false},
		{"a store", "", func() auth.Authenticator { return auth.Store(right(peerUser, peerPassword)) }, 1, true},
		{"the strongest", "", func() auth.Authenticator {
			return auth.Store(auth.Strongest(auth.Digest(peerUser, peerPassword), auth.Basic(peerUser, peerPassword)))
		}, 1, true},
		{"in the URL, wrong", peerUser + ":" + badPassword, nil, 3, false},
	}
}

// tries calls folder by all protocols, with all keys.
func (s authSite) tries(t *testing.T, folder string, keys []originKey) {
	for _, l := range s.locks() {
		for _, k := range keys {
			t.Run(folder+" "+l.base[:strings.Index(l.base, ":")]+" by "+l.protocol+"/"+k.name, func(t *testing.T) { l.try(t, folder, k) })
		}
	}
}

func (l lock) try(t *testing.T, folder string, k originKey) {
	var a auth.Authenticator
	if k.authenticator != nil {
		a = k.authenticator()
	}
	c := l.caller(t, a)
	url := l.base + folder
	if k.user != "" {
		url = strings.Replace(url, "://", "://"+k.user+"@", 1)
	}
	status := http.StatusUnauthorized
	if k.opens {
		status = http.StatusOK
	}
	l.site.behind.seen()
	used := map[uint64]bool{}
	for range 3 {
		got, err := c.do(t.Context(), "GET", url, nil)
		if err != nil || got.StatusCode != status || k.opens && string(got.body) != "small\n" {
			t.Fatalf("answer %+v, body %.100q, error %+v; want status %d", got.Response, got.body, err, status)
		}
		used[got.connection] = true
	}
	if n := c.refusals(); n != k.refusals {
		t.Errorf("3 GETs were refused %d times, want %d", n, k.refusals)
	}
	if len(used) != 1 {
		t.Errorf("3 GETs went by %d connections, want 1", len(used))
	}
	body := mebibyte()
	got, err := c.do(t.Context(), "POST", url, body)
	if err != nil || got.StatusCode != status || k.opens && string(got.body) != sum(body) {
		t.Errorf("POST: answer %+v, body %.100q, error %+v; want status %d", got.Response, got.body, err, status)
	}
	requests := 0
	if k.opens {
		requests = 4
	}
	if n, _ := l.site.behind.seen(); n != requests {
		t.Errorf("%d requests got through, want %d", n, requests)
	}
}

// TestNginxAuthentication answers the challenges of a real nginx, which knows Basic.
func TestNginxAuthentication(t *testing.T) {
	all := startProxied(t)
	s := newAuthSite(t, "nginx", "nginx-light", all.http)
	if err := os.Mkdir(s.folder+"/temp", 0o755); err != nil {
		t.Fatal(err)
	}
	s.serve(t, "nginx.conf", nginxAuthConfig, "-p", s.folder+"/", "-e", "error.log", "-c", "nginx.conf")
	s.tries(t, "/basic/", originKeys("Basic", auth.Basic))
}

// TestApacheAuthentication answers the challenges of a real apache2, which knows
// Basic, and Digest by MD5 with "auth".
func TestApacheAuthentication(t *testing.T) {
	all := startProxied(t)
	s := startApacheAuth(t, all.http)
	s.tries(t, "/basic/", originKeys("Basic", auth.Basic))
	s.tries(t, "/digest/", originKeys("Digest", auth.Digest))
	t.Run("stale", func(t *testing.T) { staleNonces(t, s) })
	t.Run("at the same time", func(t *testing.T) { digestAtTheSameTime(t, s) })
	t.Run("behind squid", func(t *testing.T) { twoDigests(t, s) })
}

// staleNonces calls until a nonce has had its second. Nobody who calls notices.
func staleNonces(t *testing.T, s authSite) {
	locks := s.locks()
	var callers []*peerCaller
	for _, l := range locks {
		callers = append(callers, l.caller(t, auth.Store(auth.Digest(peerUser, peerPassword))))
	}
	ended := within(10*time.Second, func() bool {
		all := true
		for i, c := range callers {
			c.must("GET", locks[i].base+"/stale/?a=1&b=%20", nil, locks[i].protocol, "small\n")
			all = all && c.refusals() > 1
		}
		return all
	})
	if !ended {
		t.Error("no nonce became stale")
	}
}

// digestAtTheSameTime makes many calls with one authenticator.
func digestAtTheSameTime(t *testing.T, s authSite) {
	for _, l := range s.locks() {
		c := l.caller(t, auth.Store(auth.Digest(peerUser, peerPassword)))
		var calls sync.WaitGroup
		for i := range 32 {
			calls.Go(func() {
				got, err := c.do(t.Context(), "GET", fmt.Sprintf("%s/digest/%d?n=%d", l.base, i, i), nil)
				if err != nil || got.StatusCode != http.StatusOK || string(got.body) != "small\n" {
					t.Errorf("answer %+v, body %q, error %+v", got.Response, got.body, err)
				}
			})
		}
		calls.Wait()
	}
}

// twoDigests answers a proxy and, by the same scheme, the origin behind it.
func twoDigests(t *testing.T, s authSite) {
	gate := startSquid(t, "Digest")
	for _, l := range s.locks() {
		c := l.caller(t, auth.Digest(peerUser, peerPassword), catena.WithProxy(gate.locked(t)),
			catena.WithProxyAuthenticator(auth.Digest(peerUser, peerPassword)))
		s.behind.seen()
		body := mebibyte()[:1<<10]
		c.must("POST", l.base+"/digest/?a=1&b=%20", body, l.protocol, sum(body))
		var refused []int
		for _, e := range c.events.Events() {
			if e.Name == "FollowUpDecision" && e.Taken {
				refused = append(refused, e.Code)
			}
		}
		if diff := cmp.Diff([]int{http.StatusProxyAuthRequired, http.StatusUnauthorized}, refused); diff != "" {
			t.Errorf("%s by %s: refusals (-want +got):\n%s", l.base, l.protocol, diff)
		}
		if n, strays := s.behind.seen(); n != 1 || len(strays) > 0 {
			t.Errorf("%s by %s: %d requests got through with %v, want 1 without", l.base, l.protocol, n, strays)
		}
	}
}
