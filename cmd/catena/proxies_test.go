package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gatekeeper is an HTTP proxy that takes credentials of some schemes, or of none. It
// answers requests itself and opens tunnels to loopback.
type gatekeeper struct {
	port  string
	takes []string

	mu   sync.Mutex // guards told
	told []string   // what it was asked, and with which credentials
}

// keepGate starts a proxy, over TLS where there is a certificate.
func keepGate(t *testing.T, certificate *tls.Certificate, takes ...string) *gatekeeper {
	t.Helper()
	g := &gatekeeper{takes: takes}
	s, err := listen(func(c net.Conn) {
		if certificate != nil {
			c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*certificate}})
		}
		g.serve(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	g.port = fmt.Sprint(s.port())
	return g
}

func (g *gatekeeper) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		got := credentialText(req.Header.Get("Proxy-Authorization"), req.Method, req.RequestURI)
		text := req.Method + " " + req.RequestURI + " " + got
		if values := req.Header["X-Gate"]; values != nil {
			text += " " + strings.Join(values, ",")
		}
		g.mu.Lock()
		g.told = append(g.told, text)
		g.mu.Unlock()
		switch {
		case len(g.takes) > 0 && !slices.Contains(g.takes, got):
			var b bytes.Buffer
			b.WriteString("HTTP/1.1 407 Who are you\r\nContent-Length: 7\r\n")
			for _, scheme := range g.takes {
				fmt.Fprintf(&b, "Proxy-Authenticate: %s\r\n", challenges[scheme])
			}
			fmt.Fprint(&b, "\r\nrefused")
			c.Write(b.Bytes())
		case req.Method == http.MethodConnect:
			lead(c, r, req.RequestURI, "HTTP/1.1 200 Go on\r\n\r\n")
			return
		default:
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nproxied")
		}
	}
}

