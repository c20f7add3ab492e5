package http2_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/connection/http2"
	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"
)

// flowLog is what a peer heard about windows: "windows N" for SETTINGS, and
// "window STREAM +N" for WINDOW_UPDATE.
type flowLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *flowLog) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// heard returns what came since the last time, when nothing more is coming. It is
// for bubbles.
func (p *peer) heard() []string {
	synctest.Wait()
	p.flow.mu.Lock()
	defer p.flow.mu.Unlock()
	lines := p.flow.lines
	p.flow.lines = nil
	return lines
}

// body answers a GET with n bytes of content, in frames of 16 KiB.
func (p *peer) body(n int) (io.Reader, uint32) {
	p.t.Helper()
	s, id := p.get()
	p.respond(id, false, ":status", "200")
	body := head(p.t, s).Body
	p.more(id, n)
	return body, id
}

// more sends n bytes of content.
func (p *peer) more(id uint32, n int) {
	for chunk := large[:16<<10]; n > 0; n -= len(chunk) {
		p.data(id, false, chunk[:min(n, len(chunk))])
	}
}

// The windows that a connection begins with are those of its options.
func TestFirstWindows(t *testing.T) {
	tests := map[string]struct {
		opts         http2.Options
		stream, conn int
	}{
		"defaults":       {http2.Options{}, 16 << 20, 32 << 20},
		"stream alone":   {http2.Options{StreamWindow: 64 << 20}, 64 << 20, 128 << 20},
		"small stream":   {http2.Options{StreamWindow: 1 << 20}, 1 << 20, 32 << 20},
		"conn alone":     {http2.Options{ConnWindow: 8 << 20}, 2 << 20, 4 << 20},
		"both":           {http2.Options{StreamWindow: 1 << 20, ConnWindow: 4 << 20}, 1 << 20, 2 << 20},
		"least":          {http2.Options{ConnWindow: 1}, 32 << 10, 64 << 10},
		"largest":        {http2.Options{ConnWindow: 1<<31 - 1}, 16 << 20, 1<<30 - 1},
		"largest stream": {http2.Options{StreamWindow: 1<<31 - 1}, 1<<30 - 2, 1<<30 - 2},
	}
	for name, tt := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPeer(t, tt.opts)
			want := []string{fmt.Sprintf("windows %d", tt.stream), fmt.Sprintf("window 0 +%d", tt.conn-65535)}
			if diff := cmp.Diff(want, p.heard()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A reader that keeps up costs an update for a quarter of a window, and nothing
// else.
func TestUpdatesAreFew(t *testing.T) {
	bubble(t, "read", func(t *testing.T) {
		p := newPeer(t, http2.Options{StreamWindow: 1 << 20, ConnWindow: 4 << 20})
		p.heard()
		body, id := p.body(0)
		for range 1 << 20 >> 14 {
			p.more(id, 16<<10)
			io.ReadFull(body, make([]byte, 16<<10))
		}
		quarter := fmt.Sprintf("window %d +%d", id, 256<<10)
		want := []string{quarter, quarter, fmt.Sprintf("window 0 +%d", 512<<10), quarter, quarter, fmt.Sprintf("window 0 +%d", 512<<10)}
		if diff := cmp.Diff(want, p.heard()); diff != "" {
			t.Error(diff)
		}
	})
}

// When half of what the connection has at first lies unread, the windows of streams
// become small and the connection gets its second half.
func TestShrink(t *testing.T) {
	const small = 32 << 10
	opts := http2.Options{StreamWindow: 4 << 20, ConnWindow: 8 << 20}
	// crowd fills a window, has one byte more come, and returns the bodies.
	crowd := func(p *peer) (full, begun io.Reader, fullID, begunID uint32) {
		p.heard()
		full, fullID = p.body(2 << 20)
		begun, begunID = p.body(0)
		if got := p.heard(); len(got) > 0 {
			p.t.Errorf("heard %q while half of a half is unread", got)
		}
		p.more(begunID, 1)
		want := []string{fmt.Sprintf("windows %d", small), fmt.Sprintf("window 0 +%d", 4<<20)}
		if diff := cmp.Diff(want, p.heard()); diff != "" {
			p.t.Error(diff)
		}
		return
	}
	acknowledge := func(p *peer) {
		p.write(p.fr.WriteSettingsAck)
		synctest.Wait()
	}
	bubble(t, "once", func(t *testing.T) {
		p := newPeer(t, opts)
		_, _, full, begun := crowd(p)
		p.more(full, 2<<20) // was under way
		p.more(begun, small-1)
		if got := p.heard(); len(got) > 0 {
			t.Errorf("heard %q", got)
		}
		p.works()
	})
	bubble(t, "new streams", func(t *testing.T) {
		p := newPeer(t, opts)
		crowd(p)
		_, id := p.body(small)
		p.works()
		p.more(id, 1)
		if code := p.reset(id); code != xhttp2.ErrCodeFlowControl {
			t.Errorf("reset with %v", code)
		}
	})
	bubble(t, "a reader grows its window", func(t *testing.T) {
		p := newPeer(t, opts)
		full, begun, fullID, begunID := crowd(p)
		acknowledge(p)
		acknowledge(p)
		// One half of 4 MiB, less what lies unread, which is 2 MiB.
		io.ReadFull(begun, make([]byte, 1))
		if diff := cmp.Diff([]string(nil), p.heard()); diff != "" {
			t.Error("a byte was read", diff)
		}
		p.more(begunID, small-1)
		synctest.Wait()
		io.ReadFull(begun, make([]byte, small-1))
		want := []string{fmt.Sprintf("window %d +%d", begunID, (small/2+1)+(2<<20)-(small/2-1))}
		if diff := cmp.Diff(want, p.heard()); diff != "" {
			t.Error(diff)
		}
		// The other would need more than is left, until little of it is unread.
		io.ReadFull(full, make([]byte, 1<<20-64<<10))
		if diff := cmp.Diff([]string(nil), p.heard()); diff != "" {
			t.Error("half was read", diff)
		}
		io.ReadFull(full, make([]byte, 1<<20+64<<10))
		if got := p.heard(); len(got) == 0 {
			t.Errorf("the window of %d did not grow", fullID)
		}
	})
	bubble(t, "a window that has grown makes room with its stream's end", func(t *testing.T) {
		p := newPeer(t, opts)
		full, begun, fullID, begunID := crowd(p)
		acknowledge(p)
		acknowledge(p)
		p.more(begunID, small-1)
		synctest.Wait()
		io.ReadFull(begun, make([]byte, small))
		p.data(begunID, true, "")
		io.ReadAll(begun)
		p.heard()
		io.ReadFull(full, make([]byte, 1<<20-64<<10)) // as above, where that is too little
		if got := p.heard(); !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, fmt.Sprintf("window %d ", fullID)) }) {
			t.Errorf("heard %q", got)
		}
	})
	bubble(t, "not before the server knows", func(t *testing.T) {
		p := newPeer(t, opts)
		_, begun, _, id := crowd(p)
		acknowledge(p) // the opening's
		p.more(id, small-1)
		synctest.Wait()
		io.ReadFull(begun, make([]byte, small))
		want := []string{fmt.Sprintf("window %d +%d", id, small/2+1), fmt.Sprintf("window %d +%d", id, small/2-1)}
		if diff := cmp.Diff(want, p.heard()); diff != "" {
			t.Error(diff)
		}
	})
	bubble(t, "small as they are", func(t *testing.T) {
		p := newPeer(t, http2.Options{StreamWindow: small, ConnWindow: 8 << 20})
		p.heard()
		for range 2<<20/small + 1 {
			p.body(small)
		}
		want := []string{fmt.Sprintf("windows %d", small), fmt.Sprintf("window 0 +%d", 4<<20)}
		if diff := cmp.Diff(want, p.heard()); diff != "" {
			t.Error(diff)
		}
	})
}

