//go:build unix

package main

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// squid is a running squid with two doors: one for everybody and one for those with
// credentials of the schemes that it offers.
type squid struct {
	*realPeer
	Open, Locked  string // ports
	Basic, Digest bool
}

var squidConfig = template.Must(template.New("").Parse(`
http_port 127.0.0.1:{{.Open}} name=open
http_port 127.0.0.1:{{.Locked}} name=locked
{{if .Digest}}
auth_param digest program /usr/lib/squid/digest_file_auth -c {{.Folder}}/digest.txt
auth_param digest children 1 startup=1
auth_param digest realm gate
{{end}}
{{if .Basic}}
auth_param basic program /usr/lib/squid/basic_ncsa_auth {{.Folder}}/basic.txt
auth_param basic children 1 startup=1
auth_param basic realm gate
{{end}}
acl open myportname open
acl refused dstdomain refused.test
http_access deny refused
http_access allow open
{{if or .Basic .Digest}}
acl known proxy_auth REQUIRED
http_access allow known
{{end}}
http_access deny all
connect_timeout 5 seconds
cache deny all
cache_mem 1 MB
cache_log /dev/null
logformat seen %>rm %>ru user=%un status=%>Hs authorization=%{Authorization}>h cookie=%{Cookie}>h
access_log stdio:{{.Folder}}/access.log logformat=seen
coredump_dir none
netdb_filename none
pid_filename none
pinger_enable off
shutdown_lifetime 0 seconds
visible_hostname gate.test
cache_effective_user nobody
`))

func (s *squid) Folder() string { return s.folder }

// startSquid starts a squid that offers schemes at its second door.
func startSquid(t *testing.T, schemes ...string) *squid {
	t.Helper()
	s := &squid{realPeer: newRealPeer(t, "squid", "squid")}
	for _, scheme := range schemes {
		s.Basic = s.Basic || scheme == "Basic"
		s.Digest = s.Digest || scheme == "Digest"
	}
	s.write(t, "basic.txt", []byte(peerUser+":"+peerCrypt+"\n"))
	secret := md5.Sum([]byte(peerUser + ":" + peerRealm + ":" + peerPassword))
	s.write(t, "digest.txt", []byte(peerUser+":"+peerRealm+":"+hex.EncodeToString(secret[:])+"\n"))
	// It writes its log as somebody else, if it is started as root.
	if err := os.Chmod(s.write(t, "access.log", nil), 0o666); err != nil {
		t.Fatal(err)
	}
	s.start(t, func() (ports, args []string) {
		s.Open, s.Locked = freePort(t), freePort(t)
		return s.command(t)
	})
	t.Cleanup(s.kill) // it takes seconds to stop
	return s
}

// kill ends it, and who checks passwords for it, without a farewell.
func (s *squid) kill() {
	syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.ended
	left, _ := filepath.Glob("/dev/shm/" + s.service() + "-*") // memory that it would share
	for _, name := range left {
		os.Remove(name)
	}
}

// service is a name that keeps apart what several squids share.
func (s *squid) service() string { return "catena" + s.Open }

// command is how it is started, at the ports that it has.
func (s *squid) command(t *testing.T) (ports, args []string) {
	s.write(t, "squid.conf", render(t, squidConfig, s))
	return []string{s.Open, s.Locked}, []string{"-N", "-d", "1", "-n", s.service(), "-f", s.folder + "/squid.conf"}
}

func (s *squid) open(t *testing.T) proxy.Proxy   { return proxyOn(t, proxy.HTTP, s.Open) }
func (s *squid) locked(t *testing.T) proxy.Proxy { return proxyOn(t, proxy.HTTP, s.Locked) }

var (
	digestKeys = []key{
		noKey, digestKey(peerPassword, true), digestKey(badPassword, false), basicKey(peerPassword, false),
		strongestKey(peerPassword, peerPassword, true), userKey(peerPassword, false),
	}
	// bothKeys show by a wrong password for Basic that Digest is what is answered, and
	// the other way round that Basic is not tried where Digest failed.
	bothKeys = []key{
		noKey, digestKey(peerPassword, true), basicKey(peerPassword, true), basicKey(badPassword, false),
		strongestKey(badPassword, peerPassword, true), strongestKey(peerPassword, badPassword, false),
	}
)

// TestSquid calls through a real squid.
func TestSquid(t *testing.T) {
	all := startProxied(t)
	basic, digest, both := startSquid(t, "Basic"), startSquid(t, "Digest"), startSquid(t, "Digest", "Basic")
	for _, d := range []door{
		{name: "open", proxy: basic.open(t), keys: openDoor},
		{name: "Basic", proxy: basic.locked(t), keys: basicKeys},
		{name: "Digest", proxy: digest.locked(t), keys: digestKeys},
		{name: "Digest and Basic", proxy: both.locked(t), keys: bothKeys},
	} {
		d.through(t, all)
	}
	t.Run("many calls by Digest", func(t *testing.T) { manyByDigest(t, digest, all) })
	t.Run("one connection for two origins", func(t *testing.T) { oneForTwo(t, basic, all) })
	t.Run("refused", func(t *testing.T) { refusedBySquid(t, basic, all) })
	t.Run("what it saw", func(t *testing.T) { sawOnly(t, both, all) })
}

