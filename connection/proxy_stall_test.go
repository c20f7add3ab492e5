package connection

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// stalls are the places at which a proxy can fall silent.
var stalls = map[string]struct {
	kind  proxy.Type
	user  *url.Userinfo
	talk  func(c net.Conn, r *bufio.Reader)                                 // what comes before the silence
	ask   func(via proxy.Proxy, resp *http.Response) (*http.Request, error) // nil: nobody
	step  event.Step
	never bool // it never accepts
}{
	"TCP":              {kind: proxy.HTTP, step: event.StepConnect, never: true},
	"TLS":              {kind: proxy.HTTPS, step: event.StepProxy},
	"answer":           {kind: proxy.HTTP, talk: readHead, step: event.StepProxy},
	"answer over TLS":  {kind: proxy.HTTPS, talk: overTLS(readHead), step: event.StepProxy},
	"half the answer":  {kind: proxy.HTTP, talk: talks(readHead, says("HTTP/1.1 200 OK\r\n")), step: event.StepProxy},
	"after interim":    {kind: proxy.HTTP, talk: talks(readHead, says("HTTP/1.1 103 X\r\n\r\n")), step: event.StepProxy},
	"second answer":    {kind: proxy.HTTP, talk: talks(readHead, says(challenge), readHead), ask: credentials(func(int) string { return "x" }), step: event.StepProxy},
	"TLS in tunnel":    {kind: proxy.HTTP, talk: talks(readHead, says(opened)), step: event.StepTLS},
	"TLS in TLS":       {kind: proxy.HTTPS, talk: overTLS(talks(readHead, says(opened))), step: event.StepTLS},
	"SOCKS5 greeting":  {kind: proxy.SOCKS5, step: event.StepProxy},
	"SOCKS5 password":  {kind: proxy.SOCKS5, user: url.UserPassword("ada", "secret"), talk: talks(reads(4), says("\x05\x02")), step: event.StepProxy},
	"SOCKS5 reply":     {kind: proxy.SOCKS5, talk: talks(reads(3), says("\x05\x00")), step: event.StepProxy},
	"half the reply":   {kind: proxy.SOCKS5, talk: talks(reads(3), says("\x05\x00"), reads(13), says("\x05\x00\x00\x01")), step: event.StepProxy},
	"SOCKS4 reply":     {kind: proxy.SOCKS4, talk: reads(9), step: event.StepProxy},
	"TLS behind SOCKS": {kind: proxy.SOCKS4A, talk: talks(reads(16), says("\x00\x5a\x00\x00\x00\x00\x00\x00")), step: event.StepTLS},
}

func readHead(_ net.Conn, r *bufio.Reader) { readRawHead(r) }

func reads(n int64) func(net.Conn, *bufio.Reader) {
	return func(_ net.Conn, r *bufio.Reader) { io.CopyN(io.Discard, r, n) }
}

func says(text string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, _ *bufio.Reader) { io.WriteString(c, text) }
}

func talks(parts ...func(net.Conn, *bufio.Reader)) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		for _, part := range parts {
			part(c, r)
		}
	}
}

func overTLS(talk func(net.Conn, *bufio.Reader)) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, _ *bufio.Reader) {
		c = tls.Server(c, certified("p.test"))
		talk(c, bufio.NewReader(c))
	}
}

