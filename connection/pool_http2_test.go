package connection

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"

	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

func priorKnowledge(n *route.Network) { n.Protocols = []string{route.H2C} }

// http2Host is a server that speaks HTTP/2 without TLS.
func (w *world) http2Host(name, ip string, streams int, h http.Handler) {
	w.t.Helper()
	w.net.AddHost(name, ip)
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: h, Protocols: protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: streams}}
	w.listen(net.JoinHostPort(ip, "80"), s)
}

func slowly(d time.Duration, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(d)
		h.ServeHTTP(w, r)
	})
}

func TestHTTP2IsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, priorKnowledge)
		w.http2Host("a.test", "192.0.2.1", 100, slowly(time.Second, hello))
		first := w.get("http://a.test/")
		start := time.Now()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if got := w.get("http://a.test/"); got != first {
					t.Error("another connection was opened")
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("50 calls took %v", took)
		}
		w.expect(1, 1)
		if s := w.pool.Stats(); s.Connected != 1 || s.Reused != 50 {
			t.Errorf("counted %v", s)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		w.expect(0, 0)
		if w.pool.timer != nil {
			t.Error("an empty pool has a timer")
		}
	})
}

// Calls that race to connect to one HTTP/2 server end with one connection.
func TestRacingHTTP2CallsEndWithOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, priorKnowledge)
		w.http2Host("a.test", "192.0.2.1", 100, hello)
		w.net.SetFaults("192.0.2.1:80", simnet.Faults{ToServer: simnet.Link{Latency: time.Millisecond}})
		const calls = 10
		var ids record
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() { ids.add(int(w.get("http://a.test/"))) })
		}
		wg.Wait()
		for _, id := range ids.all() {
			if id != ids.all()[0] {
				t.Errorf("connections %v were used", ids.all())
				break
			}
		}
		w.expect(1, 1)
		for _, why := range w.closings() {
			if why != event.ReasonDuplicate {
				t.Errorf("a connection was closed for %q", why)
			}
		}
		if n := w.net.Dials("192.0.2.1:80"); n != calls || len(w.closings()) != n-1 {
			t.Errorf("%d connections were opened, %d closed", n, len(w.closings()))
		}
	})
}

// Calls that come before it is known how few streams the server allows all find
// one, on this connection or another, or wait for it; none is refused.
func TestHTTP2BurstBeforeSettings(t *testing.T) {
	for name, opts := range map[string]PoolOptions{"any number of connections": {}, "one connection": {MaxPerAddress: 1}} {
		for _, streams := range []int{1, 2, 10} {
			t.Run(fmt.Sprint(name, ", streams: ", streams), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, opts, priorKnowledge)
					w.http2Host("a.test", "192.0.2.1", streams, slowly(time.Millisecond, hello))
					w.net.SetFaults("192.0.2.1:80", simnet.Faults{ToClient: simnet.Link{Latency: 5 * time.Millisecond}})
					var wg sync.WaitGroup
					for range 60 {
						wg.Go(func() {
							_, c, err := w.do(t.Context(), "http://a.test/")
							if err != nil || len(c.a.Attempts()) != 0 {
								t.Errorf("got %v, %+v", err, c.a.Attempts())
							}
						})
					}
					wg.Wait()
					for _, why := range w.closings() {
						if why != event.ReasonDuplicate {
							t.Errorf("a connection was closed for %q", why)
						}
					}
					if s := w.pool.Stats(); s.Open != s.Idle || s.Waiting != 0 {
						t.Errorf("the pool has %v", s)
					}
				})
			})
		}
	}
}

// With a limit on connections, calls wait for streams, and each that ends lets
// the next one in.
func TestHTTP2CallsWaitForStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{MaxPerAddress: 1}, priorKnowledge)
		w.http2Host("a.test", "192.0.2.1", 2, slowly(time.Second, hello))
		w.get("http://a.test/")
		start := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { w.get("http://a.test/") })
		}
		synctest.Wait()
		if s := w.pool.Stats(); s.Waiting != 8 {
			t.Errorf("the pool has %v", s)
		}
		wg.Wait()
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("10 calls of 1 s, 2 at a time, took %v", took)
		}
		w.expect(1, 1)
	})
}

// Without one, a call that finds no stream opens another connection.
func TestHTTP2OpensAnotherConnectionForMoreStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, priorKnowledge)
		w.http2Host("a.test", "192.0.2.1", 2, slowly(time.Second, hello))
		w.get("http://a.test/")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { w.get("http://a.test/") })
		}
		wg.Wait()
		if n := w.net.Dials("192.0.2.1:80"); n < 2 {
			t.Errorf("%d connections were opened", n)
		}
		if s := w.pool.Stats(); s.Open != s.Idle {
			t.Errorf("the pool has %v", s)
		}
	})
}

// A connection that the server takes out of service, while idle or in use, is not
// used again, and its place is free when the last call has let go of it.
func TestHTTP2GoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{MaxPerAddress: 1}, priorKnowledge)
		finish := make(chan struct{})
		w.rawHTTP2("a.test", "192.0.2.1", func(n int, f *xhttp2.Framer, stream uint32) bool {
			if n > 0 {
				respond(f, stream)
				return true
			}
			f.WriteGoAway(stream, xhttp2.ErrCodeNo, nil)
			<-finish
			respond(f, stream)
			return true
		})
		var wg sync.WaitGroup
		wg.Go(func() { w.get("http://a.test/") })
		synctest.Wait()
		wg.Go(func() { w.get("http://a.test/") })
		synctest.Wait()
		if s := w.pool.Stats(); s.Waiting != 1 || s.Open != 1 {
			t.Errorf("the pool has %v", s)
		}
		close(finish)
		wg.Wait()
		w.expect(1, 1)
		if diff := cmp.Diff([]event.Reason{event.ReasonGoAway}, w.closings()); diff != "" {
			t.Errorf("closed for (-want +got)\n%s", diff)
		}
	})
}

// A server that allows no streams at all keeps calls waiting for as long as its
// connection is kept; then another one is opened.
func TestHTTP2WithoutStreamsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{MaxPerAddress: 1, KeepAlive: time.Minute}, priorKnowledge)
		w.rawHTTP2("a.test", "192.0.2.1", func(n int, f *xhttp2.Framer, stream uint32) bool {
			respond(f, stream)
			if n == 0 {
				f.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingMaxConcurrentStreams, Val: 0})
			}
			return true
		})
		w.get("http://a.test/")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		if _, _, err := w.do(ctx, "http://a.test/"); err != nil {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// rawHTTP2 is a server that greets and has answer called for each request's head.
func (w *world) rawHTTP2(name, ip string, answer func(n int, f *xhttp2.Framer, stream uint32) bool) {
	w.raw(name, ip, func(n int, c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, len(xhttp2.ClientPreface))); err != nil {
			return
		}
		f := xhttp2.NewFramer(c, c)
		f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *xhttp2.SettingsFrame:
				if !frame.IsAck() {
					f.WriteSettingsAck()
				}
			case *xhttp2.HeadersFrame:
				if !answer(n, f, frame.StreamID) {
					return
				}
			}
		}
	})
}

// respond sends 200 and what hello would.
func respond(f *xhttp2.Framer, stream uint32) {
	f.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: stream, EndHeaders: true, BlockFragment: []byte{0x88}}) // :status 200
	f.WriteData(stream, true, []byte("hello from "))
}
