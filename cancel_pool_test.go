package catena_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/connection"
)

// Canceling calls that wait for their turn at the pool frees their places.
func TestCancelInFullPool(t *testing.T) {
	inWorld(t, onHTTP1, func(*world) []catena.Option {
		pool := connection.NewPool(connection.PoolOptions{MaxPerAddress: 2})
		return []catena.Option{catena.WithPool(pool)}
	}, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			time.Sleep(30 * time.Millisecond)
			answer(rw, r)
		})
		const calls = 60
		ended := make(chan struct{})
		began := time.Now()
		for i := range calls {
			call := w.client.NewCall(w.request("GET", "/", nil))
			after := time.Duration(i%13) * 7 * time.Millisecond
			time.AfterFunc(after, call.Cancel)
			go func() {
				finish(call)
				if took := time.Since(began); took > after {
					w.Errorf("a call canceled after %v took %v", after, took)
				}
				ended <- struct{}{}
			}()
		}
		for range calls {
			<-ended
		}
		for range 5 {
			w.get("/", "abc")
		}
		if s := w.client.Pool().Stats(); s.Open > 2 || s.Idle != s.Open || s.Waiting != 0 {
			w.Errorf("pool: %v", s)
		}
		w.client.Pool().Close()
	})
}

// Canceling after the end touches nothing: the connection is used again.
func TestCancelAfterEnd(t *testing.T) {
	inWorld(t, nil, nil, func(w *world) {
		w.serve(answer)
		for range 3 {
			call := w.client.NewCall(w.request("GET", "/", nil))
			if _, err := finish(call); err != nil {
				w.Fatal(err)
			}
			call.Cancel()
		}
		if n := w.net.Dials(originAddr); n != 1 {
			w.Errorf("%d connections", n)
		}
	})
}

// A body read canceled in its middle takes an HTTP/1.1 connection with it, and
// only its stream on HTTP/2.
func TestCancelInBodyAndPool(t *testing.T) {
	inWorld(t, nil, nil, func(w *world) {
		w.serve(stopHalfway)
		call := w.client.NewCall(w.request("GET", "/", nil))
		resp, err := call.Execute()
		if err != nil {
			w.Fatal(err)
		}
		io.ReadFull(resp.Body, make([]byte, 3))
		call.Cancel()
		for range 2 { // it stays so
			if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
				w.Errorf("Read fails with %v", err)
			}
		}
		resp.Body.Close()
		want := 0
		if w.protocol == h2 || w.protocol == h2c {
			want = 1
		}
		if n := w.client.Pool().ConnectionCount(); n != want {
			w.Errorf("the pool has %d connections, want %d", n, want)
		}
	})
}

// A socket that takes nothing holds no call back, not even on HTTP/2, where a
// write under way can't be taken back. In real time: see newWorld about mutexes.
func TestCancelWhileSocketStalls(t *testing.T) {
	for _, protocol := range allProtocols {
		t.Run(protocol, func(t *testing.T) {
			w := newWorld(t, protocol)
			w.serve(hang)
			w.net.SetFaults(originAddr, simnet.Faults{ToServer: simnet.Link{Window: 8 << 10}})
			body := &endlessBody{closed: make(chan struct{})}
			call := w.client.NewCall(w.request("POST", "/", body))
			stalled := func() {
				for _, c := range w.net.Conns(originAddr) {
					c.Peer().Stall() // once the handshake is over
				}
			}
			time.AfterFunc(200*time.Millisecond, stalled)
			var canceled time.Time
			time.AfterFunc(400*time.Millisecond, func() { canceled = time.Now(); call.Cancel() })
			_, err := finish(call)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v", err)
			}
			if took := time.Since(canceled); took > 500*time.Millisecond {
				t.Errorf("the call ended %v after Cancel", took)
			}
			body.checkClosed(t)
			began := time.Now()
			w.root.Close()
			if took := time.Since(began); took > 500*time.Millisecond {
				t.Errorf("Close took %v", took)
			}
			w.end()
			w.net.Close()
		})
	}
}
