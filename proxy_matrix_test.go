package catena_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// The matrix of real sockets: every type of proxy, with every kind of credentials, to
// every kind of origin. What is to come of a case follows from the rules in want.
var (
	wireProxies     = []proxy.Type{proxy.Direct, proxy.HTTP, proxy.HTTPS, proxy.SOCKS4, proxy.SOCKS4A, proxy.SOCKS5}
	wireCredentials = []credentials{openProxy, noLogin, rightLogin, wrongLogin, rightAnswer, wrongAnswer}
	wireProtocols   = []string{h1, https1, h2, h2c}
	wireHosts       = []string{origin, wireIPv4, wireIPv6}
)

// credentials is what the proxy wants and what the client has.
type credentials string

const (
	openProxy   credentials = "none wanted"
	noLogin     credentials = "none"
	rightLogin  credentials = "right"        // in Proxy.User
	wrongLogin  credentials = "wrong"        // in Proxy.User
	rightAnswer credentials = "right answer" // of the proxy's authenticator
	wrongAnswer credentials = "wrong answer" // of the proxy's authenticator
)

const (
	wireIPv4 = "192.0.2.1" // the origin's address, which its name has too
	wireIPv6 = "2001:db8::1"

	wireProxyHost = "proxy.test"
	wireProxyIPv4 = "192.0.2.9"

	goodLogin = "ada:right"
	badLogin  = "eve:wrong"
)

// wireCase is one place in the matrix.
type wireCase struct {
	proxy       proxy.Type
	credentials credentials
	protocol    string
	host        string
}

func (c wireCase) String() string {
	return fmt.Sprintf("%s, %s, %s, %s", c.proxy, c.credentials, c.protocol, c.host)
}

func (c wireCase) secure() bool { return c.protocol == https1 || c.protocol == h2 }

func (c wireCase) port() string {
	if c.secure() {
		return "443"
	}
	return "80"
}

// wireOutcome is what comes of a case.
type wireOutcome struct {
	Result  string   // the status, or the kind of the error
	Lookups []string // names that we resolved
	Dials   []string // addresses that we opened sockets to
	Proxy   []string // what the proxy was told
	Origin  []string // the requests that came to the origin
}

func TestProxyMatrix(t *testing.T) {
	certificate, roots := certificateFor(t, append(wireHosts, wireProxyHost)...)
	var (
		mu       sync.Mutex // guards outcomes
		outcomes = map[wireCase]wireOutcome{}
	)
	t.Run("cases", func(t *testing.T) { // ends when all have
		for _, c := range wireCases() {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				got := c.play(t, certificate, roots)
				if diff := cmp.Diff(c.want(), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[c] = got
			})
		}
	})
	if t.Failed() || len(outcomes) < len(wireCases()) { // -run chose some
		return
	}
	const file = "testdata/proxy-matrix.txt"
	table := wireTable(outcomes)
	if *updateMatrix {
		if err := os.WriteFile(file, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(held), table); diff != "" {
		t.Errorf("%s (-want +got; -update-matrix writes it anew):\n%s", file, diff)
	}
}

var updateMatrix = flag.Bool("update-matrix", false, "write testdata/proxy-matrix.txt anew")

func wireCases() []wireCase {
	var all []wireCase
	for _, p := range wireProxies {
		for _, a := range wireCredentials {
			for _, protocol := range wireProtocols {
				for _, host := range wireHosts {
					all = append(all, wireCase{p, a, protocol, host})
				}
			}
		}
	}
	return all
}

