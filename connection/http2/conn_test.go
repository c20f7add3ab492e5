package http2_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

func limit(n uint32) xhttp2.Setting {
	return xhttp2.Setting{ID: xhttp2.SettingMaxConcurrentStreams, Val: n}
}

// Slots follow SETTINGS_MAX_CONCURRENT_STREAMS, also when it changes. A slot is
// free when End returns.
func TestReserve(t *testing.T) {
	bubble(t, "limit", func(t *testing.T) {
		p := newPeer(t, http2.Options{}, limit(2))
		synctest.Wait()
		s, id := p.get()
		if !p.client.Reserve() || p.client.Reserve() {
			t.Fatal("of two slots, one was in use")
		}
		p.client.Unreserve()
		if !p.client.Reserve() {
			t.Fatal("Unreserve freed nothing")
		}
		p.client.Unreserve()
		p.respond(id, true, ":status", "200")
		head(t, s)
		s.End()
		s.End()
		for i, want := range []bool{true, true, false} {
			if got := p.client.Reserve(); got != want {
				t.Fatalf("reservation %d: %v, want %v", i+1, got, want)
			}
		}
		p.write(func() error { return p.fr.WriteSettings(limit(3)) })
		synctest.Wait()
		if !p.client.Reserve() || p.client.Reserve() {
			t.Fatal("the limit was raised to three")
		}
		if !p.client.Healthy() {
			t.Error("a full connection is not healthy")
		}
	})
	bubble(t, "none", func(t *testing.T) {
		p := newPeer(t, http2.Options{}, limit(0))
		synctest.Wait()
		if p.client.Reserve() {
			t.Error("a slot of none")
		}
	})
	bubble(t, "without reservation", func(t *testing.T) {
		p := newPeer(t, http2.Options{}, limit(1))
		synctest.Wait()
		p.client.NewStream(terms).End()
		if !p.client.Reserve() || p.client.Reserve() {
			t.Error("one slot should be free")
		}
	})
}

// With a limit of one, exchanges follow each other on one connection without
// ever finding it full.
func TestLimitOfOne(t *testing.T) {
	p := newPeer(t, http2.Options{}, limit(1))
	for i := range 200 {
		s, id := p.get()
		switch i % 3 {
		case 0:
			p.respond(id, true, ":status", "200")
			head(t, s)
		case 1:
			p.respond(id, false, ":status", "200")
			p.data(id, true, "data")
			io.ReadAll(head(t, s).Body)
		case 2:
			p.respond(id, false, ":status", "200")
			head(t, s).Body.Close()
			p.reset(id)
		}
		s.End()
	}
}

// A limit that was lowered below what is reserved sends nothing that the server
// would refuse.
func TestLimitLowered(t *testing.T) {
	bubble(t, "lowered", func(t *testing.T) {
		p := newPeer(t, http2.Options{}, limit(5))
		synctest.Wait()
		waiting := newStream(t, p.client, terms)
		p.get()
		p.write(func() error { return p.fr.WriteSettings(limit(1)) })
		synctest.Wait()
		err := waiting.WriteRequestHeaders(request(t, "GET", "http://x.test/"), 0)
		var u *wire.UnprocessedError
		if !errors.As(err, &u) || u.Shutdown || waiting.Written() {
			t.Errorf("error %v, want an UnprocessedError without shutdown, nothing written", err)
		}
	})
}

// Until the server's SETTINGS are there, one stream goes ahead and the others
// wait for them.
func TestStreamsWaitForSettings(t *testing.T) {
	bubble(t, "wait", func(t *testing.T) {
		p := newSilentPeer(t, http2.Options{})
		p.get()
		const calls = 5
		got := make(chan error, calls)
		for range calls {
			s := newStream(t, p.client, terms)
			go func() { got <- s.WriteRequestHeaders(request(t, "GET", "http://x.test/"), 0) }()
		}
		synctest.Wait()
		if len(p.frames) > 0 || len(got) > 0 {
			t.Fatal("streams were opened, or failed, before SETTINGS")
		}
		p.write(func() error { return p.fr.WriteSettings(limit(4)) })
		var ok, over int
		for range calls {
			var u *wire.UnprocessedError
			if err := <-got; err == nil {
				ok++
			} else if errors.As(err, &u) && !u.Shutdown {
				over++
			}
		}
		if ok != 3 || over != 2 {
			t.Errorf("%d went ahead and %d did not, want 3 and 2", ok, over)
		}
	})
	bubble(t, "never", func(t *testing.T) {
		p := newSilentPeer(t, http2.Options{})
		p.get()
		s := newStream(t, p.client, terms)
		go p.nc.Close()
		err := s.WriteRequestHeaders(request(t, "GET", "http://x.test/"), 0)
		var u *wire.UnprocessedError
		if !errors.As(err, &u) || !u.Shutdown || s.Written() {
			t.Errorf("error %v, want an UnprocessedError with shutdown", err)
		}
	})
}

// retirement records what OnRetire tells.
func retirement(c *http2.Conn) func() string {
	var why []string
	c.OnRetire(func(err error) { why = append(why, err.Error()) })
	return func() string { return strings.Join(why, "; ") }
}

