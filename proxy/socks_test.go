package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/proxy"
)

// script is a SOCKS server: by turns it reads what it wants and answers.
type script []turn

type turn struct{ want, answer string }

// serve follows the script, and answers with chunk bytes a write.
func (s script) serve(conn net.Conn, chunk int) error {
	for _, now := range s {
		got := make([]byte, len(now.want))
		if _, err := io.ReadFull(conn, got); err != nil {
			return fmt.Errorf("want %q: %w", now.want, err)
		}
		if string(got) != now.want {
			return fmt.Errorf("got %q, want %q", got, now.want)
		}
		for rest := now.answer; rest != ""; {
			n := min(chunk, len(rest))
			if _, err := io.WriteString(conn, rest[:n]); err != nil {
				return fmt.Errorf("answer %q: %w", now.answer, err)
			}
			rest = rest[n:]
		}
	}
	return nil
}

// answers is the script's answers in one.
func (s script) answers() (all string) {
	for _, now := range s {
		all += now.answer
	}
	return all
}

// cut is the script with n bytes of answers.
func (s script) cut(n int) (short script) {
	for _, now := range s {
		if len(now.answer) > n {
			return append(short, turn{now.want, now.answer[:n]})
		}
		short, n = append(short, now), n-len(now.answer)
	}
	return short
}

const whole = 1 << 20 // a chunk that is as long as any answer

// against shakes hands with a server that follows the script and then closes the
// connection. The server's own failure is the second error.
func against(ctx context.Context, s script, chunk int, p proxy.Proxy, addr string) (failed, served error) {
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() {
		defer theirs.Close()
		done <- s.serve(theirs, chunk)
	}()
	failed = proxy.Handshake(ctx, ours, p, addr)
	ours.Close()
	return failed, <-done
}

func via(kind proxy.Type, user ...string) proxy.Proxy {
	p := proxy.Proxy{Type: kind, Host: "p.test"}
	switch len(user) {
	case 1:
		p.User = url.User(user[0])
	case 2:
		p.User = url.UserPassword(user[0], user[1])
	}
	return p
}

const (
	greet      = "\x05\x01\x00"     // no authentication
	greetUser  = "\x05\x02\x00\x02" // that, or user and password
	askName    = "\x05\x01\x00\x03\x06a.test\x01\xbb"
	granted    = "\x05\x00\x00\x01\xc0\x00\x02\x01\x04\x38"
	ask4       = "\x04\x01\x00\x50\xc0\x00\x02\x01\x00"
	granted4   = "\x00\x5a\x00\x00\x00\x00\x00\x00"
	afterwards = "\x16\x03\x01 what the server says first" // not the proxy's
)