// A body that is given up gives the connection's window back, whole, before and
// after it is shrunk.
func TestCancelGivesWindowBack(t *testing.T) {
	for name, sizes := range map[string][]int{"alone": {1 << 20}, "two": {1 << 20, 4 << 20}, "three": {4 << 20, 3 << 20, 1 << 20}} {
		bubble(t, name, func(t *testing.T) {
			p := newPeer(t, http2.Options{StreamWindow: 4 << 20, ConnWindow: 16 << 20})
			var streams []*http2.Stream
			for _, size := range sizes {
				s, id := p.get()
				streams = append(streams, s)
				p.respond(id, false, ":status", "200")
				p.more(id, size)
				io.ReadFull(head(t, s).Body, make([]byte, size/2+1))
			}
			p.heard()
			for _, s := range streams {
				s.Cancel()
			}
			p.heard()
			want := int64(8 << 20)
			if p.client.Shrunk() {
				want *= 2
			}
			if got := p.client.Granted(); got < want-4<<10 || p.client.Unread() != 0 {
				t.Errorf("the server may send %d bytes of %d, %d are unread", got, want, p.client.Unread())
			}
		})
	}
}

// Bodies that nobody reads, or whose readers stop half way, hold nobody up and take
// no more memory than they may.
func TestUnreadBodiesHoldNobodyUp(t *testing.T) {
	const size = 5 << 20
	bubble(t, "120", func(t *testing.T) {
		c := serveFar(t, http2.Options{StreamWindow: 2 << 20, ConnWindow: 8 << 20}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/small" {
				pour(w, r, 1000)
			} else {
				pour(w, r, size)
			}
		})
		var bodies []io.Reader
		for i := range 120 {
			s := open(t, c, terms, request(t, "GET", "http://x.test/big"), 0)
			body := head(t, s).Body
			io.CopyN(io.Discard, body, int64(i%2)<<16)
			bodies = append(bodies, body)
			if i%10 == 9 {
				time.Sleep(10 * roundTrip)
			}
			spent := stopwatch()
			if _, got := exchange(t, c, request(t, "GET", "http://x.test/small"), nil, 0); len(got) != 1000 {
				t.Errorf("%d bytes", len(got))
			}
			// One that comes while the connection is shrunk waits for that.
			if d := spent(); d > 2*roundTrip {
				t.Errorf("beside %d unread bodies a small one took %v", len(bodies), d)
			}
		}
		if n := c.Unread(); n > 8<<20 {
			t.Errorf("%d bytes are unread", n)
		}
		for i, body := range bodies {
			if n, err := io.Copy(io.Discard, body); err != nil || n != size-int64(i%2)<<16 {
				t.Errorf("body %d: %d bytes, %v", i, n, err)
			}
		}
	})
}

