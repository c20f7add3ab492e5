package connection

import (
	"bytes"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// script is a connection whose peer says text and then ends, whatever it hears.
type script struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error)      { return s.out.Write(p) }
func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return nil }
func (s *script) RemoteAddr() net.Addr             { return nil }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// Whatever a proxy answers to CONNECT: the tunnel is open, refused or broken, and
// CONNECTs are all that was written.
func FuzzAnswerToConnect(f *testing.F) {
	for _, seed := range []string{
		"", opened, challenge + opened, challenge + challenge, "HTTP/1.1 103 X\r\n\r\n" + opened,
		opened + "x", "HTTP/1.0 407 X\r\n\r\nno", "HTTP/1.1 502 Bad Gateway\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "SSH-2.0-x\r\n",
	} {
		f.Add([]byte(seed))
	}
	n := &route.Network{ProxyAuthenticator: authenticatorFunc(func(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
		next := resp.Request.Clone(resp.Request.Context())
		next.Header.Add("X-Try", "again")
		return next, nil
	})}
	if err := n.Validate(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		s := &script{in: bytes.NewReader(answer)}
		d := &dialer{
			route:    &route.Route{Address: route.Address{Scheme: "https", Host: "a.test", Port: 443, Network: n}, Proxy: proxyNamed("p.test")},
			call:     &call{},
			listener: event.NopListener{},
			terms:    Terms{ConnectTimeout: 10 * time.Second, MaxInterim: 10},
			socket:   s,
		}
		d.conn = &RealConnection{socket: newSocket(s)}
		d.conn.through = d.conn.socket
		err := d.openTunnel(t.Context())
		if err == nil && s.in.Len() == 0 && !bytes.Contains(answer, []byte(" 2")) {
			t.Errorf("%q opened a tunnel", answer)
		}
		sent := s.out.Bytes()
		for len(sent) > 0 {
			head, rest, ok := bytes.Cut(sent, []byte("\r\n\r\n"))
			if !ok || !bytes.HasPrefix(head, []byte("CONNECT a.test:443 HTTP/1.1\r\n")) {
				t.Fatalf("sent %q", s.out.Bytes())
			}
			sent = rest
		}
		if n := bytes.Count(s.out.Bytes(), []byte("CONNECT ")); n > maxConnects {
			t.Errorf("%d requests", n)
		}
	})
}