// Every byte that is sent, and every answer that is a success: whole, in pieces,
// and with the server's first bytes close behind, which stay to be read.
func TestHandshake(t *testing.T) {
	long := strings.Repeat("n", 255)
	for name, tc := range map[string]struct {
		p      proxy.Proxy
		addr   string
		script script
	}{
		"socks5, name":         {via(proxy.SOCKS5), "a.test:443", script{{greet, "\x05\x00"}, {askName, granted}}},
		"socks5, IPv4":         {via(proxy.SOCKS5), "192.0.2.1:80", script{{greet, "\x05\x00"}, {"\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50", granted}}},
		"socks5, IPv4 in IPv6": {via(proxy.SOCKS5), "[::ffff:192.0.2.1]:80", script{{greet, "\x05\x00"}, {"\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50", granted}}},
		"socks5, IPv6": {via(proxy.SOCKS5), "[2001:db8::1]:65535", script{
			{greet, "\x05\x00"},
			{"\x05\x01\x00\x04\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\xff\xff", granted},
		}},
		"socks5, a long name": {via(proxy.SOCKS5), long + ":1", script{{greet, "\x05\x00"}, {"\x05\x01\x00\x03\xff" + long + "\x00\x01", granted}}},
		"socks5, a name with a dot at its end": {via(proxy.SOCKS5), "a.test.:443", script{
			{greet, "\x05\x00"}, {"\x05\x01\x00\x03\x07a.test.\x01\xbb", granted},
		}},
		"socks5, bound to IPv6":         {via(proxy.SOCKS5), "a.test:443", script{{greet, "\x05\x00"}, {askName, "\x05\x00\x00\x04" + strings.Repeat("\xfe", 16) + "\x00\x01"}}},
		"socks5, bound to a name":       {via(proxy.SOCKS5), "a.test:443", script{{greet, "\x05\x00"}, {askName, "\x05\x00\x00\x03\x06p.test\x00\x01"}}},
		"socks5, bound to a long name":  {via(proxy.SOCKS5), "a.test:443", script{{greet, "\x05\x00"}, {askName, "\x05\x00\x00\x03\xff" + long + "\x00\x01"}}},
		"socks5, bound to an empty one": {via(proxy.SOCKS5), "a.test:443", script{{greet, "\x05\x00"}, {askName, "\x05\x00\x00\x03\x00\x00\x00"}}},
		"socks5, reserved byte is set":  {via(proxy.SOCKS5), "a.test:443", script{{greet, "\x05\x00"}, {askName, "\x05\x00\x07" + granted[3:]}}},
		"socks5, user wanted": {via(proxy.SOCKS5, "me", "hunter2"), "a.test:443", script{
			{greetUser, "\x05\x02"}, {"\x01\x02me\x07hunter2", "\x01\x00"}, {askName, granted},
		}},
		"socks5, user not wanted": {via(proxy.SOCKS5, "me", "hunter2"), "a.test:443", script{{greetUser, "\x05\x00"}, {askName, granted}}},
		"socks5, a long user": {via(proxy.SOCKS5, long, long), "a.test:443", script{
			{greetUser, "\x05\x02"}, {"\x01\xff" + long + "\xff" + long, "\x01\x00"}, {askName, granted},
		}},
		"socks4":                      {via(proxy.SOCKS4), "192.0.2.1:80", script{{ask4, granted4}}},
		"socks4, user":                {via(proxy.SOCKS4, "me"), "192.0.2.1:80", script{{"\x04\x01\x00\x50\xc0\x00\x02\x01me\x00", granted4}}},
		"socks4, password":            {via(proxy.SOCKS4, "me", "not sent"), "192.0.2.1:80", script{{"\x04\x01\x00\x50\xc0\x00\x02\x01me\x00", granted4}}},
		"socks4, bound somewhere":     {via(proxy.SOCKS4), "192.0.2.1:80", script{{ask4, "\x00\x5a\x04\x38\xc0\x00\x02\x07"}}},
		"socks4a, address":            {via(proxy.SOCKS4A), "192.0.2.1:80", script{{ask4, granted4}}},
		"socks4a, name":               {via(proxy.SOCKS4A), "a.test:443", script{{"\x04\x01\x01\xbb\x00\x00\x00\x01\x00a.test\x00", granted4}}},
		"socks4a, user and long name": {via(proxy.SOCKS4A, "me"), long + ":443", script{{"\x04\x01\x01\xbb\x00\x00\x00\x01me\x00" + long + "\x00", granted4}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, chunk := range []int{whole, 1} {
				s := append(script{}, tc.script...)
				s[len(s)-1].answer += afterwards
				ours, theirs := net.Pipe()
				served := make(chan error, 1)
				go func() {
					defer theirs.Close()
					served <- s.serve(theirs, chunk)
				}()
				if err := proxy.Handshake(t.Context(), ours, tc.p, tc.addr); err != nil {
					t.Errorf("chunks of %d: %v", chunk, err)
					ours.Close()
				}
				rest, _ := io.ReadAll(ours)
				if err := <-served; err != nil {
					t.Errorf("chunks of %d: the server %v", chunk, err)
				}
				if diff := cmp.Diff(afterwards, string(rest)); diff != "" {
					t.Errorf("chunks of %d: afterwards (-want +got):\n%s", chunk, diff)
				}
			}
		})
	}
}

// A server that closes before the last byte of its answers is recognised at each.
func TestHandshakeCutShort(t *testing.T) {
	for name, tc := range map[string]struct {
		p      proxy.Proxy
		addr   string
		script script
	}{
		"socks5": {via(proxy.SOCKS5, "me", "hunter2"), "a.test:443", script{
			{greetUser, "\x05\x02"}, {"\x01\x02me\x07hunter2", "\x01\x00"}, {askName, "\x05\x00\x00\x03\x06p.test\x00\x01"},
		}},
		"socks4": {via(proxy.SOCKS4), "192.0.2.1:80", script{{ask4, granted4}}},
	} {
		for n := range len(tc.script.answers()) {
			for _, chunk := range []int{whole, 1} {
				err, served := against(t.Context(), tc.script.cut(n), chunk, tc.p, tc.addr)
				if served != nil {
					t.Fatalf("%s, %d bytes: the server %v", name, n, served)
				}
				var failed *proxy.SOCKSError
				if !errors.As(err, &failed) || failed.Code != 0 || !errors.Is(err, io.ErrUnexpectedEOF) ||
					!strings.Contains(err.Error(), "it closed the connection before the end of its ") {
					t.Errorf("%s, %d bytes: got %v", name, n, err)
				}
			}
		}
	}
}

