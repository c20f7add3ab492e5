package catena_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/websocket"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
)

// stream is the body of a 101.
type stream interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// upgrade switches to the echo protocol on a connection to origin.
func (w *world) upgrade(opts ...catena.CallOption) (*catena.Call, stream) {
	w.Helper()
	call := w.client.NewCall(upgradeRequest(w.request("GET", "/", nil)), opts...)
	resp, err := call.Execute()
	if err != nil {
		w.Fatal(err)
	}
	body, ok := resp.Body.(stream)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		w.Fatalf("status %s, body %T", resp.Status, resp.Body)
	}
	return call, body
}

// echoed sends text and reads it back.
func (w *world) echoed(s io.ReadWriter, text string) {
	w.Helper()
	if _, err := io.WriteString(s, text); err != nil {
		w.Errorf("write: %v", err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(s, got); err != nil || string(got) != text {
		w.Errorf("echo %q, %v; want %q", got, err, text)
	}
}

func TestUpgradedBodyIsTheConnection(t *testing.T) {
	overProtocols(t, onHTTP1, func(w *world) {
		w.serve(echoOnUpgrade)
		call, s := w.upgrade(catena.WithCallTimeout(time.Second))
		for range 3 {
			w.echoed(s, "Hello")
			time.Sleep(time.Hour) // beyond the call, read and write timeouts
		}
		if call.IsCanceled() {
			w.Error("the call timeout has canceled the call")
		}
		if stats := w.client.Pool().Stats(); stats.Open != 1 || stats.Idle != 0 {
			w.Errorf("pool: %v", stats)
		}
		if err := s.CloseWrite(); err != nil {
			w.Error(err)
		}
		if rest, err := io.ReadAll(s); string(rest) != "bye" || err != nil {
			w.Errorf("after CloseWrite: %q, %v", rest, err)
		}
		if err := s.Close(); err != nil {
			w.Error(err)
		}
		if err := s.Close(); err != nil {
			w.Errorf("the second Close: %v", err)
		}
		if _, err := s.Read(make([]byte, 1)); err == nil {
			w.Error("Read after Close succeeds")
		}
		if n := w.client.Pool().ConnectionCount(); n != 0 {
			w.Errorf("%d connections are left in the pool", n)
		}
		for _, e := range w.calls.Events() {
			if e.Name == "ResponseBodyEnd" && e.Bytes != 18 {
				w.Errorf("%v; want what was read, 18 bytes", e)
			}
		}
		w.get("/", "plain")
		if stats := w.client.Pool().Stats(); stats.Connected != 2 || stats.Reused != 0 {
			w.Errorf("pool: %v; want another connection for the next call", stats)
		}
	}, catena.WithReadTimeout(time.Second), catena.WithWriteTimeout(time.Second))
}

// A caller that answers 101 with anything but its end keeps the call open: it
// ends by Close, Cancel or the context.
func TestUpgradedBodyEndsWithTheCall(t *testing.T) {
	for name, end := range map[string]func(w *world, call *catena.Call, cancel func()){
		"cancel":  func(_ *world, call *catena.Call, _ func()) { call.Cancel() },
		"context": func(_ *world, _ *catena.Call, cancel func()) { cancel() },
		"close":   func(w *world, _ *catena.Call, _ func()) { w.client.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, onHTTP1, func(w *world) {
				w.serve(echoOnUpgrade)
				ctx, cancel := context.WithCancel(w.Context())
				call := w.client.NewCall(upgradeRequest(w.request("GET", "/", nil)).WithContext(ctx))
				resp, err := call.Execute()
				if err != nil {
					w.Fatal(err)
				}
				s := resp.Body.(stream)
				w.echoed(s, "Hello")
				failed := make(chan error, 1)
				go func() {
					_, err := s.Read(make([]byte, 1))
					failed <- err
				}()
				synctest.Wait()
				began := time.Now()
				end(w, call, cancel)
				var ours *catena.CallError
				if err := <-failed; !errors.Is(err, context.Canceled) || !errors.As(err, &ours) {
					w.Errorf("Read gave %v, want a *CallError that is context.Canceled", err)
				}
				if _, err := s.Write([]byte("x")); !errors.Is(err, context.Canceled) || !errors.As(err, &ours) {
					w.Errorf("Write gave %v, want a *CallError that is context.Canceled", err)
				}
				if took := time.Since(began); took > 0 {
					w.Errorf("it took %v", took)
				}
				s.Close()
			})
		})
	}
}

