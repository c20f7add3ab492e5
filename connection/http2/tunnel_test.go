package http2_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catena-http/catena/connection/http2"
	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"
)

var connectAllowed = xhttp2.Setting{ID: 8, Val: 1}

func webSocket(t *testing.T) *http.Request {
	req := request(t, "GET", "http://x.test/chat?room=1")
	req.Header = http.Header{
		"Upgrade": {"websocket"}, "Connection": {"Upgrade"},
		"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}
	return req
}

// A WebSocket's opening becomes an extended CONNECT, and its answer's body the
// tunnel, in both directions and without timeouts.
func TestWebSocket(t *testing.T) {
	bubble(t, "tunnel", func(t *testing.T) {
		p := newPeer(t, http2.Options{}, connectAllowed)
		s := open(t, p.client, terms, webSocket(t), 0)
		if err := s.FinishRequest(nil); err != nil {
			t.Fatal(err)
		}
		got := p.headers()
		want := map[string]string{
			":method": "CONNECT", ":protocol": "websocket", ":scheme": "http",
			":authority": "x.test", ":path": "/chat?room=1", "sec-websocket-version": "13",
		}
		if diff := cmp.Diff(want, got.fields); diff != "" || got.end {
			t.Errorf("fields, end %t (-want +got):\n%s", got.end, diff)
		}
		if s.Upgrade() != nil {
			t.Error("a tunnel before the answer")
		}
		p.respond(got.stream, false, ":status", "200")
		resp := head(t, s)
		tunnel := s.Upgrade()
		if resp.Body != tunnel {
			t.Errorf("body %T, want the tunnel", resp.Body)
		}
		<-after(10 * terms.ReadTimeout)
		io.WriteString(tunnel, "ping")
		if f := p.next(); f.data != "ping" {
			t.Errorf("got %+v", f)
		}
		p.data(got.stream, false, "pong")
		buf := make([]byte, 10)
		if n, err := tunnel.Read(buf); string(buf[:n]) != "pong" || err != nil {
			t.Errorf("read %q, %v", buf[:n], err)
		}
		if err := tunnel.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Error(err)
		}
		if f := p.next(); !f.end {
			t.Errorf("got %+v, want the end", f)
		}
		p.data(got.stream, true, "")
		if _, err := tunnel.Read(buf); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
		s.End()
		p.works()
	})
}

func TestWebSocketRefused(t *testing.T) {
	t.Run("by SETTINGS", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		s := newStream(t, p.client, terms)
		err := s.WriteRequestHeaders(webSocket(t), 0)
		if err == nil || !strings.Contains(err.Error(), "does not take WebSocket over HTTP/2") || s.Written() {
			t.Errorf("error %v", err)
		}
		s.End()
		p.works()
	})
	t.Run("by the answer", func(t *testing.T) {
		p := newPeer(t, http2.Options{}, connectAllowed)
		s := open(t, p.client, terms, webSocket(t), 0)
		s.FinishRequest(nil)
		id := p.headers().stream
		p.respond(id, false, ":status", "403")
		p.data(id, true, "no")
		resp := head(t, s)
		if got, err := io.ReadAll(resp.Body); string(got) != "no" || err != nil || s.Upgrade() != nil {
			t.Errorf("body %q, %v; tunnel %v", got, err, s.Upgrade())
		}
		s.End()
		p.reset(id)
		p.works()
	})
}
