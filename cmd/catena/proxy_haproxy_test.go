//go:build unix

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"testing"
	"text/template"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/proxy"
)

// front is a running haproxy: TLS in front of two other proxies.
type front struct {
	*realPeer
	Doors []frontDoor
}

type frontDoor struct{ Port, Behind string } // ports

var frontConfig = template.Must(template.New("").Parse(`
global
	log stderr local0
defaults
	mode tcp
	log global
	timeout connect 10s
	timeout client 60s
	timeout server 60s
	timeout tunnel 60s
{{range .Doors}}
listen to{{.Behind}}
	bind 127.0.0.1:{{.Port}} ssl crt both.pem
	server behind 127.0.0.1:{{.Behind}}
{{end}}
`))

// startFront starts a haproxy with a door for each of the ports behind it.
func startFront(t *testing.T, behind ...string) *front {
	t.Helper()
	f := &front{realPeer: newRealPeer(t, "haproxy", "haproxy")}
	f.start(t, func() (ports, args []string) {
		f.Doors = nil
		for _, b := range behind {
			f.Doors = append(f.Doors, frontDoor{freePort(t), b})
			ports = append(ports, f.Doors[len(f.Doors)-1].Port)
		}
		f.write(t, "haproxy.conf", render(t, frontConfig, f))
		return ports, []string{"-W", "-f", "haproxy.conf"}
	})
	return f
}

// trusted is who trusts the peer.
func (p *realPeer) trusted(t *testing.T) *x509.CertPool {
	t.Helper()
	certificate, err := os.ReadFile(p.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return roots
}

// TestHTTPSProxy calls through a squid and a tinyproxy behind TLS. The origins'
// certificates are not known to who trusts the proxy, nor the other way round.
func TestHTTPSProxy(t *testing.T) {
	all := startProxied(t)
	s := startSquid(t, "Digest", "Basic")
	f := startFront(t, s.Open, s.Locked, startTinyproxy(t, true).Port)
	roots := f.trusted(t)
	for _, d := range []door{
		{name: "open squid", proxy: proxyOn(t, proxy.HTTPS, f.Doors[0].Port), roots: roots, keys: openDoor},
		{name: "squid", proxy: proxyOn(t, proxy.HTTPS, f.Doors[1].Port), roots: roots, keys: bothKeys},
		{name: "tinyproxy", proxy: proxyOn(t, proxy.HTTPS, f.Doors[2].Port), roots: roots, keys: basicKeys, hangsUp: true, toWrong: http.StatusUnauthorized},
	} {
		d.through(t, all)
	}
	t.Run("not trusted", func(t *testing.T) {
		c := newPeerCaller(t, all.roots, catena.WithProxy(proxyOn(t, proxy.HTTPS, f.Doors[0].Port)))
		for _, o := range all.all[:2] {
			_, err := c.do(t.Context(), "GET", o.url+"/", nil)
			var unknown *tls.CertificateVerificationError
			if !errors.As(err, &unknown) {
				t.Errorf("%s: error %+v, want one about the proxy's certificate", o.name, err)
			}
		}
	})
}
