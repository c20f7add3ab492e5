package catena_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/route"
)

// scripted answers a request to /path with the response kept for it, and any other
// with 200 "ok".
func scripted(script map[string]string) func(c *peerConn) {
	return func(c *peerConn) {
		for c.readRequest() {
			seen := c.peer.seen()
			if text, ok := script[seen[len(seen)-1].URL.Path]; ok {
				c.send(text)
			} else {
				c.send(rawAnswer("200 OK", "ok"))
			}
		}
	}
}

func redirectTo(status int, location string) string {
	return rawAnswer(fmt.Sprint(status, " ", http.StatusText(status)), "moved", "Location: "+location)
}

// loopbackNames resolves every name to 127.0.0.1 and notes what was asked.
type loopbackNames struct {
	mu    sync.Mutex // guards asked
	asked []string
}

func (n *loopbackNames) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

var _ route.DNS = (*loopbackNames)(nil)

// TestRedirectChain: the last response leads back to all before it.
func TestRedirectChain(t *testing.T) {
	peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), scripted(map[string]string{
		"/1": redirectTo(302, "/2"), "/2": redirectTo(307, "3?q=1"),
	}))
	client := h1Client(t)
	type key struct{}
	req := bodyRequest(t, "GET", peer.url("/1"), "")
	req.Header.Set("X-Mine", "kept")
	resp, err := client.Do(req.WithContext(context.WithValue(req.Context(), key{}, "value")))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	var got []string
	var connection uint64
	for hop := resp; hop != nil; hop = hop.Request.Response {
		info, ok := catena.InfoOf(hop)
		if !ok || info.Protocol != "http/1.1" || info.SentAt.IsZero() || info.ReceivedAt.Before(info.SentAt) {
			t.Errorf("InfoOf %s: %+v, %v", hop.Request.URL, info, ok)
			continue
		}
		if connection != 0 && info.Connection.ID() != connection {
			t.Errorf("%s came over another connection", hop.Request.URL)
		}
		connection = info.Connection.ID()
		if hop.Request.Context().Value(key{}) != "value" || hop.Request.Context().Err() == nil {
			t.Errorf("%s: not the context of the call, which is over", hop.Request.URL)
		}
		if fields := len(hop.Request.Header); fields != 1 {
			t.Errorf("%s: the request has %d fields, want the application's one: %v", hop.Request.URL, fields, hop.Request.Header)
		}
		got = append(got, fmt.Sprint(hop.StatusCode, " ", hop.Request.URL.RequestURI()))
		if hop != resp {
			if rest, err := io.ReadAll(hop.Body); len(rest) != 0 || err != nil {
				t.Errorf("the body of a prior response has %q, %v", rest, err)
			}
			if hop.Header.Get("Location") == "" {
				t.Errorf("a prior response lost its header: %v", hop.Header)
			}
		}
	}
	if diff := gocmp.Diff([]string{"200 /3?q=1", "307 /2", "302 /1"}, got); diff != "" {
		t.Errorf("the responses, last first (-want +got):\n%s", diff)
	}
	if n := peer.accepted(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if req.Response != nil || len(req.Header) != 1 {
		t.Error("the caller's request was changed")
	}
}

// TestRedirectedBodies: which method and body arrive where.
func TestRedirectedBodies(t *testing.T) {
	const oneShot = true
	for _, test := range []struct {
		status  int
		method  string
		oneShot bool
		want    string // what the second request is, or the answer where there is none
	}{
		{301, "POST", false, `GET ""`}, {302, "PUT", false, `GET ""`}, {303, "POST", oneShot, `GET ""`},
		{301, "DELETE", false, `GET ""`}, {303, "QUERY", false, `GET ""`},
		{301, "PROPFIND", false, `PROPFIND "hello"`}, {303, "PROPFIND", false, `PROPFIND "hello"`}, {302, "QUERY", false, `QUERY "hello"`},
		{307, "POST", false, `POST "hello"`}, {308, "PATCH", false, `PATCH "hello"`}, {307, "DELETE", false, `DELETE "hello"`},
		{307, "POST", oneShot, `307 "moved"`}, {308, "PUT", oneShot, `308 "moved"`}, {301, "PROPFIND", oneShot, `301 "moved"`},
		{304, "POST", false, `304 ""`}, {305, "POST", false, `305 "moved"`}, {306, "POST", false, `306 "moved"`},
	} {
		t.Run(fmt.Sprintf("%d %s %v", test.status, test.method, test.oneShot), func(t *testing.T) {
			peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), scripted(map[string]string{
				"/a": redirectTo(test.status, "/b"),
			}))
			req := bodyRequest(t, test.method, peer.url("/a"), "hello")
			req.Header.Set("Content-Type", "text/plain")
			closes := countCloses(req)
			if test.oneShot {
				req.GetBody = nil
			}
			got := outcomeOf(h1Client(t).Do(req))
			if seen := peer.seen(); len(seen) == 2 {
				if got != `200 "ok"` {
					t.Errorf("outcome %s", got)
				}
				got = fmt.Sprintf("%s %q", seen[1].Method, seen[1].body)
				if typed := seen[1].Header.Get("Content-Type") != ""; typed != (seen[1].body != "") {
					t.Errorf("the second request has the fields %v", seen[1].Header)
				}
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			for i, n := range closes() {
				if n != 1 {
					t.Errorf("body %d was closed %d times", i, n)
				}
			}
		})
	}
}

