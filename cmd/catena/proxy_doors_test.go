//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// The user whom real peers know.
const (
	peerUser     = "ada"
	peerPassword = "Open.sesame-7"
	badPassword  = "Open.barley-8"
	peerRealm    = "gate"
	// peerCrypt is the password as crypt(3) keeps it, by SHA-512.
	peerCrypt = "$6$catena$80ddMhZm9W6gv3yJa3B2fPsze7DGw62Y77VHV/pz5jeNHjSQhNdwDVRpEkLeyvfJAiVAJkvOqWcuPdd/EwLpL0"
)

// door is a way into a real proxy.
type door struct {
	name  string
	proxy proxy.Proxy    // without credentials
	roots *x509.CertPool // whom an HTTPS proxy is trusted by
	keys  []key

	// hangsUp says that the proxy closes the connection after each message that it
	// passes on, and each refusal. A refused body it does not read, so that what it
	// says may get lost.
	hangsUp bool
	toWrong int // the status of its answer to wrong credentials, if that is not 407
}

// key is what a client has to get through a door.
type key struct {
	name          string
	user          *url.Userinfo // goes with the proxy
	authenticator func() auth.Authenticator
	opens         bool
	wrong         bool // and it is of the kind that the door wants
}

var (
	noKey    = key{name: "no credentials"}
	openDoor = []key{{name: "no credentials", opens: true}}
)

func userKey(password string, opens bool) key {
	return key{fmt.Sprintf("of the proxy, right %t", opens), url.UserPassword(peerUser, password), nil, opens, !opens}
}

func basicKey(password string, opens bool) key {
	make := func() auth.Authenticator { return auth.Basic(peerUser, password) }
	return key{fmt.Sprintf("Basic, right %t", opens), nil, make, opens, password != peerPassword}
}

func digestKey(password string, opens bool) key {
	make := func() auth.Authenticator { return auth.Digest(peerUser, password) }
	return key{fmt.Sprintf("Digest, right %t", opens), nil, make, opens, password != peerPassword}
}

func strongestKey(basic, digest string, opens bool) key {
	make := func() auth.Authenticator {
		return auth.Strongest(auth.Basic(peerUser, basic), auth.Digest(peerUser, digest))
	}
	return key{fmt.Sprintf("the strongest, right %t", opens), nil, make, opens, !opens}
}

// passwordKeys are for a SOCKS proxy that wants user and password, basicKeys for an
// HTTP proxy that wants Basic.
var (
	passwordKeys = []key{noKey, userKey(peerPassword, true), userKey(badPassword, false)}
	basicKeys    = append([]key{
		basicKey(peerPassword, true), basicKey(badPassword, false), digestKey(peerPassword, false),
		strongestKey(peerPassword, peerPassword, true),
	}, passwordKeys...)
)

// proxyOn is a proxy on 127.0.0.1.
func proxyOn(t *testing.T, kind proxy.Type, port string) proxy.Proxy {
	t.Helper()
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return proxy.Proxy{Type: kind, Host: "127.0.0.1", Port: n}
}

// isSOCKS is true of proxies that have no idea of HTTP.
func (d door) isSOCKS() bool { return d.proxy.Type != proxy.HTTP && d.proxy.Type != proxy.HTTPS }

// forwards is true where the proxy passes on messages, not bytes.
func (d door) forwards(o *origin) bool { return !d.isSOCKS() && !o.secure && o.protocol == "http/1.1" }

// through calls every origin through the door with every key.
func (d door) through(t *testing.T, all *proxied) {
	for _, o := range all.all {
		for _, k := range d.keys {
			t.Run(d.name+"/"+o.name+"/"+k.name, func(t *testing.T) {
				c := d.caller(t, all, o, k)
				o.seen()
				if k.opens {
					d.passes(c, o, k)
				} else {
					d.stops(c, o, k)
				}
			})
		}
	}
}

func (d door) caller(t *testing.T, all *proxied, o *origin, k key) *peerCaller {
	p := d.proxy
	p.User = k.user
	options := []catena.Option{catena.WithProxy(p), catena.WithProtocols(o.protocols...)}
	if k.authenticator != nil {
		options = append(options, catena.WithProxyAuthenticator(k.authenticator()))
	}
	if d.roots != nil {
		options = append(options, catena.WithProxyTLSConfig(&tls.Config{RootCAs: d.roots}))
	}
	return newPeerCaller(t, all.roots, options...)
}

// passes checks that calls get through, each once, on one connection if the proxy
// lets them.
func (d door) passes(c *peerCaller, o *origin, k key) {
	const gets = 3
	used := map[uint64]bool{}
	for range gets {
		used[c.must("GET", o.url+"/", nil, o.protocol, "small\n").connection] = true
	}
	want := 1
	if d.hangsUp && d.forwards(o) {
		want = gets
	}
	if len(used) != want {
		c.Errorf("%d GETs went by %d connections, want %d", gets, len(used), want)
	}
	calls := gets + 1
	if !d.hangsUp || !d.forwards(o) || k.authenticator == nil {
		calls++
		if d.hangsUp && d.forwards(o) {
			c.client.CloseIdleConnections() // the proxy does not say that it does, and a POST is not sent twice
		}
		body := mebibyte()
		c.must("POST", o.url+"/", body, o.protocol, sum(body))
	}
	c.must("GET", o.url+"/", nil, o.protocol, "small\n")
	if n := c.connected(); !d.forwards(o) && n != 1 {
		c.Errorf("%d connections, want 1", n)
	}
	requests, strays := o.seen()
	if requests != calls {
		c.Errorf("the origin got %d requests, want %d", requests, calls)
	}
	if diff := cmp.Diff([]string(nil), strays); diff != "" {
		c.Errorf("what the origin should not have got (-want +got):\n%s", diff)
	}
	c.byName(d, o)
}

