package http2_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/connection/http2"
)

// roundTrip is that of serveFar's link.
const roundTrip = 100 * time.Millisecond

// serveFar is serve over a link without a limit but its round trip, in a bubble.
// The connection is settled.
func serveFar(t *testing.T, opts http2.Options, h http.HandlerFunc) *http2.Conn {
	t.Helper()
	network := simnet.New(simnet.WithLatency(roundTrip/2), simnet.WithWindow(1<<31-1))
	l, err := network.Listen("192.0.2.1:80")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	srv.Protocols.SetUnencryptedHTTP2(true)
	go srv.Serve(l) // ends with the listener
	nc, err := network.DialContext(t.Context(), "tcp", "192.0.2.1:80")
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, nc, opts)
	t.Cleanup(func() {
		c.Close()
		srv.Close()
		network.Close()
	})
	exchange(t, c, request(t, "HEAD", "http://x.test/"), nil, 0)
	time.Sleep(roundTrip) // what was said last arrives
	return c
}

// pour writes a body of size bytes, and nothing to HEAD.
func pour(w http.ResponseWriter, r *http.Request, size int) {
	if r.Method == http.MethodHead {
		return
	}
	for chunk := make([]byte, 64<<10); size > 0; size -= len(chunk) {
		if _, err := w.Write(chunk[:min(len(chunk), size)]); err != nil {
			return
		}
	}
}

// A body that is read as it comes is at full speed from its first byte: a window
// each round trip, and a quarter of one is all that may be left of it.
func TestRoundTripsOfABody(t *testing.T) {
	tests := map[string]struct {
		opts  http2.Options
		size  int
		trips int
	}{
		"1 MiB":                 {size: 1 << 20, trips: 1},
		"a window":              {size: 16 << 20, trips: 1},
		"64 MiB":                {size: 64 << 20, trips: 5},
		"64 MiB, large windows": {http2.Options{StreamWindow: 64 << 20}, 64 << 20, 1},
		"4 MiB, small windows":  {http2.Options{StreamWindow: 1 << 20}, 4 << 20, 5},
	}
	for name, tt := range tests {
		bubble(t, name, func(t *testing.T) {
			c := serveFar(t, tt.opts, func(w http.ResponseWriter, r *http.Request) { pour(w, r, tt.size) })
			spent := stopwatch()
			s := open(t, c, terms, request(t, "GET", "http://x.test/"), 0)
			if n, err := io.Copy(io.Discard, head(t, s).Body); n != int64(tt.size) || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			if d := spent(); d > time.Duration(tt.trips)*roundTrip {
				t.Errorf("took %v, which is more than %d round trips", d, tt.trips)
			}
		})
	}
}