// TestCredentialsOnRedirects: they stay with their origin, also when a later hop
// leads back.
func TestCredentialsOnRedirects(t *testing.T) {
	here, there := listenPair(t, "127.0.0.1", "127.0.0.2")
	port := here.Addr().(*net.TCPAddr).Port
	a := func(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", port, path) }
	b := func(path string) string { return fmt.Sprintf("http://127.0.0.2:%d%s", port, path) }
	origin := startFaultyPeer(t, here, scripted(map[string]string{
		"/within": redirectTo(302, "/end"), "/absolute": redirectTo(302, a("/end")), "/away": redirectTo(302, b("/end")),
		"/and-back": redirectTo(302, b("/back")), "/tempting": redirectTo(302, strings.Replace(b("/end"), "//", "//mallory:x@", 1)),
	}))
	away := startFaultyPeer(t, there, scripted(map[string]string{"/back": redirectTo(302, a("/end"))}))
	for _, test := range []struct {
		path string
		at   *faultyPeer
		kept bool
	}{
		{"/within", origin, true}, {"/absolute", origin, true}, {"/away", away, false},
		{"/and-back", origin, false}, {"/tempting", away, false},
	} {
		client := h1Client(t, catena.WithSecrets("X-Mine"))
		req := bodyRequest(t, "GET", strings.Replace(a(test.path), "//", "//user:hidden@", 1), "")
		req.Host = "mine.test"
		for _, name := range []string{"Cookie", "Proxy-Authorization", "X-Api-Key", "X-Mine", "X-Harmless"} {
			req.Header.Set(name, "a=b")
		}
		resp, err := client.Do(req)
		if got := outcomeOf(resp, err); got != `200 "ok"` {
			t.Fatalf("%s: %s", test.path, got)
		}
		seen := test.at.seen()
		last := seen[len(seen)-1]
		for _, name := range []string{"Cookie", "X-Api-Key", "X-Mine", "Authorization"} {
			if has := last.Header.Get(name) != ""; has != test.kept {
				t.Errorf("%s: the last request has %s: %v, want %v", test.path, name, has, test.kept)
			}
		}
		if last.Header.Get("X-Harmless") == "" || last.Header.Get("Proxy-Authorization") != "" || last.Header.Get("Referer") != "" {
			t.Errorf("%s: the last request has the fields %v", test.path, last.Header)
		}
		if (last.Host == "mine.test") != test.kept {
			t.Errorf("%s: the last request has Host %q", test.path, last.Host)
		}
		if shown := fmt.Sprint(last.Header); strings.Contains(shown, "bWFsbG9yeTp4") {
			t.Errorf("%s: user info of a Location was used: %v", test.path, shown)
		}
	}
}

// TestRedirectTargets: where a Location leads on the wire.
func TestRedirectTargets(t *testing.T) {
	for _, test := range []struct{ location, want, url string }{
		{"Location: /b", `200 "ok"`, "/b#keep"},
		{"Location: /b#c", `200 "ok"`, "/b#c"},
		{"Location: http://✌.test:PORT/b", `200 "ok"`, "/b#keep"},
		{"Location: HTTP://UPPER.test:PORT/b", `200 "ok"`, "/b#keep"},
		{"X-None: 1", `302 "moved"`, "/a#keep"},
		{"Location:", `302 "moved"`, "/a#keep"},
		{"Location: file:///etc/passwd", `302 "moved"`, "/a#keep"},
		{"Location: http://[::1", `302 "moved"`, "/a#keep"},
		{"Location: /b\r\nLocation: /c", `302 "moved"`, "/a#keep"},
		{"Location: /b\r\nLocation: /b", `200 "ok"`, "/b#keep"},
	} {
		names := &loopbackNames{}
		listener := listenLoopback(t, "127.0.0.1")
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		peer := startFaultyPeer(t, listener, scripted(map[string]string{
			"/a": rawAnswer("302 Found", "moved", strings.ReplaceAll(test.location, "PORT", port)),
		}))
		resp, err := h1Client(t, catena.WithDNS(names)).Do(bodyRequest(t, "GET", "http://first.test:"+port+"/a#keep", ""))
		if got := outcomeOf(resp, err); got != test.want {
			t.Errorf("%s: %s, want %s", test.location, got, test.want)
			continue
		}
		if got := resp.Request.URL.RequestURI() + "#" + resp.Request.URL.Fragment; got != test.url {
			t.Errorf("%s: the last URL is %s, want %s", test.location, got, test.url)
		}
		for _, s := range peer.seen() {
			if strings.Contains(s.RequestURI, "#") {
				t.Errorf("%s: a fragment was sent: %s", test.location, s.RequestURI)
			}
		}
		if strings.Contains(test.location, "✌") {
			seen := peer.seen()
			if host := seen[1].Host; host != "xn--7bi.test:"+port || names.asked[1] != "xn--7bi.test" {
				t.Errorf("Host %q, asked for %q", host, names.asked)
			}
		}
	}
}

// TestRedirectFromHTTPS: followed unless it is switched off, without credentials.
func TestRedirectFromHTTPS(t *testing.T) {
	plain := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), rawOK)
	secure := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
		conn := tls.Server(c.Conn, &tls.Config{Certificates: []tls.Certificate{testCertificate()}})
		defer conn.Close()
		c.Conn, c.r = conn, newReader(conn)
		scripted(map[string]string{"/a": redirectTo(302, plain.url("/b"))})(c)
	})
	for _, test := range []struct {
		opts []catena.Option
		want string
	}{
		{nil, `200 "ok"`},
		{[]catena.Option{catena.WithFollowSSLRedirects(false)}, `302 "moved"`},
		{[]catena.Option{catena.WithFollowRedirects(false)}, `302 "moved"`},
	} {
		client := h1Client(t, append(test.opts, catena.WithTLSConfig(&tls.Config{RootCAs: testRoots(), ServerName: origin}))...)
		req := bodyRequest(t, "GET", strings.Replace(secure.url("/a"), "http:", "https:", 1), "")
		req.Header.Set("Authorization", "Bearer hidden")
		if got := outcomeOf(client.Do(req)); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
	for _, s := range plain.seen() {
		if s.Header.Get("Authorization") != "" {
			t.Error("credentials left https")
		}
	}
}

