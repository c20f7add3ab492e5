package catena_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/catena-http/catena"
)

// A WebSocket request over HTTP/2 becomes an extended CONNECT (RFC 8441), and the
// response's body can be written to.
func TestWebSocketOverHTTP2(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		echoTunnel(l)
	}()
	client, err := catena.New(catena.WithProtocols("h2c"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		client.Close()
		<-done
	}()
	req, err := http.NewRequest("GET", "http://"+l.Addr().String()+"/chat", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	resp, err := client.RoundTripper().RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("%s: the body is a %T, which can't be written to", resp.Status, resp.Body)
	}
	for _, message := range []string{"ping", "pong"} {
		if _, err := io.WriteString(body, message); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(message))
		if _, err := io.ReadFull(body, got); err != nil || string(got) != message {
			t.Fatalf("read %q, %v; want %q", got, err, message)
		}
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
	if n := client.Pool().IdleCount(); n != 1 {
		t.Errorf("%d connections are idle, want the one whose stream has ended", n)
	}
}

// echoTunnel serves one connection: it accepts an extended CONNECT and sends back
// what comes.
func echoTunnel(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
	f := http2.NewFramer(conn, conn)
	f.WriteSettings(http2.Setting{ID: http2.SettingEnableConnectProtocol, Val: 1})
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			var head bytes.Buffer
			hpack.NewEncoder(&head).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: frame.StreamID, BlockFragment: head.Bytes(), EndHeaders: true})
		case *http2.DataFrame:
			if len(frame.Data()) > 0 {
				f.WriteData(frame.StreamID, false, frame.Data())
			}
		}
	}
}
