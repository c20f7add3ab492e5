package http2_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/connection/http2"
	xhttp2 "golang.org/x/net/http2"
)

// bubble runs f as a subtest in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func stopwatch() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

func after(d time.Duration) <-chan time.Time { return time.After(d) }

// The read timeout bounds the wait for the head as a whole, and each Read of
// the body. It resets the stream and spares the connection.
func TestReadTimeout(t *testing.T) {
	tests := map[string]struct {
		before func(p *peer, id uint32)
		wait   func(s *http2.Stream) error
	}{
		"head": {nil, func(s *http2.Stream) error { _, err := s.ReadResponseHeaders(nil); return err }},
		"head after interim": {func(p *peer, id uint32) { p.respond(id, false, ":status", "103") }, func(s *http2.Stream) error {
			if _, err := s.ReadResponseHeaders(nil); err != nil {
				return err
			}
			_, err := s.ReadResponseHeaders(nil)
			return err
		}},
		"body": {func(p *peer, id uint32) {
			p.respond(id, false, ":status", "200")
			p.data(id, false, "data")
		}, func(s *http2.Stream) error {
			resp, err := s.ReadResponseHeaders(nil)
			if err != nil {
				return err
			}
			got, err := io.ReadAll(resp.Body)
			if string(got) != "data" {
				return errors.New("the data before was not delivered")
			}
			return err
		}},
		"end of a 204": {func(p *peer, id uint32) { p.respond(id, false, ":status", "204") },
			func(s *http2.Stream) error { _, err := s.ReadResponseHeaders(nil); return err }},
	}
	for name, tt := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.get()
			if tt.before != nil {
				tt.before(p, id)
			}
			synctest.Wait()
			spent := stopwatch()
			if err := tt.wait(s); err != os.ErrDeadlineExceeded {
				t.Errorf("error %v, want os.ErrDeadlineExceeded", err)
			}
			if d := spent(); d != terms.ReadTimeout {
				t.Errorf("after %v, want %v", d, terms.ReadTimeout)
			}
			if code := p.reset(id); code != xhttp2.ErrCodeCancel {
				t.Errorf("reset with %v, want CANCEL", code)
			}
			s.End()
			synctest.Wait()
			if !p.client.Healthy() {
				t.Fatal("the connection is not healthy")
			}
			p.works()
		})
	}
}

// The read timeout counts from the request's end only.
func TestReadTimeoutStartsAfterRequest(t *testing.T) {
	for _, finish := range []string{"finish", "abort"} {
		bubble(t, finish, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.post(-1)
			if finish == "abort" {
				p.respond(id, false, ":status", "200")
			}
			const upload = time.Minute
			spent := stopwatch()
			go func() {
				for range 6 {
					<-after(upload / 6)
					io.WriteString(s, "piece")
				}
				if finish == "abort" {
					s.InterruptWrite()
					s.AbortRequest()
				} else {
					s.FinishRequest(nil)
				}
			}()
			resp, err := s.ReadResponseHeaders(nil)
			if err == nil {
				_, err = resp.Body.Read(make([]byte, 1))
			}
			if err != os.ErrDeadlineExceeded {
				t.Errorf("error %v, want os.ErrDeadlineExceeded", err)
			}
			if d, want := spent(), upload+terms.ReadTimeout; d != want {
				t.Errorf("after %v, want %v", d, want)
			}
		})
	}
}

// Each Read of a slow body has the whole timeout.
func TestSlowBodyIsNoTimeout(t *testing.T) {
	bubble(t, "slow", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		s, id := p.get()
		go func() {
			for i := range 5 {
				<-after(terms.ReadTimeout * 9 / 10)
				if i == 0 {
					p.respond(id, false, ":status", "200")
				} else {
					p.data(id, i == 4, "x")
				}
			}
		}()
		got, err := io.ReadAll(head(t, s).Body)
		if string(got) != "xxxx" || err != nil {
			t.Errorf("body %q, %v", got, err)
		}
	})
}

// A stream that times out without a sign of life from the server takes the
// connection out of service until there is one.
func TestSilentConnection(t *testing.T) {
	bubble(t, "back", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		p.mute = true
		s, _ := p.get()
		if _, err := s.ReadResponseHeaders(nil); err != os.ErrDeadlineExceeded {
			t.Fatal(err)
		}
		if p.client.Healthy() || p.client.Reserve() {
			t.Fatal("a silent connection takes streams")
		}
		p.write(func() error { return p.fr.WritePing(false, [8]byte{1}) })
		synctest.Wait()
		if !p.client.Healthy() {
			t.Error("a sign of life does not heal it")
		}
	})
	bubble(t, "gone", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		p.mute = true
		var why error
		p.client.OnRetire(func(err error) { why = err })
		s, _ := p.get()
		s.ReadResponseHeaders(nil)
		s.End()
		<-after(5*time.Second + 1)
		synctest.Wait()
		if why == nil || !strings.Contains(why.Error(), "PING") {
			t.Errorf("retired for %v, want the missing answer to a PING", why)
		}
	})
}

