//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/catena-http/catena/proxy"
)

// TestCommandThroughPeers gives the command line what real proxies and servers ask
// for.
func TestCommandThroughPeers(t *testing.T) {
	all := startProxied(t)
	gate := startSquid(t, "Digest", "Basic")
	socks := startMicrosocks(t, "-u", peerUser, "-P", peerPassword)
	f := startFront(t, gate.Locked)
	site := startApacheAuth(t, all.http)
	const right, wrong = peerUser + ":" + peerPassword, peerUser + ":" + badPassword
	squid, tls := "http://"+gate.locked(t).Addr(), "https://127.0.0.1:"+f.Doors[0].Port
	socks5 := "socks5h://" + right + "@" + proxyOn(t, proxy.SOCKS5, socks).Addr()
	basic, digest := "https://127.0.0.1:"+site.Secure+"/basic/", "https://127.0.0.1:"+site.Secure+"/digest/"
	netrc := site.write(t, "netrc", []byte("machine 127.0.0.1 login "+peerUser+" password "+peerPassword+"\n"))
	for name, tt := range map[string]struct {
		args []string
		url  string
		code int
		says string // on standard error
	}{
		"Basic":               {[]string{"-x", squid, "-U", right}, all.http.url, 0, ""},
		"in the address":      {[]string{"-x", strings.Replace(squid, "//", "//"+right+"@", 1)}, all.https.url, 0, ""},
		"Digest":              {[]string{"-x", squid, "-U", right, "--proxy-digest"}, all.https.url, 0, ""},
		"any":                 {[]string{"-x", squid, "-U", right, "--proxy-anyauth"}, all.http.url, 0, ""},
		"wrong":               {[]string{"-x", squid, "-U", wrong, "--proxy-anyauth"}, all.http.url, exitStatus, "407"},
		"wrong, to a tunnel":  {[]string{"-x", squid, "-U", wrong, "--proxy-digest"}, all.https.url, exitReceive, "407"},
		"nothing":             {[]string{"-x", squid}, all.https.url, exitReceive, "407"},
		"TLS":                 {[]string{"-x", tls, "--proxy-cacert", f.CA, "-U", right, "--proxy-anyauth"}, all.https.url, 0, ""},
		"TLS, not trusted":    {[]string{"-x", tls, "-U", right}, all.https.url, exitCertificate, "proxy"},
		"SOCKS":               {[]string{"-x", socks5}, all.https.url, 0, ""},
		"SOCKS, wrong":        {[]string{"-x", socks5, "-U", wrong}, all.https.url, exitSOCKS, "refused user and password"},
		"origin, Basic":       {[]string{"-u", right}, basic, 0, ""},
		"origin, Digest":      {[]string{"-u", right, "--digest"}, digest, 0, ""},
		"origin, any":         {[]string{"-u", right, "--anyauth"}, digest, 0, ""},
		"origin, from a file": {[]string{"-n", "--netrc-file", netrc, "--anyauth"}, digest, 0, ""},
		"origin, wrong":       {[]string{"-u", wrong, "--anyauth"}, digest, exitStatus, "401"},
		"both":                {[]string{"-x", squid, "-U", right, "--proxy-digest", "-u", right, "--digest"}, digest, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := catenaRun(t, "", append(append([]string{"-sSfk"}, tt.args...), tt.url)...)
			want := "small\n"
			if tt.code != 0 {
				want = ""
			}
			if got.code != tt.code || got.stdout != want || !strings.Contains(got.stderr, tt.says) {
				t.Errorf("exit code %d, output %q; want %d and %q\n%s", got.code, got.stdout, tt.code, want, got.stderr)
			}
			if strings.Contains(got.stderr, peerPassword) || strings.Contains(got.stderr, badPassword) {
				t.Errorf("a password is shown:\n%s", got.stderr)
			}
		})
	}
	for _, o := range all.all {
		if _, strays := o.seen(); len(strays) > 0 {
			t.Errorf("%s got %v", o.name, strays)
		}
	}
}