// TestHTTPProxies is about what an HTTP proxy is told. ORIGIN is an https server and
// PORT the proxy's.
func TestHTTPProxies(t *testing.T) {
	certificate, err := selfSigned("gate.test")
	if err != nil {
		t.Fatal(err)
	}
	caFile := file(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})))
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "tunneled %q %q", r.Header["Proxy-Authorization"], r.Header["X-Gate"])
	}))
	defer secure.Close()
	const tunneled = "tunneled [] []"
	via := func(scheme string) []string {
		return []string{"-k", "--resolve", "gate.test:PORT:127.0.0.1", "-x", scheme + "gate.test:PORT"}
	}
	tests := []struct {
		name  string
		tls   bool
		takes []string
		args  []string
		code  int
		out   string
		told  []string
	}{
		{"plain", false, nil, append(via(""), "http://a.test/b?c"), 0, "proxied", []string{"GET http://a.test/b?c none"}},
		{"tunnel", false, nil, append(via("http://"), "ORIGIN"), 0, tunneled, []string{"CONNECT AT none"}},
		{"credentials of the option", false, []string{"Basic"}, append(via(""), "-U", rightLogin, "http://a.test/"), 0, "proxied",
			[]string{"GET http://a.test/ Basic"}},
		{"credentials of the option, encoded", false, []string{"Basic"}, append(via(""), "-U", "a%64a:sesame%217", "ORIGIN"), 0, tunneled,
			[]string{"CONNECT AT Basic"}},
		{"credentials of the address", false, []string{"Basic"}, append(via("http://"+rightLogin+"@"), "ORIGIN"), 0, tunneled,
			[]string{"CONNECT AT Basic"}},
		{"the option before the address", false, []string{"Basic"}, append(via("http://eve:x@"), "-U", rightLogin, "ORIGIN"), 0, tunneled,
			[]string{"CONNECT AT Basic"}},
		{"no credentials, plain", false, []string{"Basic"}, append(via(""), "http://a.test/"), 0, "refused", []string{"GET http://a.test/ none"}},
		{"no credentials, plain, -f", false, []string{"Basic"}, append(via(""), "-f", "http://a.test/"), exitStatus, "", []string{"GET http://a.test/ none"}},
		{"no credentials, tunnel", false, []string{"Basic"}, append(via(""), "ORIGIN"), exitReceive, "", []string{"CONNECT AT none"}},
		{"wrong credentials, tunnel", false, []string{"Basic"}, append(via(""), "-U", "ada:sesame!8", "ORIGIN"), exitReceive, "",
			[]string{"CONNECT AT wrong"}},
		{"Digest, plain", false, []string{"Digest"}, append(via(""), "-U", rightLogin, "--proxy-digest", "http://a.test/b?c"), 0, "proxied",
			[]string{"GET http://a.test/b?c none", "GET http://a.test/b?c Digest"}},
		{"Digest, tunnel", false, []string{"Digest"}, append(via("http://"+rightLogin+"@"), "--proxy-digest", "ORIGIN"), 0, tunneled,
			[]string{"CONNECT AT none", "CONNECT AT Digest"}},
		{"Digest, two plain ones", false, []string{"Digest"}, append(via(""), "-U", rightLogin, "--proxy-digest", "http://a.test/", "http://b.test/"), 0, "proxiedproxied",
			[]string{"GET http://a.test/ none", "GET http://a.test/ Digest", "GET http://b.test/ none", "GET http://b.test/ Digest"}},
		{"wrong Digest", false, []string{"Digest"}, append(via(""), "-U", "ada:sesame!8", "--proxy-digest", "ORIGIN"), exitReceive, "",
			[]string{"CONNECT AT none", "CONNECT AT wrong Digest"}},
		{"any", false, []string{"Basic", "Digest"}, append(via(""), "-U", rightLogin, "--proxy-anyauth", "ORIGIN"), 0, tunneled,
			[]string{"CONNECT AT none", "CONNECT AT Digest"}},
		{"any, of one", false, []string{"Basic"}, append(via(""), "-U", rightLogin, "--proxy-anyauth", "ORIGIN"), 0, tunneled,
			[]string{"CONNECT AT none", "CONNECT AT Basic"}},
		{"a field, plain", false, nil, append(via(""), "--proxy-header", "X-Gate: 1", "--proxy-header", "x-gate: 2", "http://a.test/"), 0, "proxied",
			[]string{"GET http://a.test/ none 1,2"}},
		{"a field, tunnel", false, nil, append(via(""), "--proxy-header", "X-Gate: 1", "ORIGIN"), 0, tunneled, []string{"CONNECT AT none 1"}},
		{"the origin's field", false, nil, append(via(""), "-H", "X-Gate: 1", "ORIGIN"), 0, `tunneled [] ["1"]`, []string{"CONNECT AT none"}},
		{"TLS, trusting all", true, []string{"Basic"}, append(via("https://"), "-U", rightLogin, "--proxy-insecure", "ORIGIN"), 0, tunneled,
			[]string{"CONNECT AT Basic"}},
		{"TLS, trusting one", true, []string{"Basic"}, append(via("https://"), "-U", rightLogin, "--proxy-cacert", caFile, "http://a.test/"), 0, "proxied",
			[]string{"GET http://a.test/ Basic"}},
		{"TLS, trusting nobody", true, nil, append(via("https://"), "ORIGIN"), exitCertificate, "", nil},
		{"TLS, trusting it as a server only", true, nil, append(via("https://"), "--cacert", caFile, "ORIGIN"), exitCertificate, "", nil},
		{"no TLS", false, nil, append(via("https://"), "ORIGIN"), exitTLS, "", nil},
		{"no CA file", true, nil, append(via("https://"), "--proxy-cacert", "missing", "ORIGIN"), exitCAFile, "", nil},
		{"not for this host", false, nil, append(via(""), "--noproxy", "a.test,127.0.0.0/8", "ORIGIN"), 0, tunneled, nil},
		{"for this host", false, nil, append(via(""), "--noproxy", "a.test", "ORIGIN"), 0, tunneled, []string{"CONNECT AT none"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			own := &certificate
			if !tt.tls {
				own = nil
			}
			g := keepGate(t, own, tt.takes...)
			args := []string{"-v", "--trace"}
			for _, a := range tt.args {
				args = append(args, strings.NewReplacer("PORT", g.port, "ORIGIN", secure.URL).Replace(a))
			}
			got := catenaRun(t, "", args...)
			if got.code != tt.code || got.stdout != tt.out {
				t.Errorf("exit code %d, output %q; want %d, %q; errors:\n%s", got.code, got.stdout, tt.code, tt.out, got.stderr)
			}
			at := strings.TrimPrefix(secure.URL, "https://")
			for i, text := range tt.told {
				tt.told[i] = strings.ReplaceAll(text, "AT", at)
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if diff := cmp.Diff(tt.told, g.told); diff != "" {
				t.Errorf("what the proxy was told (-want +got):\n%s", diff)
			}
			noSecret(t, got.stderr)
		})
	}
}