// play makes the call of a case on servers of its own.
func (c wireCase) play(t *testing.T, certificate tls.Certificate, roots *x509.CertPool) wireOutcome {
	o := &fakeOrigin{}
	n := &fakeNet{
		routes: map[string]string{},
		names: map[string][]netip.Addr{
			origin:        {netip.MustParseAddr(wireIPv4)},
			wireProxyHost: {netip.MustParseAddr(wireProxyIPv4)},
		},
	}
	at := o.start(t, c, certificate)
	for _, host := range wireHosts {
		n.routes[net.JoinHostPort(host, c.port())] = at
	}
	p := &fakeProxy{kind: c.proxy, net: n}
	if c.credentials != openProxy {
		p.login = goodLogin
	}
	if c.proxy != proxy.Direct {
		n.routes[wireProxyIPv4+":3128"] = p.start(t, certificate)
	}
	client, err := catena.New(append(c.options(), catena.WithDNS(n), catena.WithDialContext(n.dial),
		catena.WithTLSConfig(&tls.Config{RootCAs: roots}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	result := c.call(t, client)
	return wireOutcome{result, n.lookups.all(), n.dials.all(), p.told.all(), o.requests.all()}
}

// options are the client's for the case's proxy, credentials and protocol.
func (c wireCase) options() []catena.Option {
	var opts []catena.Option
	p := proxy.Proxy{}
	if c.proxy != proxy.Direct {
		p = proxy.Proxy{Type: c.proxy, Host: wireProxyHost, Port: 3128}
	}
	user, password, _ := strings.Cut(c.login(), ":")
	switch c.credentials {
	case rightLogin, wrongLogin:
		if c.proxy != proxy.Direct {
			p.User = url.UserPassword(user, password)
		}
	case rightAnswer, wrongAnswer:
		opts = append(opts, catena.WithProxyAuthenticator(auth.Basic(user, password)))
	}
	switch c.protocol {
	case https1:
		opts = append(opts, catena.WithProtocols("http/1.1"))
	case h2c:
		opts = append(opts, catena.WithProtocols("h2c"))
	}
	return append(opts, catena.WithProxy(p))
}

// call asks for a page with credentials for the origin.
func (c wireCase) call(t *testing.T, client *catena.Client) (result string) {
	t.Helper()
	u := url.URL{Scheme: "http", Host: c.hostField(), Path: "/a", RawQuery: "b"}
	if c.secure() {
		u.Scheme = "https"
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", u.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", originSecret)
	req.Header.Set("Cookie", cookieSecret)
	resp, err := client.Do(req)
	if err != nil {
		return wireError(t, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Errorf("read the body: %v", err)
	}
	return resp.Status[:3]
}

// wireError is an error's kind, as a program would tell it. No error shows a
// password.
func wireError(t *testing.T, err error) string {
	t.Helper()
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "right") || strings.Contains(text, "wrong") {
		t.Errorf("a password is in the error: %s", text)
	}
	var (
		refused *route.ProxyError
		socks   *proxy.SOCKSError
		noRoute *route.Error
	)
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("ProxyError %d", refused.StatusCode)
	case errors.Is(err, proxy.ErrUnauthorized) && errors.As(err, &socks):
		return "SOCKSError, ErrUnauthorized"
	case errors.As(err, &noRoute):
		return "route.Error: " + noRoute.Err.Error()
	}
	return err.Error()
}

// fakeOrigin is the server of a case.
type fakeOrigin struct{ requests transcript }

// start lets o serve the case's protocol on loopback until the test ends.
func (o *fakeOrigin) start(t *testing.T, c wireCase, certificate tls.Certificate) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: o, Protocols: &http.Protocols{}, ErrorLog: discardLog}
	s.Protocols.SetHTTP1(c.protocol == h1 || c.protocol == https1)
	s.Protocols.SetHTTP2(c.protocol == h2)
	s.Protocols.SetUnencryptedHTTP2(c.protocol == h2c)
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	var serving sync.WaitGroup
	serving.Go(func() { // ends with Close
		if c.secure() {
			s.ServeTLS(l, "", "")
		} else {
			s.Serve(l)
		}
	})
	t.Cleanup(func() {
		s.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

func (o *fakeOrigin) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	o.requests.add("%s %s", req.Proto, headText(req))
	io.WriteString(w, "hi!")
}