// A proxy that falls silent, wherever, holds nobody who has stopped waiting.
func TestHandshakeEndsWithItsContext(t *testing.T) {
	scripts := map[string]struct {
		p      proxy.Proxy
		addr   string
		script script
	}{
		"socks5": {via(proxy.SOCKS5, "me", "hunter2"), "a.test:443", script{
			{greetUser, "\x05\x02"}, {"\x01\x02me\x07hunter2", "\x01\x00"}, {askName, granted},
		}},
		"socks4a": {via(proxy.SOCKS4A), "a.test:443", script{{"\x04\x01\x01\xbb\x00\x00\x00\x01\x00a.test\x00", granted4}}},
	}
	for name, tc := range scripts {
		for n := range len(tc.script.answers()) {
			for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
				t.Run(fmt.Sprintf("%s, %d bytes, %v", name, n, end), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						ours, theirs := net.Pipe()
						go tc.script.cut(n).serve(theirs, whole) // and silence
						ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
						defer cancel()
						began := time.Now()
						if end == context.Canceled {
							time.AfterFunc(100*time.Millisecond, cancel)
						}
						err := proxy.Handshake(ctx, ours, tc.p, tc.addr)
						took := time.Since(began)
						ours.Close()
						theirs.Close()
						var failed *proxy.SOCKSError
						if !errors.As(err, &failed) || !errors.Is(err, end) {
							t.Errorf("got %v", err)
						}
						if want := map[error]time.Duration{context.Canceled: 100, context.DeadlineExceeded: 300}[end] * time.Millisecond; took != want {
							t.Errorf("it took %v, want %v", took, want)
						}
					})
				})
			}
		}
	}
}

// One that drips a byte a second is bounded by the context as a whole.
func TestHandshakeDrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		dripped := make(chan struct{})
		go func() {
			defer close(dripped)
			defer theirs.Close()
			go io.Copy(io.Discard, theirs)
			for _, b := range []byte("\x05\x00" + granted) {
				if _, err := theirs.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := proxy.Handshake(ctx, ours, via(proxy.SOCKS5), "a.test:443")
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 3500*time.Millisecond {
			t.Errorf("after %v: %v", took, err)
		}
		ours.Close()
		<-dripped
	})
}

// A context that ends beside the last byte leaves an error, or a connection that
// works: never one with a deadline in the past.
func TestHandshakeCanceledAtItsEnd(t *testing.T) {
	for range 200 {
		ours, theirs := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer theirs.Close()
			script{{greet, "\x05\x00"}, {askName, granted[:len(granted)-1]}}.serve(theirs, whole)
			go cancel()
			io.WriteString(theirs, granted[len(granted)-1:]+afterwards)
		}()
		if err := proxy.Handshake(ctx, ours, via(proxy.SOCKS5), "a.test:443"); err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		} else if got, err := io.ReadAll(ours); err != nil || string(got) != afterwards {
			t.Fatalf("afterwards %q, %v", got, err)
		}
		ours.Close()
		<-ctx.Done()
	}
}

func TestHandshakeOfAContextThatHasEnded(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	defer ours.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := proxy.Handshake(ctx, ours, via(proxy.SOCKS5), "a.test:443"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// endless is a connection whose deadlines do not work.
type endless struct{ net.Conn }

func (endless) SetDeadline(time.Time) error { return errors.ErrUnsupported }

// Where there are no deadlines, the connection is closed.
func TestHandshakeWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := proxy.Handshake(ctx, endless{ours}, via(proxy.SOCKS5), "a.test:443"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		theirs.Close()
	})
}

// The same over a socket of the kernel's.
func TestHandshakeOverTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	canceled, cancel := context.WithCancel(t.Context())
	for _, tc := range []struct {
		ctx    context.Context
		script script
		then   func()
		want   error
	}{
		{t.Context(), script{{greet, "\x05\x00"}, {askName, granted + afterwards}}, func() {}, nil},
		{canceled, script{{greet, "\x05"}}, cancel, context.Canceled},
	} {
		served, end := make(chan error), make(chan struct{})
		go func() {
			conn, err := l.Accept()
			if err == nil {
				defer conn.Close()
				err = tc.script.serve(conn, 1)
				tc.then()
			}
			<-end
			served <- err
		}()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		err = proxy.Handshake(tc.ctx, conn, via(proxy.SOCKS5), "a.test:443")
		if !errors.Is(err, tc.want) {
			t.Errorf("got %v, want %v", err, tc.want)
		}
		if tc.want == nil {
			got := make([]byte, len(afterwards))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, []byte(afterwards)) {
				t.Errorf("afterwards %q, %v", got, err)
			}
		}
		close(end)
		if err := <-served; err != nil {
			t.Error(err)
		}
		conn.Close()
	}
}