// Wherever a proxy falls silent, the call ends at once when it is canceled, and
// after the connect timeout when it is not; nothing is left open.
func TestStalledProxy(t *testing.T) {
	for name, stall := range stalls {
		for _, cancels := range []bool{true, false} {
			t.Run(map[bool]string{true: "canceled at ", false: "silent at "}[cancels]+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, PoolOptions{}, trusting)
					w.net.AddHost("a.test", "192.0.2.1")
					sockets, closed := 0, 0
					w.raw("p.test", "192.0.2.9", func(_ int, c net.Conn) {
						sockets++
						if stall.talk != nil {
							stall.talk(c, bufio.NewReader(c))
						}
						io.Copy(io.Discard, c) // until the client closes
						closed++
					})
					w.net.SetFaults("192.0.2.9:80", simnet.Faults{BlackHole: stall.never})
					w.through(proxy.Proxy{Type: stall.kind, Host: "p.test", Port: 80, User: stall.user})
					if stall.ask != nil {
						w.authenticator(stall.ask)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					want := 10 * time.Second
					if cancels {
						want = time.Second
						time.AfterFunc(want, cancel)
					}
					start := time.Now()
					_, c, err := w.do(ctx, "https://a.test/")
					if took := time.Since(start); took != want {
						t.Errorf("it took %v, want %v", took, want)
					}
					why, failed := event.ReasonNoMoreRoutes, 1
					if cancels {
						why, failed = event.ReasonCanceled, 0
					}
					var timeout *event.TimeoutError
					switch {
					case cancels && !errors.Is(err, context.Canceled):
						t.Errorf("got %v", err)
					case !cancels && (!errors.As(err, &timeout) || timeout.Step != stall.step || timeout.After != want):
						t.Errorf("got %v", err)
					}
					if a := c.a.Attempts(); len(a) != 1 || a[0].Step != stall.step || a[0].Why != why {
						t.Errorf("attempts %+v", a)
					}
					if w.database.Len() != failed {
						t.Errorf("%d routes are remembered as failed, want %d", w.database.Len(), failed)
					}
					synctest.Wait()
					if sockets != closed || !stall.never && sockets != 1 {
						t.Errorf("%d sockets, %d closed", sockets, closed)
					}
					w.expect(0, 0)
				})
			})
		}
	}
}

// An authenticator that waits is told of the call's end.
func TestCancelWhileAuthenticatorWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, trusting)
		w.newProxy(&fakeProxy{answer: func(int, string) string { return challenge }})
		w.authenticator(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
			if resp.Header.Get("Proxy-Authenticate") != `Basic realm="p"` {
				return nil, nil
			}
			<-resp.Request.Context().Done()
			return nil, resp.Request.Context().Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		start := time.Now()
		_, c, err := w.do(ctx, "https://a.test/")
		if took := time.Since(start); !errors.Is(err, context.Canceled) || took != time.Minute {
			t.Errorf("got %v after %v", err, took)
		}
		if a := c.a.Attempts(); len(a) != 1 || a[0].Why != event.ReasonCanceled {
			t.Errorf("attempts %+v", a)
		}
		w.expect(0, 0)
	})
}