// TestLargeRedirectBody: what is not worth reading is cut off, not waited for.
func TestLargeRedirectBody(t *testing.T) {
	for _, length := range []string{"1073741824", "2000"} {
		synctest.Test(t, func(t *testing.T) {
			network := simnet.New(simnet.WithLatency(time.Millisecond))
			defer network.Close()
			network.AddHost("origin.test", "192.0.2.1")
			listener, err := network.Listen("192.0.2.1:80")
			if err != nil {
				t.Fatal(err)
			}
			peer := startFaultyPeer(t, listener, func(c *peerConn) {
				if c.n > 1 {
					rawOK(c)
					return
				}
				c.readRequest()
				c.send("HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: " + length + "\r\n\r\n")
				c.drip(strings.Repeat("x", 2000), time.Second)
			})
			defer peer.stop()
			client := h1Client(t, catena.WithDialContext(network.DialContext), catena.WithDNS(network))
			defer client.Close()
			began := time.Now()
			if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))); got != `200 "ok"` {
				t.Error(got)
			}
			if took := time.Since(began); took > 500*time.Millisecond {
				t.Errorf("%s bytes: it took %v", length, took)
			}
			if n := client.Pool().ConnectionCount(); n != 1 || peer.accepted() != 2 {
				t.Errorf("%s bytes: %d of %d connections are open, want 1 of 2", length, n, peer.accepted())
			}
		})
	}
}