func TestUpgradedBodyThatIsClosedBesideARead(t *testing.T) {
	overProtocols(t, onHTTP1, func(w *world) {
		w.serve(echoOnUpgrade)
		_, s := w.upgrade()
		ended := make(chan error, 1)
		go func() {
			_, err := s.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		s.Close()
		if err := <-ended; err == nil {
			w.Error("Read succeeds though the body was closed")
		}
	})
}

func TestUpgradedBodyBeginsBehindTheHead(t *testing.T) {
	overProtocols(t, []string{h1}, func(w *world) {
		w.peer(func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nfirst")
		})
		_, s := w.upgrade()
		defer s.Close()
		if got, err := io.ReadAll(s); string(got) != "first" || err != nil {
			w.Errorf("read %q, %v", got, err)
		}
	})
}

// It is the peer's end that Read tells, not that of what is written.
func TestUpgradedBodyIsWrittenBeyondThePeersEnd(t *testing.T) {
	overProtocols(t, []string{h1}, func(w *world) {
		got := make(chan string, 1)
		w.peer(func(c net.Conn) {
			from := bufio.NewReader(c)
			if _, err := http.ReadRequest(from); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			c.(interface{ CloseWrite() error }).CloseWrite()
			rest, _ := io.ReadAll(from)
			got <- string(rest)
		})
		outer, err := catena.New(catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
			return w.client.RoundTripper().RoundTrip(c.Request())
		})))
		if err != nil {
			w.Fatal(err)
		}
		defer outer.Close()
		for _, client := range []*catena.Client{w.client, outer} {
			resp, err := client.Do(upgradeRequest(w.request("GET", "/", nil)))
			if err != nil {
				w.Fatal(err)
			}
			s := resp.Body.(stream)
			if rest, err := io.ReadAll(s); len(rest) > 0 || err != nil {
				w.Errorf("read %q, %v", rest, err)
			}
			io.WriteString(s, "still here")
			s.Close()
			if text := <-got; text != "still here" {
				w.Errorf("the peer got %q", text)
			}
		}
	})
}

// What wraps the body keeps it writable where it embeds it, and ends the call all
// the same.
func TestUpgradedBodyWithinAnInterceptor(t *testing.T) {
	type wrapped struct{ stream }
	overProtocols(t, onHTTP1, func(w *world) {
		w.serve(echoOnUpgrade)
		resp, err := w.client.Do(upgradeRequest(w.request("GET", "/", nil)))
		if err != nil {
			w.Fatal(err)
		}
		s, ok := resp.Body.(stream)
		if !ok {
			w.Fatalf("the body, a %T, can't be written to", resp.Body)
		}
		w.echoed(s, "Hello")
		if err := s.CloseWrite(); err != nil {
			w.Error(err)
		}
		if rest, err := io.ReadAll(s); string(rest) != "bye" || err != nil {
			w.Errorf("after CloseWrite: %q, %v", rest, err)
		}
		if n := w.client.Pool().ConnectionCount(); n != 1 {
			w.Errorf("%d connections before Close, want 1", n)
		}
		s.Close()
		if n := w.client.Pool().ConnectionCount(); n != 0 {
			w.Errorf("%d connections are left in the pool", n)
		}
	}, catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		resp, err := c.Proceed(c.Request())
		if err == nil {
			resp.Body = wrapped{resp.Body.(stream)}
		}
		return resp, err
	})))
}