// After a GOAWAY what is in flight finishes, new streams are refused from its
// first frame on, and the connection closes with the last stream.
func TestGracefulGoAway(t *testing.T) {
	bubble(t, "graceful", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		why := retirement(p.client)
		late := newStream(t, p.client, terms)
		s, id := p.get()
		up, upID := p.post(-1)
		p.goAway(1<<31-1, xhttp2.ErrCodeNo, "")
		synctest.Wait()
		if p.client.Reserve() || p.client.Healthy() {
			t.Error("the connection takes streams after GOAWAY")
		}
		err := late.WriteRequestHeaders(request(t, "GET", "http://x.test/"), 0)
		var u *wire.UnprocessedError
		if !errors.As(err, &u) || !u.Shutdown || late.Written() {
			t.Errorf("a reserved stream: %v, want an UnprocessedError with shutdown", err)
		}
		p.goAway(upID, xhttp2.ErrCodeNo, "")
		p.respond(id, false, ":status", "200")
		p.data(id, true, "fine")
		if got, err := io.ReadAll(head(t, s).Body); string(got) != "fine" || err != nil {
			t.Errorf("in flight: %q, %v", got, err)
		}
		s.End()
		io.WriteString(up, "more")
		if err := up.FinishRequest(nil); err != nil {
			t.Error(err)
		}
		p.respond(upID, true, ":status", "200")
		head(t, up)
		up.End()
		for f := p.next(); f.typ != xhttp2.FrameGoAway; f = p.next() {
			if f.typ != xhttp2.FrameData {
				t.Fatalf("got %+v, want the connection's end", f)
			}
		}
		if got, want := why(), "the server sent GOAWAY NO_ERROR"; got != want {
			t.Errorf("retired for %q, want %q", got, want)
		}
	})
}

// A GOAWAY to an idle connection ends it.
func TestGoAwayWhileIdle(t *testing.T) {
	bubble(t, "idle", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		why := retirement(p.client)
		synctest.Wait()
		p.goAway(0, xhttp2.ErrCodeEnhanceYourCalm, "slow down")
		if f := p.next(); f.typ != xhttp2.FrameGoAway {
			t.Errorf("got %+v, want GOAWAY", f)
		}
		if f := p.next(); f.typ != 0 || f.stream != 0 {
			t.Errorf("got %+v, want the end", f)
		}
		if got, want := why(), `the server sent GOAWAY ENHANCE_YOUR_CALM "slow down"`; got != want {
			t.Errorf("retired for %q, want %q", got, want)
		}
	})
}

// A stream above the GOAWAY's id was not processed, though its body was sent
// whole; one below goes on.
func TestGoAwayBetweenStreams(t *testing.T) {
	p := newPeer(t, http2.Options{})
	below, id := p.get()
	above, _ := p.post(5)
	io.WriteString(above, "hello")
	if err := above.FinishRequest(nil); err != nil {
		t.Fatal(err)
	}
	p.goAway(id, xhttp2.ErrCodeNo, "")
	_, err := above.ReadResponseHeaders(nil)
	var u *wire.UnprocessedError
	if !errors.As(err, &u) || !u.Shutdown {
		t.Errorf("above: %v, want an UnprocessedError with shutdown", err)
	}
	above.End()
	p.respond(id, true, ":status", "200")
	head(t, below)
}

// A server that goes away without a word retires the connection at once.
func TestRetiredByClose(t *testing.T) {
	bubble(t, "close", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		why := retirement(p.client)
		synctest.Wait()
		p.nc.Close()
		synctest.Wait()
		if p.client.Healthy() || p.client.Reserve() {
			t.Error("the connection takes streams")
		}
		if got, want := why(), "the server closed the connection: unexpected EOF"; got != want {
			t.Errorf("retired for %q, want %q", got, want)
		}
	})
}

func TestShutdown(t *testing.T) {
	bubble(t, "idle", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		synctest.Wait()
		p.client.Shutdown()
		if f := p.next(); f.typ != xhttp2.FrameGoAway || f.code != xhttp2.ErrCodeNo {
			t.Errorf("got %+v, want GOAWAY(NO_ERROR)", f)
		}
		if f := p.next(); f.typ != 0 || f.stream != 0 {
			t.Errorf("got %+v, want the end", f)
		}
	})
	bubble(t, "busy", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		why := retirement(p.client)
		s, id := p.get()
		p.client.Shutdown()
		p.client.Shutdown()
		if p.client.Reserve() {
			t.Error("a connection that shuts down takes streams")
		}
		p.respond(id, false, ":status", "200")
		p.data(id, true, "fine")
		if got, err := io.ReadAll(head(t, s).Body); string(got) != "fine" || err != nil {
			t.Errorf("in flight: %q, %v", got, err)
		}
		s.End()
		if f := p.next(); f.typ != xhttp2.FrameGoAway {
			t.Errorf("got %+v, want GOAWAY", f)
		}
		if got, want := why(), "the connection was shut down"; got != want {
			t.Errorf("retired for %q, want %q", got, want)
		}
	})
}

// Callbacks of OnRetire run without a lock: they may use the connection.
func TestOnRetireMayUseTheConnection(t *testing.T) {
	bubble(t, "callback", func(t *testing.T) {
		p := newPeer(t, http2.Options{})
		done := make(chan struct{})
		p.client.OnRetire(func(error) {
			p.client.Reserve()
			p.client.Healthy()
			p.client.Close()
			close(done)
		})
		p.goAway(0, xhttp2.ErrCodeNo, "")
		<-done
	})
}
