package catena_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// digestGuard lets in who has the password, by SHA-256 and its own arithmetic. Each count of its nonce is good
// for one request.
type digestGuard struct {
	field, challenge string // the names of the fields
	status           int
	qop              string
	next             string // what it says in Authentication-Info

	mu   sync.Mutex // guards the fields below
	used map[string]bool
	log  []string
}

func originGuard() *digestGuard {
	return &digestGuard{field: "Authorization", challenge: "WWW-Authenticate", status: 401, qop: "auth"}
}

func proxyGuard() *digestGuard {
	return &digestGuard{field: "Proxy-Authorization", challenge: "Proxy-Authenticate", status: 407, qop: "auth"}
}

func (g *digestGuard) demand() string {
	return `Digest realm="r", nonce="first", algorithm=SHA-256, qop="` + g.qop + `", opaque="o"`
}

// admits reports whether a request for target may pass.
func (g *digestGuard) admits(method, target, body string, h http.Header) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	verdict := g.check(method, target, body, h)
	g.log = append(g.log, method+" "+target+" "+verdict)
	return strings.HasPrefix(verdict, "ok")
}

func (g *digestGuard) check(method, target, body string, h http.Header) string {
	value := h.Get(g.field)
	if value == "" {
		return "none"
	}
	p := auth.Challenges(http.Header{"X": {value}}, "X")[0].Params
	sum := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
	a2 := method + ":" + target
	if g.qop == "auth-int" {
		a2 += ":" + sum(body)
	}
	want := sum(strings.Join([]string{sum("me:r:pw"), p["nonce"], p["nc"], p["cnonce"], g.qop, sum(a2)}, ":"))
	key := p["nonce"] + " " + p["nc"]
	switch {
	case p["uri"] != target:
		return "for " + p["uri"]
	case p["response"] != want || p["opaque"] != "o":
		return "wrong"
	case g.used[key]:
		return "used"
	}
	if g.used == nil {
		g.used = map[string]bool{}
	}
	g.used[key] = true
	return "ok " + p["nonce"] + " " + strings.TrimLeft(p["nc"], "0")
}

func (g *digestGuard) saw() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.log...)
}

// handle lets pass what is admitted.
func (g *digestGuard) handle(inside http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !g.admits(r.Method, r.RequestURI, string(body), r.Header) {
			rw.Header().Set(g.challenge, g.demand())
			rw.WriteHeader(g.status)
			return
		}
		if g.next != "" {
			rw.Header().Set("Authentication-Info", g.next)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		inside(rw, r)
	}
}

func echoBody(rw http.ResponseWriter, r *http.Request) { io.Copy(rw, r.Body) }