// stops checks that calls end at the proxy, with its answer.
func (d door) stops(c *peerCaller, o *origin, k key) {
	status := http.StatusProxyAuthRequired
	if k.wrong && d.toWrong != 0 {
		status = d.toWrong
	}
	d.refuses(c, o, "GET", nil, status)
	if d.hangsUp && d.forwards(o) {
		a, err := c.do(c.Context(), "POST", o.url+"/", mebibyte())
		if err == nil && a.StatusCode/100 != 4 {
			c.Errorf("POST: answer %+v, want a refusal", a.Response)
		}
	} else {
		d.refuses(c, o, "POST", mebibyte(), status)
	}
	if requests, _ := o.seen(); requests != 0 {
		c.Errorf("the origin got %d requests, want none", requests)
	}
}

func (d door) refuses(c *peerCaller, o *origin, method string, body []byte, status int) {
	c.events.Reset()
	a, err := c.do(c.Context(), method, o.url+"/", body)
	switch {
	case d.forwards(o):
		if err != nil || a.StatusCode != status || len(auth.Challenges(a.Header, challengeOf[status])) == 0 || len(a.body) == 0 {
			c.Errorf("%s: answer %+v, error %+v; want a %d with challenges", method, a.Response, err, status)
		}
	case d.isSOCKS():
		var refused *proxy.SOCKSError
		if !errors.As(err, &refused) || !errors.Is(err, proxy.ErrUnauthorized) {
			c.Errorf("%s: error %+v, want a SOCKSError about credentials", method, err)
		}
	default:
		var refused *route.ProxyError
		if !errors.As(err, &refused) || refused.StatusCode != status ||
			len(auth.Challenges(refused.Head.Header, challengeOf[status])) == 0 || len(refused.Body) == 0 {
			c.Errorf("%s: error %+v, want a ProxyError with a %d and its challenges", method, err, status)
		}
	}
	if n := c.refusals(); status == http.StatusProxyAuthRequired && !d.isSOCKS() && (n < 1 || n > 2) {
		c.Errorf("%s: refused %d times, want once or twice", method, n)
	}
	for _, password := range []string{peerPassword, badPassword} {
		if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, password) {
			c.Errorf("%s: the error shows a password:\n%s", method, text)
		}
	}
}

var challengeOf = map[int]string{
	http.StatusUnauthorized:      "WWW-Authenticate",
	http.StatusProxyAuthRequired: "Proxy-Authenticate",
}

func mebibyte() []byte {
	body := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{2}).Read(body)
	return body
}

// peerCaller is a client of origins that have a certificate of roots. What it
// recorded is checked when the test ends.
type peerCaller struct {
	*testing.T
	client      *catena.Client
	events      *event.Recorder
	connections *event.ConnectionRecorder
}

func newPeerCaller(t *testing.T, roots *x509.CertPool, options ...catena.Option) *peerCaller {
	t.Helper()
	c := &peerCaller{T: t, events: event.NewRecorder(), connections: event.NewConnectionRecorder()}
	var err error
	c.client, err = catena.New(append([]catena.Option{
		catena.WithProxy(proxy.Proxy{}),
		catena.WithTLSConfig(&tls.Config{RootCAs: roots}),
		catena.WithEventListener(c.events),
		catena.WithConnectionListener(c.connections),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.client.Close()
		if err := catenatest.CheckEvents(c.events.Events()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// do reads the answer to its end.
func (c *peerCaller) do(ctx context.Context, method, url string, body []byte, fields ...string) (answer, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	return ask(ctx, c.client, method, url, content, fields...)
}

// must is do for a call that is answered with 200, by the protocol, with want.
func (c *peerCaller) must(method, url string, body []byte, protocol, want string, fields ...string) answer {
	c.Helper()
	a, err := c.do(c.Context(), method, url, body, fields...)
	if err != nil {
		c.Fatalf("%s %s: %+v", method, url, err)
	}
	info, _ := catena.InfoOf(a.Response)
	if a.StatusCode != http.StatusOK || info.Protocol != protocol || string(a.body) != want {
		c.Fatalf("%s %s: status %d by %s, body %.200q; want 200 by %s and %q", method, url, a.StatusCode, info.Protocol, a.body, protocol, want)
	}
	return a
}

// connected is how many connections there have been.
func (c *peerCaller) connected() (n int) {
	for _, e := range c.connections.Events() {
		if e.Name == "Connected" {
			n++
		}
	}
	return n
}

// refusals is how many answers said that credentials are wanted.
func (c *peerCaller) refusals() (n int) {
	for _, e := range c.events.Events() {
		if e.Name == "FollowUpDecision" && (e.Code == http.StatusUnauthorized || e.Code == http.StatusProxyAuthRequired) {
			n++
		}
	}
	return n
}

// byName calls the origin by a name, of which only SOCKS4 wants us to know more.
func (c *peerCaller) byName(d door, o *origin) {
	c.Helper()
	if o.secure { // its certificate is for an address
		return
	}
	c.events.Reset()
	c.must("GET", o.byName()+"/", nil, o.protocol, "small\n")
	looked := false
	for _, e := range c.events.Events() {
		looked = looked || e.Name == "DNSStart"
	}
	if want := d.proxy.Type == proxy.SOCKS4; looked != want {
		c.Errorf("looked up the origin's name: %t, want %t", looked, want)
	}
}
