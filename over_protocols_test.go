package catena_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest"
)

// overProtocols runs test in a world of its own for each protocol, and checks in the end
// that the events keep their grammar and that nothing is left.
func overProtocols(t *testing.T, protocols []string, test func(w *world), opts ...catena.Option) {
	t.Helper()
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, protocol, opts...)
				test(w)
				synctest.Wait()
				w.root.Close()
				time.Sleep(time.Minute) // until the servers have heard of it
				if n := w.net.Open(); n != 0 {
					t.Errorf("%d ends of connections are left open", n)
				}
				w.close()
				synctest.Wait()
				if err := catenatest.CheckEvents(w.calls.Events()); err != nil {
					t.Error(err)
				}
				if err := catenatest.CheckConnectionEvents(w.conns.Events()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// slurp reads and closes a response's body.
func (w *world) slurp(resp *http.Response, err error) string {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Errorf("read the body: %v", err)
	}
	return string(body)
}

// replies says text on every request of a cleartext HTTP/1.1 connection, and
// counts the requests.
func (w *world) replies(text string) *atomic.Int64 {
	count := &atomic.Int64{}
	w.peer(func(c net.Conn) {
		from := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(from)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			count.Add(1)
			io.WriteString(c, text)
		}
	})
	return count
}

// counted is a body that knows how often it was closed, and whether it was read
// after that.
type counted struct {
	io.Reader
	closes    atomic.Int64
	readAfter atomic.Bool
}

func (b *counted) Read(p []byte) (int, error) {
	if b.closes.Load() > 0 {
		b.readAfter.Store(true)
	}
	return b.Reader.Read(p)
}

func (b *counted) Close() error {
	b.closes.Add(1)
	return nil
}