// TestDigestOverProtocols: the uri is the target of the very request, the body is protected, and a
// redirect gets credentials of its own.
func TestDigestOverProtocols(t *testing.T) {
	for _, qop := range []string{"auth", "auth-int"} {
		t.Run(qop, func(t *testing.T) {
			overProtocols(t, allProtocols, func(w *world) {
				g := originGuard()
				g.qop = qop
				w.client = w.derive(w.root, catena.WithAuthenticator(auth.Digest("me", "pw")))
				w.serve(g.handle(func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/from" {
						rw.Header().Set("Location", "/to?b=2")
						rw.WriteHeader(307)
						return
					}
					echoBody(rw, r)
				}))
				w.do(w.request("POST", "/p?a=1&b=%20", strings.NewReader("body")), "body")
				w.do(w.request("PUT", "/from", strings.NewReader("moved")), "moved")
				want := []string{
					"POST /p?a=1&b=%20 none", "POST /p?a=1&b=%20 ok first 1",
					"PUT /from none", "PUT /from ok first 2", "PUT /to?b=2 ok first 3",
				}
				if diff := cmp.Diff(want, g.saw()); diff != "" {
					w.Errorf("the server saw (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestDigestNextNonce: a Store sends ahead, with the nonce of Authentication-Info.
func TestDigestNextNonce(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		g := originGuard()
		g.next = `qop=auth, nextnonce="second"`
		w.client = w.derive(w.root, catena.WithAuthenticator(auth.Store(auth.Digest("me", "pw"))))
		w.serve(g.handle(echoBody))
		for range 3 {
			w.do(w.request("PUT", "/", strings.NewReader("body")), "body")
		}
		want := []string{"PUT / none", "PUT / ok first 1", "PUT / ok second 1", "PUT / ok second 2"}
		if diff := cmp.Diff(want, g.saw()); diff != "" {
			w.Errorf("the server saw (-want +got):\n%s", diff)
		}
	})
}

// TestDigestOfAPlainProxy: uri is the URL in full, each request has credentials of its own, and the origin's
// challenge has a path for uri.
func TestDigestOfAPlainProxy(t *testing.T) {
	atProxy, atOrigin := proxyGuard(), originGuard()
	const next = `Proxy-Authentication-Info: nextnonce="second"`
	peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
		for c.readRequest() {
			seen := c.peer.seen()
			r := seen[len(seen)-1]
			path := r.URL.RequestURI()
			switch {
			case !atProxy.admits(r.Method, r.RequestURI, r.body, r.Header):
				c.send(rawAnswer("407 Proxy Authentication Required", "", "Proxy-Authenticate: "+atProxy.demand()))
			case !atOrigin.admits(r.Method, path, r.body, r.Header):
				c.send(rawAnswer("401 Unauthorized", "", next, "WWW-Authenticate: "+atOrigin.demand()))
			case path == "/from":
				c.send(redirectTo(302, "/over"))
			case path == "/over":
				c.send(redirectTo(302, "/to"))
			default:
				c.send(rawAnswer("200 OK", "ok"))
			}
		}
	})
	via, err := proxy.Parse(peer.url(""))
	if err != nil {
		t.Fatal(err)
	}
	client := h1Client(t, catena.WithProxy(via), catena.WithAuthenticator(auth.Digest("me", "pw")), catena.WithProxyAuthenticator(auth.Digest("me", "pw")))
	if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://A.test/from", ""))); got != `200 "ok"` {
		t.Error(got)
	}
	wantProxy := []string{
		"GET http://a.test/from none", "GET http://a.test/from ok first 1",
		"GET http://a.test/from ok second 1", "GET http://a.test/over ok second 2", "GET http://a.test/to ok second 3",
	}
	wantOrigin := []string{"GET /from none", "GET /from ok first 1", "GET /over ok first 2", "GET /to ok first 3"}
	if diff := cmp.Diff(wantProxy, atProxy.saw()) + cmp.Diff(wantOrigin, atOrigin.saw()); diff != "" {
		t.Errorf("the proxy and the origin saw (-want +got):\n%s", diff)
	}
}

// TestDigestAheadAndRedirected: what a Store sent is renewed for each hop, what the application set is left alone.
func TestDigestAheadAndRedirected(t *testing.T) {
	g := originGuard()
	peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
		for c.readRequest() {
			seen := c.peer.seen()
			r := seen[len(seen)-1]
			switch {
			case r.Header.Get("Authorization") != "Digest mine" && !g.admits(r.Method, r.RequestURI, r.body, r.Header):
				c.send(rawAnswer("401 Unauthorized", "", "WWW-Authenticate: "+g.demand()))
			case r.URL.Path == "/1":
				c.send(redirectTo(302, "/2"))
			case r.URL.Path == "/2":
				c.send(redirectTo(302, "/3"))
			default:
				c.send(rawAnswer("200 OK", "ok"))
			}
		}
	})
	client := h1Client(t, catena.WithAuthenticator(auth.Store(auth.Digest("me", "pw"))))
	for _, path := range []string{"/", "/1"} {
		if got := outcomeOf(client.Do(bodyRequest(t, "GET", peer.url(path), ""))); got != `200 "ok"` {
			t.Error(got)
		}
	}
	want := []string{"GET / none", "GET / ok first 1", "GET /1 ok first 2", "GET /2 ok first 3", "GET /3 ok first 4"}
	if diff := cmp.Diff(want, g.saw()); diff != "" {
		t.Errorf("the server saw (-want +got):\n%s", diff)
	}
	req := bodyRequest(t, "GET", peer.url("/1"), "")
	req.Header.Set("Authorization", "Digest mine")
	if got := outcomeOf(client.Do(req)); got != `200 "ok"` {
		t.Error(got)
	}
	if seen := peer.seen(); len(seen) != 8 || seen[7].Header.Get("Authorization") != "Digest mine" {
		t.Errorf("the server saw %q", credentialsSeen(peer))
	}
}

