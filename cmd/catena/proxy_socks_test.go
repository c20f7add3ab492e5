//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"text/template"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/proxy"
)

// TestMicrosocks calls through a real microsocks, which speaks SOCKS5.
func TestMicrosocks(t *testing.T) {
	all := startProxied(t)
	open, locked := startMicrosocks(t), startMicrosocks(t, "-u", peerUser, "-P", peerPassword)
	for _, d := range []door{
		{name: "open", proxy: proxyOn(t, proxy.SOCKS5, open), keys: append(openDoor, userKey(badPassword, true))},
		{name: "password", proxy: proxyOn(t, proxy.SOCKS5, locked), keys: passwordKeys},
	} {
		d.through(t, all)
	}
	unreachable(t, proxyOn(t, proxy.SOCKS5, open), 5)
}

func startMicrosocks(t *testing.T, args ...string) (port string) {
	t.Helper()
	p := newRealPeer(t, "microsocks", "microsocks")
	p.start(t, func() (ports, all []string) {
		port = freePort(t)
		return []string{port}, append([]string{"-i", "127.0.0.1", "-p", port}, args...)
	})
	return port
}

// dante is a running danted.
type dante struct {
	*realPeer
	Port   string
	Locked bool // wants user and password
	Root   bool // whether it may, and must, say who serves
}

var danteConfig = template.Must(template.New("").Parse(`
logoutput: stderr
internal: 127.0.0.1 port = {{.Port}}
external.protocol: ipv4
external: 127.0.0.1
clientmethod: none
socksmethod: {{if .Locked}}username{{else}}none{{end}}
{{if .Root}}
user.privileged: root
user.unprivileged: nobody
{{end}}
client pass {
	from: 127.0.0.0/8 to: 0.0.0.0/0
	log: error
}
socks block {
	from: 127.0.0.0/8 to: 127.0.0.2/32
	log: error
}
socks pass {
	from: 127.0.0.0/8 to: 0.0.0.0/0
	command: connect
	log: error
}
`))

// startDante starts a danted. It asks the system for users' passwords: the one that
// wants them sees the system with one more user, in a mount namespace of its own.
func startDante(t *testing.T, locked bool) *dante {
	t.Helper()
	d := &dante{realPeer: newRealPeer(t, "danted", "dante-server"), Locked: locked, Root: os.Getuid() == 0}
	var prefix []string
	if locked {
		d.addUser(t)
		prefix = []string{"--mount", "sh", "-ec", `
			mount --bind passwd /etc/passwd
			mount --bind shadow /etc/shadow
			exec "$0" "$@"`, d.binary}
		d.binary = findPeer(t, "unshare", "util-linux")
	}
	d.start(t, func() (ports, args []string) {
		d.Port = freePort(t)
		d.write(t, "danted.conf", render(t, danteConfig, d))
		return []string{d.Port}, append(prefix, "-f", d.folder+"/danted.conf")
	})
	return d
}

// addUser writes copies of the system's files that have the user too.
func (d *dante) addUser(t *testing.T) {
	for name, line := range map[string]string{
		"passwd": peerUser + ":x:65533:65534::/nonexistent:/usr/sbin/nologin\n",
		"shadow": peerUser + ":" + peerCrypt + ":19000:0:99999:7:::\n",
	} {
		system, err := os.ReadFile("/etc/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d.write(t, name, append(system, line...)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(d.folder+"/passwd", 0o644); err != nil {
		t.Fatal(err)
	}
}

func (d *dante) proxy(t *testing.T, kind proxy.Type) proxy.Proxy { return proxyOn(t, kind, d.Port) }

// TestDante calls through a real danted. It knows no SOCKS4A, and where it wants
// a password no SOCKS4 either, which has none.
func TestDante(t *testing.T) {
	all := startProxied(t)
	open := startDante(t, false)
	for _, d := range []door{
		{name: "SOCKS4", proxy: open.proxy(t, proxy.SOCKS4), keys: append(openDoor, key{name: "user", user: userKey("", true).user, opens: true})},
		{name: "SOCKS5", proxy: open.proxy(t, proxy.SOCKS5), keys: append(openDoor, userKey(badPassword, true))},
	} {
		d.through(t, all)
	}
	unreachable(t, open.proxy(t, proxy.SOCKS5), 5)
	unreachable(t, open.proxy(t, proxy.SOCKS4), 91)
	refusedBySOCKS(t, open.proxy(t, proxy.SOCKS5), "127.0.0.2:1", 2)
	refusedBySOCKS(t, open.proxy(t, proxy.SOCKS4), "127.0.0.2:1", 91)
	refusedBySOCKS(t, open.proxy(t, proxy.SOCKS4A), all.http.byName()[len("http://"):], 91)
	t.Run("password", func(t *testing.T) {
		if err := exec.Command(findPeer(t, "unshare", "util-linux"), "--mount", "true").Run(); err != nil {
			cannot(t, "danted with a user of its own needs a mount namespace: unshare: "+err.Error())
		}
		locked := startDante(t, true)
		door{name: "SOCKS5", proxy: locked.proxy(t, proxy.SOCKS5), keys: passwordKeys}.through(t, all)
		refusedBySOCKS(t, locked.proxy(t, proxy.SOCKS4), all.http.url[len("http://"):], 91)
	})
}

// cannot skips a test for want of something that CI has.
func cannot(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// unreachable calls a port that nobody listens at.
func unreachable(t *testing.T, p proxy.Proxy, code byte) {
	t.Helper()
	refusedBySOCKS(t, p, "127.0.0.1:"+freePort(t), code)
}

// refusedBySOCKS calls what the proxy does not connect to, for the reason that has
// the code.
func refusedBySOCKS(t *testing.T, p proxy.Proxy, addr string, code byte) {
	t.Helper()
	c := newPeerCaller(t, nil, catena.WithProxy(p))
	for _, scheme := range []string{"http", "https"} {
		_, err := c.do(t.Context(), "GET", scheme+"://"+addr+"/", nil)
		var refused *proxy.SOCKSError
		if !errors.As(err, &refused) || refused.Code != code || refused.Target != addr {
			t.Errorf("%s to %s: error %+v, want a SOCKSError with code %d", p, addr, err, code)
		}
	}
}