// Whatever readers do, a server that keeps to the windows is never reproached, no
// body hangs, and no window is over its limit: the server would end the connection.
func TestWindowsAtRandom(t *testing.T) {
	for seed := range uint64(12) {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			opts := http2.Options{ConnWindow: 128 << 10 << rng.IntN(8)}
			opts.StreamWindow = 64 << 10 << rng.IntN(8)
			if seed == 0 {
				opts = http2.Options{StreamWindow: 1<<30 - 1, ConnWindow: 1<<31 - 1}
			}
			c := serveFar(t, opts, func(w http.ResponseWriter, r *http.Request) {
				size, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
				pour(w, r, size)
			})
			var readers sync.WaitGroup
			for range 30 {
				size := rng.IntN(1 << rng.IntN(23))
				s := open(t, c, terms, request(t, "GET", fmt.Sprintf("http://x.test/%d", size)), 0)
				late, pause, part := rng.IntN(20), rng.IntN(3), size>>rng.IntN(3)
				giveUp := rng.IntN(4) == 0
				readers.Go(func() {
					time.Sleep(time.Duration(late) * roundTrip / 2)
					body := head(t, s).Body
					n, err := io.CopyN(io.Discard, body, int64(part))
					time.Sleep(time.Duration(pause) * roundTrip)
					if giveUp {
						s.Cancel()
						return
					}
					var rest int64
					if err == nil {
						rest, err = io.Copy(io.Discard, body)
					}
					if n+rest != int64(size) || err != nil {
						t.Errorf("%d bytes of %d, %v", n+rest, size, err)
					}
				})
				time.Sleep(time.Duration(rng.IntN(3)) * roundTrip / 3)
				if n := c.Unread(); n > max(int64(opts.ConnWindow), 4*int64(opts.StreamWindow)) {
					t.Errorf("%d bytes are unread", n)
				}
			}
			readers.Wait()
			resp, _ := exchange(t, c, request(t, "GET", "http://x.test/1000"), nil, 0)
			if resp.StatusCode != http.StatusOK || c.Unread() != 0 {
				t.Errorf("status %d, %d bytes are unread", resp.StatusCode, c.Unread())
			}
		})
	}
}