// With a ping interval a dead server is found within two of them, and every
// stream fails.
func TestPingInterval(t *testing.T) {
	const interval = 200 * time.Millisecond
	bubble(t, "dead", func(t *testing.T) {
		p := newPeer(t, http2.Options{PingInterval: interval})
		p.mute = true
		s, _ := p.get()
		spent := stopwatch()
		_, err := s.ReadResponseHeaders(nil)
		if err == nil || !strings.Contains(err.Error(), "did not answer a PING for 200ms") {
			t.Errorf("error %v", err)
		}
		if d := spent(); d > 2*interval {
			t.Errorf("after %v, want at most %v", d, 2*interval)
		}
		if p.client.Healthy() {
			t.Error("the connection is healthy")
		}
	})
	bubble(t, "alive", func(t *testing.T) {
		p := newPeer(t, http2.Options{PingInterval: interval})
		s, id := p.get()
		<-after(20*interval - 1)
		if n := len(p.pings); n < 10 {
			t.Errorf("%d pings", n)
		}
		p.respond(id, true, ":status", "200")
		head(t, s)
	})
	bubble(t, "none", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		<-after(time.Hour)
		if len(p.pings) > 0 || !p.client.Healthy() {
			t.Errorf("%d pings, healthy %t", len(p.pings), p.client.Healthy())
		}
	})
}

// The server's SETTINGS are not waited for without end.
func TestSettingsTimeout(t *testing.T) {
	bubble(t, "silence", func(t *testing.T) {
		p := newSilentPeer(t, http2.Options{SettingsTimeout: 3 * time.Second})
		s, _ := p.get()
		spent := stopwatch()
		_, err := s.ReadResponseHeaders(nil)
		if kind(err) != "protocol" || !strings.Contains(err.Error(), "no SETTINGS within 3s") {
			t.Errorf("error %v", err)
		}
		if d := spent(); d != 3*time.Second {
			t.Errorf("after %v", d)
		}
		if f := p.next(); f.typ != xhttp2.FrameGoAway || f.code != xhttp2.ErrCodeSettingsTimeout {
			t.Errorf("got %+v, want GOAWAY(SETTINGS_TIMEOUT)", f)
		}
	})
	bubble(t, "none", func(t *testing.T) {
		p := newSilentPeer(t, http2.Options{SettingsTimeout: -1})
		<-after(time.Hour)
		if !p.client.Healthy() {
			t.Error("the connection was given up")
		}
	})
}

// AwaitResponse is what a request with Expect: 100-continue waits with.
func TestAwaitResponse(t *testing.T) {
	tests := map[string]struct {
		do    func(p *peer, id uint32)
		ready bool
		fails bool
		after time.Duration
	}{
		"silence": {nil, false, false, time.Second},
		"100":     {func(p *peer, id uint32) { p.respond(id, false, ":status", "100") }, true, false, 10 * time.Millisecond},
		"401":     {func(p *peer, id uint32) { p.respond(id, false, ":status", "401") }, true, false, 10 * time.Millisecond},
		"reset":   {func(p *peer, id uint32) { p.rst(id, xhttp2.ErrCodeInternal) }, false, true, 10 * time.Millisecond},
	}
	for name, tt := range tests {
		bubble(t, name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			s, id := p.post(5)
			if tt.do != nil {
				time.AfterFunc(10*time.Millisecond, func() { tt.do(p, id) })
			}
			spent := stopwatch()
			ready, err := s.AwaitResponse(time.Second)
			if ready != tt.ready || (err != nil) != tt.fails {
				t.Errorf("got %t, %v", ready, err)
			}
			if d := spent(); d != tt.after {
				t.Errorf("after %v, want %v", d, tt.after)
			}
			if again, _ := s.AwaitResponse(0); again != tt.ready {
				t.Errorf("a second time: %t", again)
			}
			if len(p.frames) > 0 && !tt.fails {
				t.Errorf("the client sent %+v", p.next())
			}
			s.Cancel()
		})
	}
}

// A peer whose socket takes nothing is given up, not waited for.
func TestStuckSocket(t *testing.T) {
	bubble(t, "stuck", func(t *testing.T) {
		ours, theirs := newStuckPair(t)
		c := connect(t, ours, http2.Options{WriteTimeout: 3 * time.Second})
		theirs.stop()
		s := newStream(t, c, terms)
		spent := stopwatch()
		err := s.WriteRequestHeaders(request(t, "GET", "http://x.test/"), 0)
		if err == nil || !strings.Contains(err.Error(), "took no data for 3s") {
			t.Errorf("error %v", err)
		}
		if d := spent(); d != 3*time.Second {
			t.Errorf("after %v", d)
		}
		if !s.Written() {
			t.Error("Written is false though a write was tried")
		}
	})
}