// TestDigestAfterAFailure: a server that took the credentials and went silent may know their count.
func TestDigestAfterAFailure(t *testing.T) {
	g := originGuard()
	peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
		for c.readRequest() {
			seen := c.peer.seen()
			r := seen[len(seen)-1]
			admitted := g.admits(r.Method, r.RequestURI, r.body, r.Header)
			switch {
			case !admitted:
				c.send(rawAnswer("401 Unauthorized", "", "WWW-Authenticate: "+g.demand()))
			case len(seen) == 2:
				return
			default:
				c.send(rawAnswer("200 OK", "ok"))
			}
		}
	})
	resp, err := h1Client(t, catena.WithAuthenticator(auth.Digest("me", "pw"))).Do(bodyRequest(t, "PUT", peer.url("/"), "body"))
	if got := outcomeOf(resp, err); !strings.HasPrefix(got, `200 "ok"`) {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"PUT / none", "PUT / ok first 1", "PUT / ok first 2"}, g.saw()); diff != "" {
		t.Errorf("the server saw (-want +got):\n%s", diff)
	}
}

// TestDigestThroughATunnel: proxy and origin each get what is theirs, once.
func TestDigestThroughATunnel(t *testing.T) {
	overProtocols(t, overTLS, func(w *world) {
		atProxy, atOrigin := proxyGuard(), originGuard()
		w.serve(atOrigin.handle(echoBody))
		w.gate(proxyAddr, func(c net.Conn) {
			from := bufio.NewReader(c)
			for {
				r, err := http.ReadRequest(from)
				if err != nil {
					return
				}
				if r.Header.Get("Authorization") != "" {
					w.Error("the proxy saw what is for the origin")
				}
				if atProxy.admits(r.Method, r.RequestURI, "", r.Header) {
					w.lead(c, from, originAddr, tunnelOpen)
					return
				}
				io.WriteString(c, rawAnswer("407 Proxy Authentication Required", "no", "Proxy-Authenticate: "+atProxy.demand()))
			}
		})
		w.client = w.derive(w.root,
			catena.WithProxy(proxy.Proxy{Type: proxy.HTTP, Host: proxyHost, Port: 3128}),
			catena.WithAuthenticator(auth.Digest("me", "pw")), catena.WithProxyAuthenticator(auth.Digest("me", "pw")))
		defer w.client.CloseIdleConnections()
		w.do(w.request("POST", "/", strings.NewReader("body")), "body")
		want := []string{"CONNECT origin.test:8080 none", "CONNECT origin.test:8080 ok first 1"}
		if diff := cmp.Diff(want, atProxy.saw()); diff != "" {
			w.Errorf("the proxy saw (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"POST / none", "POST / ok first 1"}, atOrigin.saw()); diff != "" {
			w.Errorf("the origin saw (-want +got):\n%s", diff)
		}
	})
}

// TestDigestByManyCalls: 64 at a time over one Digest, no count twice.
func TestDigestByManyCalls(t *testing.T) {
	for _, protocol := range []string{h1, h2} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, protocol, catena.WithAuthenticator(auth.Store(auth.Digest("me", "pw"))))
				g := originGuard()
				w.serve(g.handle(echoBody))
				var calls sync.WaitGroup
				for range 64 {
					calls.Go(func() {
						for range 4 {
							w.do(w.request("PUT", "/", strings.NewReader("body")), "body")
						}
					})
				}
				calls.Wait()
				admitted := 0
				for _, line := range g.saw() {
					switch {
					case strings.HasPrefix(line, "PUT / ok"):
						admitted++
					case line != "PUT / none":
						t.Errorf("the server saw %s", line)
					}
				}
				if admitted != 64*4 {
					t.Errorf("%d requests were admitted", admitted)
				}
				w.close()
			})
		})
	}
}