// manyByDigest makes calls at the same time, with one authenticator, so that the
// counts of a nonce come to squid in any order.
func manyByDigest(t *testing.T, s *squid, all *proxied) {
	for _, o := range all.all {
		t.Run(o.name, func(t *testing.T) {
			c := newPeerCaller(t, all.roots, catena.WithProxy(s.locked(t)), catena.WithProtocols(o.protocols...),
				catena.WithProxyAuthenticator(auth.Store(auth.Digest(peerUser, peerPassword))))
			c.must("GET", o.url+"/", nil, o.protocol, "small\n") // squid gives a nonce, for all
			c.client.CloseIdleConnections()
			var calls sync.WaitGroup
			for i := range 32 {
				calls.Go(func() {
					method, body, want := "GET", []byte(nil), "small\n"
					if i%4 == 0 {
						method, body = "POST", mebibyte()
						want = sum(body)
					}
					a, err := c.do(t.Context(), method, o.url+"/", body)
					if err != nil {
						t.Errorf("%+v", err)
					} else if a.StatusCode != http.StatusOK || string(a.body) != want {
						t.Errorf("%s: status %d, body %.100q; want %q", method, a.StatusCode, a.body, want)
					}
				})
			}
			calls.Wait()
		})
	}
}

// oneForTwo calls two origins on the connection to the proxy that they share.
func oneForTwo(t *testing.T, s *squid, all *proxied) {
	second := &origin{protocol: "http/1.1"}
	certificate, err := selfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	second.start(t, certificate)
	c := newPeerCaller(t, all.roots, catena.WithProxy(s.open(t)))
	c.must("GET", all.http.url+"/", nil, "http/1.1", "small\n")
	c.must("GET", second.url+"/", nil, "http/1.1", "small\n")
	c.must("GET", all.https.url+"/", nil, "http/1.1", "small\n") // by another, through a tunnel
	if n := c.connected(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// refusedBySquid calls what squid does not lead to, and what nobody listens at.
func refusedBySquid(t *testing.T, s *squid, all *proxied) {
	c := newPeerCaller(t, all.roots, catena.WithProxy(s.open(t)))
	dead := "127.0.0.1:" + freePort(t)
	for host, want := range map[string]int{"refused.test": http.StatusForbidden, dead: http.StatusServiceUnavailable} {
		a, err := c.do(t.Context(), "GET", "http://"+host+"/", nil)
		if err != nil || a.StatusCode != want {
			t.Errorf("http://%s: answer %+v, error %+v; want status %d", host, a.Response, err, want)
		}
		_, err = c.do(t.Context(), "GET", "https://"+host+"/", nil)
		var refused *route.ProxyError
		if !errors.As(err, &refused) || refused.StatusCode != want || len(refused.Body) == 0 {
			t.Errorf("https://%s: error %+v, want a ProxyError with status %d", host, err, want)
		}
	}
}

// sawOnly compares what squid knows of calls: everything of those that it passes on,
// and of a tunnel where it leads.
func sawOnly(t *testing.T, s *squid, all *proxied) {
	log := filepath.Join(s.folder, "access.log")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	p := s.locked(t)
	c := newPeerCaller(t, all.roots, catena.WithProxy(p),
		catena.WithProxyAuthenticator(auth.Digest(peerUser, peerPassword)))
	secrets := []string{"Authorization", "Bearer of-the-origin", "Cookie", "a=b"}
	c.must("GET", all.http.url+"/plain?q", nil, "http/1.1", "small\n", secrets...)
	c.must("GET", all.https.url+"/secure?q", nil, "http/1.1", "small\n", secrets...)
	c.client.CloseIdleConnections() // squid writes of a tunnel when it ends
	host := strings.TrimPrefix(all.https.url, "https://")
	want := []string{
		"GET " + all.http.url + "/plain?q user=- status=407 authorization=Bearer%20of-the-origin cookie=a=b",
		"GET " + all.http.url + "/plain?q user=ada status=200 authorization=Bearer%20of-the-origin cookie=a=b",
		"CONNECT " + host + " user=- status=407 authorization=- cookie=-",
		"CONNECT " + host + " user=ada status=200 authorization=- cookie=-",
	}
	var got []string
	within(5*time.Second, func() bool {
		after, _ := os.ReadFile(log)
		got = nil
		for line := range strings.Lines(string(after[len(before):])) {
			if strings.Contains(line, "/plain") || strings.Contains(line, host) {
				got = append(got, strings.TrimSpace(line))
			}
		}
		return len(got) == len(want)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("squid saw (-want +got):\n%s", diff)
	}
}