// TestVerboseTargetThroughProxies: -v shows the target as it is on the wire.
func TestVerboseTargetThroughProxies(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	g := keepGate(t, nil)
	socks, err := listen(serveSOCKS5)
	if err != nil {
		t.Fatal(err)
	}
	defer socks.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	for _, tt := range []struct{ via, want string }{
		{"", "> GET /a HTTP/1.1\n"},
		{"http://127.0.0.1:" + g.port, "> GET http://localhost:" + port + "/a HTTP/1.1\n"},
		{fmt.Sprintf("socks5://127.0.0.1:%d", socks.port()), "> GET /a HTTP/1.1\n"},
	} {
		got := catenaRun(t, "", "-v", "-x", tt.via, "http://localhost:"+port+"/a")
		if got.code != 0 || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("through %q: exit code %d, errors:\n%s", tt.via, got.code, got.stderr)
		}
	}
}

// TestVerboseTunnel: -v shows each CONNECT and its answer, the one that decides a
// failure too.
func TestVerboseTunnel(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil }))
	defer secure.Close()
	at := strings.TrimPrefix(secure.URL, "https://")
	g := keepGate(t, nil, "Basic")
	const first = `* proxy http://127.0.0.1:GATE
> CONNECT AT HTTP/1.1
> Host: AT
> Proxy-Connection: Keep-Alive
> User-Agent: me
>
< HTTP/1.1 407 Who are you
< Content-Length: 7
< Proxy-Authenticate: Basic realm="here"
<
`
	second := strings.Replace(first, "> Proxy-Con", "> Proxy-Authorization: ██\n> Proxy-Con", 1)
	opened, _, _ := strings.Cut(second, "< ")
	for _, tt := range []struct{ name, user, want string }{
		{"opened", rightLogin, first + opened + `< HTTP/1.1 200 Go on
<
* connection 1 to 127.0.0.1:GATE, proxy http://127.0.0.1:GATE, http/1.1
> GET / HTTP/1.1
> Host: AT
> Accept: */*
> Connection: Keep-Alive
> User-Agent: me
>
< HTTP/1.1 200 OK
< Content-Length: 0
<
`},
		{"refused", "ada:sesame!8", first + second},
	} {
		got := catenaRun(t, "", "-vk", "-A", "me", "--proxy-anyauth", "-x", "127.0.0.1:"+g.port, "-U", tt.user, secure.URL)
		shown, _, _ := strings.Cut(got.stderr, "catena: (")
		shown = strings.NewReplacer(g.port, "GATE", at, "AT").Replace(shown)
		shown = regexp.MustCompile(`connection \d+`).ReplaceAllString(shown, "connection 1")
		if diff := cmp.Diff(tt.want, shown); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		noSecret(t, got.stderr)
	}
}