// Calls go on through the proxies that work; the others are tried last while they
// are remembered, and serve again when they are back.
func TestFailover(t *testing.T) {
	const down = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
	for name, tc := range map[string]struct {
		talk func(c net.Conn, r *bufio.Reader)
		kind proxy.Type
		took time.Duration
	}{
		"refuses":           {nil, proxy.HTTP, 0},
		"stalls":            {readHead, proxy.HTTP, 10 * time.Second},
		"answers 502":       {talks(readHead, says("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")), proxy.HTTP, 0},
		"answers 503":       {talks(readHead, says(down)), proxy.HTTP, 0},
		"answers 403":       {talks(readHead, says("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")), proxy.HTTP, 0},
		"wants credentials": {talks(readHead, says(challenge)), proxy.HTTP, 0},
		"is no proxy":       {talks(readHead, says("220 mail.test ESMTP\r\n")), proxy.HTTP, 0},
		"SOCKS5 refuses":    {talks(reads(3), says("\x05\x00"), reads(13), says("\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00")), proxy.SOCKS5, 0},
		"SOCKS4 refuses":    {talks(reads(9), says("\x00\x5b\x00\x00\x00\x00\x00\x00")), proxy.SOCKS4, 0},
		"untrusted":         {overTLS(readHead), proxy.HTTPS, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				w.secureHost()
				w.newProxy(&fakeProxy{})
				first := 0
				w.raw("first.test", "192.0.2.10", func(_ int, c net.Conn) {
					first++
					if tc.talk != nil {
						tc.talk(c, bufio.NewReader(c))
					}
					io.Copy(io.Discard, c)
				})
				w.net.SetFaults("192.0.2.10:80", simnet.Faults{Refuse: tc.talk == nil})
				told := w.tellsSelector(proxy.Proxy{Type: tc.kind, Host: "first.test", Port: 80}, proxyNamed("p.test"))
				start := time.Now()
				_, c, err := w.do(t.Context(), "https://a.test/")
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start).Truncate(time.Second); took != tc.took {
					t.Errorf("it took %v", took)
				}
				if a := c.a.Attempts(); len(a) != 1 || a[0].Why != event.ReasonNextRoute || a[0].Proxy.Host != "first.test" {
					t.Errorf("attempts %+v", a)
				}
				if len(*told) != 1 || (*told)[0] != "https://a.test:443/ through first.test" {
					t.Errorf("the selector was told %q", *told)
				}
				if tc.kind == proxy.HTTPS {
					return // an untrusted one is not remembered
				}
				w.pool.EvictAll()
				if _, c, err = w.do(t.Context(), "https://a.test/"); err != nil || len(c.a.Attempts()) != 0 {
					t.Errorf("then: %v, %+v", err, c.a.Attempts())
				}
				dials := w.net.Dials("192.0.2.10:80")
				w.pool.EvictAll()
				time.Sleep(10 * time.Minute) // the failure is forgotten
				if _, _, err = w.do(t.Context(), "https://a.test/"); err != nil {
					t.Error(err)
				}
				if now := w.net.Dials("192.0.2.10:80"); dials != 1 || now != 2 {
					t.Errorf("the first proxy was dialed %d times, then %d", dials, now)
				}
			})
		})
	}
}

// A proxy that can't be connected to costs its time once, not once an origin; one that
// refuses a tunnel is asked for the next origin's.
func TestDeadProxyIsKnownToAllOrigins(t *testing.T) {
	for name, tc := range map[string]struct {
		faults simnet.Faults
		dials  int
	}{
		"silent":           {simnet.Faults{BlackHole: true}, 1},
		"refusing":         {simnet.Faults{Refuse: true}, 1},
		"refusing tunnels": {simnet.Faults{}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, trusting)
				w.newProxy(&fakeProxy{})
				w.raw("first.test", "192.0.2.10", func(_ int, c net.Conn) {
					talks(readHead, says("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"))(c, bufio.NewReader(c))
					io.Copy(io.Discard, c)
				})
				w.net.SetFaults("192.0.2.10:80", tc.faults)
				w.tellsSelector(proxyNamed("first.test"), proxyNamed("p.test"))
				for i, host := range []string{"a.test", "b.test", "c.test"} {
					config := &tls.Config{Certificates: []tls.Certificate{testAuthority().issue(host)}}
					w.tlsHost(host, fmt.Sprintf("192.0.2.%d", i+1), config, hello)
					if _, _, err := w.do(t.Context(), "https://"+host+"/"); err != nil {
						t.Error(err)
					}
				}
				if dials := w.net.Dials("192.0.2.10:80"); dials != tc.dials {
					t.Errorf("the first proxy was dialed %d times, want %d", dials, tc.dials)
				}
			})
		})
	}
}

// Direct is tried only where it is listed.
func TestDirectIsNoFallback(t *testing.T) {
	for _, listed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, PoolOptions{}, trusting)
			w.secureHost()
			w.net.AddHost("p.test", "192.0.2.9") // nobody listens
			proxies := []proxy.Proxy{proxyNamed("p.test"), {Type: proxy.SOCKS5, Host: "p.test"}}
			if listed {
				proxies = append(proxies, proxy.Proxy{})
			}
			told := w.tellsSelector(proxies...)
			_, _, err := w.do(t.Context(), "https://a.test/")
			if (err == nil) != listed || len(*told) != 2 {
				t.Errorf("listed %v: got %v; told %q", listed, err, *told)
			}
			if n := w.net.Dials("192.0.2.1:443"); (n > 0) != listed {
				t.Errorf("listed %v: %d direct dials", listed, n)
			}
		})
	}
}
