//go:build unix

package main

import (
	"net/http"
	"os"
	"testing"
	"text/template"

	"github.com/catena-http/catena/proxy"
)

// tinyproxy is a running tinyproxy: HTTP/1.0, one message a connection.
type tinyproxy struct {
	*realPeer
	Port   string
	Locked bool // wants Basic
	Root   bool // whether it may, and must, say who serves
}

var tinyproxyConfig = template.Must(template.New("").Parse(`
Listen 127.0.0.1
Port {{.Port}}
{{if .Root}}
User nobody
Group nogroup
{{end}}
Timeout 60
MaxClients 100
LogLevel Connect
Allow 127.0.0.1
{{if .Locked}}BasicAuth ` + peerUser + ` ` + peerPassword + `{{end}}
`))

func startTinyproxy(t *testing.T, locked bool) *tinyproxy {
	t.Helper()
	p := &tinyproxy{realPeer: newRealPeer(t, "tinyproxy", "tinyproxy"), Locked: locked, Root: os.Getuid() == 0}
	p.start(t, func() (ports, args []string) {
		p.Port = freePort(t)
		return p.command(t)
	})
	return p
}

// command is how it is started, at the port that it has.
func (p *tinyproxy) command(t *testing.T) (ports, args []string) {
	config := p.write(t, "tinyproxy.conf", render(t, tinyproxyConfig, p))
	return []string{p.Port}, []string{"-d", "-c", config}
}

func (p *tinyproxy) proxy(t *testing.T) proxy.Proxy { return proxyOn(t, proxy.HTTP, p.Port) }

// TestTinyproxy calls through a real tinyproxy.
func TestTinyproxy(t *testing.T) {
	all := startProxied(t)
	for _, d := range []door{
		{name: "open", proxy: startTinyproxy(t, false).proxy(t), keys: openDoor, hangsUp: true, toWrong: http.StatusUnauthorized},
		{name: "Basic", proxy: startTinyproxy(t, true).proxy(t), keys: basicKeys, hangsUp: true, toWrong: http.StatusUnauthorized},
	} {
		d.through(t, all)
	}
}
