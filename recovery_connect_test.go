package catena_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/proxy"
)

// TestConnectMovesOn: an address that can't be reached is followed by the next one,
// within the call and whatever the method.
func TestConnectMovesOn(t *testing.T) {
	refused, hole := simnet.Faults{Refuse: true}, simnet.Faults{BlackHole: true}
	unreachable := simnet.Faults{DialError: syscall.EHOSTUNREACH}
	for _, test := range []struct {
		name   string
		first  simnet.Faults
		second simnet.Faults
		want   string
		within time.Duration
	}{
		{"first refused", refused, simnet.Faults{}, "200 \"ok\"\nconnect, again: next-route", 100 * time.Millisecond},
		{"first black hole", hole, simnet.Faults{}, "200 \"ok\"\nconnect, again: next-route", 500 * time.Millisecond},
		{"first unreachable", unreachable, simnet.Faults{}, "200 \"ok\"\nconnect, again: next-route", 100 * time.Millisecond},
		{"both refused", refused, refused, "error: refused\nconnect, again: next-route\nconnect: no-more-routes", 100 * time.Millisecond},
		{"hole, then refused", hole, refused, "error: connect timeout\nconnect, again: next-route\nconnect: no-more-routes", 500 * time.Millisecond},
		{"both holes", hole, hole, "error: connect timeout\nconnect, again: next-route\nconnect: no-more-routes", 900 * time.Millisecond},
	} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(test.name+"/"+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					network := simnet.New(simnet.WithLatency(time.Millisecond))
					defer network.Close()
					network.AddHost("origin.test", "192.0.2.1", "192.0.2.2")
					network.SetFaults("192.0.2.1:80", test.first, test.first)
					network.SetFaults("192.0.2.2:80", test.second, test.second)
					listener, err := network.Listen("192.0.2.2:80")
					if err != nil {
						t.Fatal(err)
					}
					peer := startFaultyPeer(t, listener, rawOK)
					client := h1Client(t, catena.WithDialContext(network.DialContext), catena.WithDNS(network),
						catena.WithConnectTimeout(400*time.Millisecond))
					defer client.Close()
					body := map[string]string{"POST": "hello"}[method]
					req := bodyRequest(t, method, "http://origin.test/", body)
					req.GetBody = nil // what was not touched needs no second body
					closes := countCloses(req)
					began := time.Now()
					if diff := gocmp.Diff(test.want, outcomeOf(client.Do(req))); diff != "" {
						t.Errorf("outcome (-want +got):\n%s", diff)
					}
					if took := time.Since(began); took > test.within {
						t.Errorf("it took %v, want %v at most", took, test.within)
					}
					if seen := peer.seen(); len(seen) > 0 && seen[0].body != body {
						t.Errorf("the body came as %q", seen[0].body)
					}
					for _, n := range closes() {
						if n != 1 {
							t.Errorf("the body was closed %d times", n)
						}
					}
				})
			})
		}
	}
}

// TestHandshakeMovesOn: a handshake that is cut off moves on to the next address,
// a certificate that is refused does not.
func TestHandshakeMovesOn(t *testing.T) {
	certificate := testCertificate()
	handshake := func(c *peerConn) {
		conn := tls.Server(c.Conn, &tls.Config{Certificates: []tls.Certificate{certificate}})
		defer conn.Close()
		if conn.Handshake() == nil {
			c.Conn, c.r = conn, newReader(conn)
			rawOK(c)
		}
	}
	for _, test := range []struct {
		name  string
		first func(c *peerConn)
		trust bool
		want  string
		tried int // addresses
	}{
		{"closed in the handshake", func(c *peerConn) { c.readSome(5) }, true, "200 \"ok\"\ntls, again: next-route", 2},
		{"HTTP on the port", func(c *peerConn) { c.send("HTTP/1.1 400 Bad Request\r\n\r\n") }, true, "200 \"ok\"\ntls, again: next-route", 2},
		{"certificate refused", handshake, false, "certificate\ntls: certificate", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := startPair(t, test.first, handshake)
			config := &tls.Config{ServerName: origin}
			if test.trust {
				config.RootCAs = testRoots()
			}
			client := h1Client(t, catena.WithDNS(p), catena.WithTLSConfig(config))
			resp, err := client.Do(bodyRequest(t, "GET", strings.Replace(p.url("/"), "http:", "https:", 1), ""))
			got := outcomeOf(resp, err)
			if refused := (*tls.CertificateVerificationError)(nil); errors.As(err, &refused) {
				got = "certificate" + attemptsOf(err)
			}
			if got != test.want {
				t.Errorf("outcome %s; want %s", got, test.want)
			}
			if tried := min(p.a.accepted(), 1) + min(p.b.accepted(), 1); tried != test.tried {
				t.Errorf("%d addresses were tried, want %d", tried, test.tried)
			}
		})
	}
}

// TestProxiesAreExhausted: an unreachable proxy is followed by the next one, and
// direct is tried only where it is listed.
func TestProxiesAreExhausted(t *testing.T) {
	peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), rawOK)
	gone := listenLoopback(t, "127.0.0.1")
	gone.Close()
	dead, err := proxy.Parse("http://user:hidden@" + gone.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		proxies []proxy.Proxy
		want    string
		failed  int // proxies the selector was told of
	}{
		{[]proxy.Proxy{dead}, "error: refused\nconnect: no-more-routes", 1},
		{[]proxy.Proxy{dead, {}}, "200 \"ok\"\nconnect, again: next-route", 1},
	} {
		selector := &toldSelector{proxies: test.proxies}
		client := h1Client(t, catena.WithProxySelector(selector))
		resp, err := client.Do(bodyRequest(t, "GET", peer.url("/"), ""))
		if strings.Contains(fmt.Sprintf("%+v", err), "hidden") {
			t.Errorf("the error shows the proxy's password: %+v", err)
		}
		if got := outcomeOf(resp, err); got != test.want {
			t.Errorf("%v: %s; want %s", test.proxies, got, test.want)
		}
		if len(selector.failed) != test.failed {
			t.Errorf("the selector was told of %v", selector.failed)
		}
	}
}

// TestNameIsUnknown: a host without address fails at the step "dns".
func TestNameIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New()
		defer network.Close()
		client := h1Client(t, catena.WithDialContext(network.DialContext), catena.WithDNS(network))
		defer client.Close()
		_, err := client.Do(bodyRequest(t, "GET", "http://nobody.test/", ""))
		var unknown *net.DNSError
		if !errors.As(err, &unknown) || !unknown.IsNotFound {
			t.Errorf("error %v; want a *net.DNSError of a name that is not found", err)
		}
		if got := attemptsOf(err); got != "\ndns: no-more-routes" {
			t.Errorf("attempts %q", got)
		}
	})
}
