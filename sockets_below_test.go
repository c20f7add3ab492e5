package catena_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/proxy"
)

// pieces answers each number in the request's body with as many bytes, at once.
func pieces(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	for {
		var n int
		if _, err := fmt.Fscanln(r.Body, &n); err != nil {
			return
		}
		w.Write(make([]byte, n))
		w.(http.Flusher).Flush()
	}
}

// gateway is an HTTP proxy that does nothing but CONNECT.
func gateway(w http.ResponseWriter, r *http.Request) {
	to, err := net.Dial("tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer to.Close()
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	io.WriteString(c, tunnelOpen)
	go func() { // ends with the two connections
		io.Copy(to, buffered)
		to.Close()
	}()
	io.Copy(c, to)
}

// Connections of an application's, to embed and to wrap.
type (
	embedding struct{ *net.TCPConn }
	wrapper   struct{ net.Conn }
	showing   struct{ net.Conn }
)

func (s showing) NetConn() net.Conn { return s.Conn }

// Over sockets of the system, through a proxy or of the application's making, a
// response is read as it comes: nothing that came waits for more to come.
func TestPiecesOverSockets(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(pieces))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()
	plain, secure := httptest.NewServer(http.HandlerFunc(gateway)), httptest.NewTLSServer(http.HandlerFunc(gateway))
	defer plain.Close()
	defer secure.Close()
	trust := origin.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	through := func(kind proxy.Type, rawURL string) catena.Option {
		u, err := url.Parse(rawURL)
		if err != nil {
			t.Fatal(err)
		}
		port, _ := strconv.Atoi(u.Port())
		return catena.WithProxy(proxy.Proxy{Type: kind, Host: u.Hostname(), Port: port})
	}
	dialing := func(wrap func(c net.Conn) net.Conn) catena.Option {
		return catena.WithDialContext(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return wrap(c), nil
		})
	}
	for name, option := range map[string]catena.Option{
		"direct":      catena.WithProxy(proxy.Proxy{}),
		"HTTP proxy":  through(proxy.HTTP, plain.URL),
		"HTTPS proxy": through(proxy.HTTPS, secure.URL),
		"a socket":    dialing(func(c net.Conn) net.Conn { return c }),
		"embedded":    dialing(func(c net.Conn) net.Conn { return embedding{c.(*net.TCPConn)} }),
		"wrapped":     dialing(func(c net.Conn) net.Conn { return wrapper{c} }),
		"shown":       dialing(func(c net.Conn) net.Conn { return showing{c} }),
	} {
		t.Run(name, func(t *testing.T) {
			client, err := catena.New(catena.WithTLSConfig(&tls.Config{RootCAs: trust}), option)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			var calls sync.WaitGroup
			defer calls.Wait()
			for range 4 {
				calls.Go(func() { piecemeal(t, client, origin.URL) })
			}
		})
	}
}

// piecemeal asks for pieces, each when it has the one before.
func piecemeal(t *testing.T, client *catena.Client, url string) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ask, asks := io.Pipe()
	defer asks.Close()
	req, err := http.NewRequestWithContext(ctx, "POST", url, ask)
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Errorf("by %s", resp.Proto)
		return
	}
	for n := 1; n < 400_000; n = n*2 + 1 {
		fmt.Fprintln(asks, n)
		if k, err := io.ReadFull(resp.Body, make([]byte, n)); err != nil {
			t.Errorf("%d bytes of %d, %v", k, n, err)
			return
		}
	}
}
