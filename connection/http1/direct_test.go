package http1_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

// source stands for another reader, as the engine's request body does.
type source struct{ io.Reader }

func (s source) Source() io.Reader { return s.Reader }

func (s source) Read([]byte) (int, error) { panic("read, although there is a shorter way") }

// Large bodies of known size take the shortest way, and arrive as they are: also
// where the peer is slow enough that writes meet their deadlines.
func TestDirectBodies(t *testing.T) {
	const size = 4 << 20
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(content)
	path := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() io.Reader {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	memory := func() io.Reader { return bytes.NewReader(content) }
	var tooMuch, tooLittle = int64(size - 1), int64(size + 1)
	tests := []struct {
		name     string
		body     io.Reader
		declared int64
		slow     bool
		bad      bool // the body is not what was declared
	}{
		{"file", open(), size, false, false},
		{"file, slow peer", open(), size, true, false},
		{"longer file", open(), tooMuch, false, true},
		{"shorter file", open(), tooLittle, false, true},
		{"memory", memory(), size, false, false},
		{"memory, slow peer", memory(), size, true, false},
		{"more memory", memory(), tooMuch, false, true},
		{"less memory", memory(), tooLittle, false, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			received := make(chan []byte, 1)
			go receive(l, test.slow, received)
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()

			c := http1.NewConn(conn, false)
			c.Begin(wire.Exchange{WriteTimeout: 2 * time.Second})
			if err := c.WriteRequestHeaders(newRequest(t, "PUT", "http://h/"), test.declared); err != nil {
				t.Fatal(err)
			}
			n, err := c.ReadFrom(source{test.body})
			if err == nil {
				err = c.FinishRequest(nil)
			}
			var own *wire.RequestBodyError
			if errors.As(err, &own) != test.bad || err != nil && !test.bad {
				t.Errorf("sent %d bytes: %v", n, err)
			}
			conn.(*net.TCPConn).CloseWrite()
			got := <-received
			if int64(len(got)) > test.declared {
				t.Errorf("%d bytes reached the peer, more than were declared", len(got))
			}
			if !test.bad && sha256.Sum256(got) != sha256.Sum256(content) {
				t.Errorf("%d bytes arrived and differ from what was sent", len(got))
			}
		})
	}
}

// receive reads a request and hands over its body, as far as it came. A slow peer
// takes little for a while.
func receive(l net.Listener, slow bool, received chan<- []byte) {
	var body bytes.Buffer
	defer func() { received <- body.Bytes() }()
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	if slow {
		conn.(*net.TCPConn).SetReadBuffer(32 << 10)
	}
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	for i := 0; ; i++ {
		if slow && i < 8 {
			<-time.After(50 * time.Millisecond) // what is tested is a peer that takes its time
		}
		if _, err := io.CopyN(&body, req.Body, 64<<10); err != nil {
			return
		}
	}
}

// A peer that takes nothing ends a file's sending within the write timeout.
func TestDirectFileStalls(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "body")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const size = 64 << 20
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := http1.NewConn(conn, false)
	c.Begin(wire.Exchange{WriteTimeout: 500 * time.Millisecond})
	if err := c.WriteRequestHeaders(newRequest(t, "PUT", "http://h/"), size); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := c.ReadFrom(source{file}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a deadline", err)
	}
	if took := time.Since(began); took < 500*time.Millisecond || took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
