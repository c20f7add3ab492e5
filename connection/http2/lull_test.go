package http2_test

import (
	"errors"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http2"
	xhttp2 "golang.org/x/net/http2"
)

// newTCPPeer is newSilentPeer over a socket of the system.
func newTCPPeer(t *testing.T) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return newPeerOver(t, ours, theirs, http2.Options{})
}

func (p *peer) settle() {
	p.t.Helper()
	p.write(func() error { return p.fr.WriteSettings() })
	select {
	case <-p.settled:
	case <-time.After(patience):
		p.t.Fatal("the SETTINGS are not acknowledged")
	}
}

// awaitLull waits until the connection's goroutine sleeps, and returns which it is.
func awaitLull(t *testing.T) (goroutine string) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	late := time.After(patience)
	again := time.NewTicker(http2.LullTime / 10)
	defer again.Stop()
	for {
		all := string(stacks[:runtime.Stack(stacks, true)])
		for stack := range strings.SplitSeq(all, "\n\n") {
			if strings.Contains(stack, "http2.(*reader).sleep(") {
				goroutine, _, _ = strings.Cut(stack, " [")
				return goroutine
			}
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("nobody sleeps:\n%s", all)
		}
	}
}

// An idle connection is left alone once it is small.
func TestLullComesOnce(t *testing.T) {
	p := newTCPPeer(t)
	p.settle()
	p.works()
	first := awaitLull(t)
	<-time.After(5 * http2.LullTime) // where there were more, they would be over
	if now := awaitLull(t); now != first {
		t.Errorf("%s sleeps, it was %s", now, first)
	}
}

// A connection that was idle for a while is as good as before.
func TestLull(t *testing.T) {
	tests := map[string]func(t *testing.T, p *peer){
		"an exchange": func(t *testing.T, p *peer) { p.works() },
		"an exchange, and another lull": func(t *testing.T, p *peer) {
			p.works()
			awaitLull(t)
			p.works()
		},
		"a part of a frame": func(t *testing.T, p *peer) {
			p.raw([]byte{0, 0, 8, byte(xhttp2.FramePing)})
			awaitLull(t)
			p.raw([]byte{1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8})
			p.works()
		},
		"a GOAWAY": func(t *testing.T, p *peer) {
			p.goAway(0, xhttp2.ErrCodeNo, "")
			awaitRetirement(t, p.client, "GOAWAY")
		},
		"the end": func(t *testing.T, p *peer) {
			p.nc.Close()
			awaitRetirement(t, p.client, "the server closed the connection")
		},
		"a breach": func(t *testing.T, p *peer) {
			p.raw([]byte{0, 0, 0, byte(xhttp2.FrameContinuation), 0, 0, 0, 0, 1})
			awaitRetirement(t, p.client, "CONTINUATION without HEADERS")
		},
		"Close": func(t *testing.T, p *peer) { p.client.Close() },
	}
	for name, then := range tests {
		t.Run(name, func(t *testing.T) {
			p := newTCPPeer(t)
			p.settle()
			p.works()
			awaitLull(t)
			then(t, p)
		})
	}
}

func awaitRetirement(t *testing.T, c *http2.Conn, want string) {
	t.Helper()
	why := make(chan error, 1)
	c.OnRetire(func(err error) { why <- err })
	select {
	case err := <-why:
		if !strings.Contains(err.Error(), want) {
			t.Errorf("retired for %q, want %q", err, want)
		}
	case <-time.After(patience):
		t.Fatal("it is not retired")
	}
}

// A server that is silent at first is still held to begin with SETTINGS.
func TestNoLullBeforeSettings(t *testing.T) {
	p := newTCPPeer(t)
	<-time.After(3 * http2.LullTime) // where there was one, it would be over
	p.raw([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	awaitRetirement(t, p.client, "HTTP/1.1")
}

// A lull does not come while a response is awaited, nor does it end a wait.
func TestNoLullInAnExchange(t *testing.T) {
	p := newTCPPeer(t)
	p.settle()
	s, id := p.get()
	<-time.After(3 * http2.LullTime)
	p.respond(id, true, ":status", "204")
	if resp := head(t, s); resp.StatusCode != 204 {
		t.Error(resp.Status)
	}
}

func TestSocketErrors(t *testing.T) {
	tests := map[string]struct {
		end  func(nc *net.TCPConn)
		want string
		is   error
	}{
		"end":   {func(nc *net.TCPConn) { nc.Close() }, "the server closed the connection: unexpected EOF", nil},
		"reset": {func(nc *net.TCPConn) { nc.SetLinger(0); nc.Close() }, "the connection failed: read tcp ", syscall.ECONNRESET},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newTCPPeer(t)
			p.settle()
			s, _ := p.get()
			tt.end(p.nc.(*net.TCPConn))
			_, err := s.ReadResponseHeaders(nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