func TestUpgradeThatIsRefusedIsAResponse(t *testing.T) {
	overProtocols(t, onHTTP1, func(w *world) {
		w.serve(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusUpgradeRequired) })
		resp, err := w.client.Do(upgradeRequest(w.request("GET", "/", nil)))
		w.slurp(resp, err)
		if resp.StatusCode != http.StatusUpgradeRequired {
			w.Errorf("status %s", resp.Status)
		}
		if n := w.client.Pool().IdleCount(); n != 1 {
			w.Errorf("%d idle connections, want 1", n)
		}
	})
}

func TestSwitchThatNobodyAskedForIsAnError(t *testing.T) {
	overProtocols(t, []string{h1}, func(w *world) {
		w.replies("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		if err := w.fail(w.request("GET", "/", nil)); !strings.Contains(err.Error(), "switches protocols") {
			w.Error(err)
		}
		if n := w.client.Pool().ConnectionCount(); n != 0 {
			w.Errorf("%d connections are left in the pool", n)
		}
	})
}

// A WebSocket (RFC 6455) over the body, against golang.org/x/net's server.
func TestWebSocketOverTheBody(t *testing.T) {
	for name, do := range map[string]func(w *world) func(*http.Request) (*http.Response, error){
		"client":       func(w *world) func(*http.Request) (*http.Response, error) { return w.client.Do },
		"roundtripper": func(w *world) func(*http.Request) (*http.Response, error) { return w.client.RoundTripper().RoundTrip },
		"http.Client": func(w *world) func(*http.Request) (*http.Response, error) {
			return (&http.Client{Transport: w.client.RoundTripper()}).Do
		},
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, onHTTP1, func(w *world) {
				w.serve(websocket.Server{Handler: func(ws *websocket.Conn) { io.Copy(ws, ws) }}.ServeHTTP)
				req := w.request("GET", "/", nil)
				req.Header = http.Header{
					"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Origin": {"http://origin.test"},
					"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Version": {"13"},
				}
				resp, err := do(w)(req)
				if err != nil {
					w.Fatal(err)
				}
				if got := resp.Header.Get("Sec-WebSocket-Accept"); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" { // RFC 6455 1.3
					w.Errorf("status %s, Sec-WebSocket-Accept %q", resp.Status, got)
				}
				s := resp.Body.(io.ReadWriteCloser)
				for _, text := range []string{"Hello", strings.Repeat("x", 300), strings.Repeat("y", 70_000)} {
					if err := writeFrame(s, text); err != nil {
						w.Fatal(err)
					}
					got := ""
					for len(got) < len(text) { // the server answers in frames of its own
						part, err := readFrame(s)
						if err != nil {
							w.Fatal(err)
						}
						got += part
					}
					if got != text {
						w.Errorf("%d bytes came back as %d others", len(text), len(got))
					}
					time.Sleep(time.Minute)
				}
				s.Close()
			})
		})
	}
}

// writeFrame sends a text message in one masked frame (RFC 6455 5.2).
func writeFrame(w io.Writer, text string) error {
	const fin, textFrame, masked = 0x80, 0x1, 0x80
	frame := []byte{fin | textFrame}
	switch n := len(text); {
	case n < 126:
		frame = append(frame, masked|byte(n))
	case n < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, masked|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, masked|127), uint64(n))
	}
	key := [4]byte{1, 2, 3, 4}
	frame = append(frame, key[:]...)
	for i := range len(text) {
		frame = append(frame, text[i]^key[i%4])
	}
	_, err := w.Write(frame)
	return err
}

// readFrame reads an unmasked frame's payload.
func readFrame(r io.Reader) (string, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	var long [8]byte
	switch head[1] {
	case 126:
		if _, err := io.ReadFull(r, long[6:]); err != nil {
			return "", err
		}
	case 127:
		if _, err := io.ReadFull(r, long[:]); err != nil {
			return "", err
		}
	default:
		long[7] = head[1]
	}
	payload := make([]byte, binary.BigEndian.Uint64(long[:]))
	_, err := io.ReadFull(r, payload)
	return string(payload), err
}