// TestSOCKSProxies is about the handshakes. ORIGIN is an http server's port and PORT
// the proxy's.
func TestSOCKSProxies(t *testing.T) {
	s := serve(t, echoHost)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	userPassword := "\x01\x03ada\x08sesame!7"
	name := "\x05\x01\x00\x03\x06a.test"
	tests := []struct {
		name, scheme string
		args         []string
		talk         []string // what the proxy reads, up to the port, and says in turn
		host         string
		code         int
	}{
		{"socks5", "socks5://", nil, []string{"\x05\x01\x00", "\x05\x00", name + "PP", "OK5"}, "a.test", 0},
		{"socks5h", "socks5h://", nil, []string{"\x05\x01\x00", "\x05\x00", name + "PP", "OK5"}, "a.test", 0},
		{"socks5 with credentials", "socks5://", []string{"-U", rightLogin},
			[]string{"\x05\x02\x00\x02", "\x05\x02", userPassword, "\x01\x00", name + "PP", "OK5"}, "a.test", 0},
		{"socks5 with credentials of the address", "socks5://" + rightLogin + "@", []string{"--proxy-digest"},
			[]string{"\x05\x02\x00\x02", "\x05\x02", userPassword, "\x01\x00", name + "PP", "OK5"}, "a.test", 0},
		{"socks5 with credentials it refuses", "socks5://" + rightLogin + "@", nil,
			[]string{"\x05\x02\x00\x02", "\x05\x02", userPassword, "\x01\x01"}, "a.test", exitSOCKS},
		{"socks5 without credentials it wants", "socks5://", nil, []string{"\x05\x01\x00", "\x05\xff"}, "a.test", exitSOCKS},
		{"socks5 that closes", "socks5://", nil, []string{"\x05\x01\x00", ""}, "a.test", exitSOCKS},
		{"socks4", "socks4://", []string{"-U", rightLogin, "--resolve", "a.test:ORIGIN:127.0.0.1"},
			[]string{"\x04\x01PP\x7f\x00\x00\x01ada\x00", "\x00\x5a\x00\x00\x00\x00\x00\x00"}, "a.test", 0},
		{"socks4a", "socks4a://", nil,
			[]string{"\x04\x01PP\x00\x00\x00\x01\x00a.test\x00", "\x00\x5a\x00\x00\x00\x00\x00\x00"}, "a.test", 0},
		{"socks4a that refuses", "socks4a://", nil,
			[]string{"\x04\x01PP\x00\x00\x00\x01\x00a.test\x00", "\x00\x5b\x00\x00\x00\x00\x00\x00"}, "a.test", exitSOCKS},
		{"socks4 can't be told", "socks4://", nil, nil, "[::1]", exitSOCKS},
		{"a name for socks4", "socks4://", nil, nil, strings.Repeat("a", 64), exitDNS},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			number := 0
			fmt.Sscan(port, &number)
			script := strings.NewReplacer("PP", string([]byte{byte(number >> 8), byte(number)}), "OK5", "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
			proxy, err := listen(func(c net.Conn) {
				ready := ""
				for i, part := range tt.talk {
					part = script.Replace(part)
					if i%2 == 1 {
						if ready = part; i < len(tt.talk)-1 || tt.code != 0 {
							io.WriteString(c, part)
						}
						continue
					}
					b := make([]byte, len(part))
					if io.ReadFull(c, b); string(b) != part {
						t.Errorf("the proxy was told %q, want %q", b, part)
						return
					}
				}
				if tt.code == 0 {
					lead(c, c, "127.0.0.1:"+port, ready)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			args := []string{"-v", "--trace", "-x", fmt.Sprintf("%s127.0.0.1:%d", tt.scheme, proxy.port())}
			for _, a := range tt.args {
				args = append(args, strings.ReplaceAll(a, "ORIGIN", port))
			}
			got := catenaRun(t, "", append(args, "http://"+tt.host+":"+port+"/")...)
			if want := tt.host + ":" + port; got.code != tt.code || tt.code == 0 && got.stdout != want {
				t.Errorf("exit code %d, output %q; want %d; errors:\n%s", got.code, got.stdout, tt.code, got.stderr)
			}
			noSecret(t, got.stderr)
		})
	}
}

// TestEnvironmentProxy: options apply to the environment's proxies too.
func TestEnvironmentProxy(t *testing.T) {
	g := keepGate(t, nil, "Basic")
	for name, value := range map[string]string{
		"http_proxy": "http://eve:x@127.0.0.1:" + g.port, "HTTP_PROXY": "", "all_proxy": "", "ALL_PROXY": "", "REQUEST_METHOD": "",
		"no_proxy": "a.test", "NO_PROXY": "a.test",
	} {
		t.Setenv(name, value)
	}
	run := func(args ...string) result {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		return result{code, stdout.String(), stderr.String()}
	}
	if got := run("-U", rightLogin, "http://b.test/"); got != (result{stdout: "proxied"}) {
		t.Errorf("with credentials: %+v", got)
	}
	if got := run("--connect-timeout", "1", "--resolve", "a.test:80:127.0.0.1", "-U", rightLogin, "--noproxy", "c.test", "http://a.test/"); got != (result{stdout: "proxied"}) {
		t.Errorf("without NO_PROXY: %+v", got)
	}
	if diff := cmp.Diff([]string{"GET http://b.test/ Basic", "GET http://a.test/ Basic"}, g.told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if os.Getenv("NO_PROXY") != "a.test" {
		t.Error("the process's own NO_PROXY was changed")
	}
}

func TestProxyNotFound(t *testing.T) {
	got := catenaRun(t, "", "-x", strings.Repeat("a", 64)+":1", "http://b.test/")
	if got.code != exitProxyDNS {
		t.Errorf("%+v, want exit code %d", got, exitProxyDNS)
	}
	got = catenaRun(t, "", "-x", closedPort(t), "http://b.test/")
	if got.code != exitConnect {
		t.Errorf("%+v, want exit code %d", got, exitConnect)
	}
}
