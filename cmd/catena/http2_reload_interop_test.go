//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/catena-http/catena/event"
)

// reloads lets the server start anew, twice, while calls run. None fails, unless
// the server cuts it.
func reloads(t *testing.T, c *http2Caller) {
	var used ids
	used.add(c.must("GET", "/small.txt", nil, http.StatusOK).connection)
	ctx, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for i := range 16 {
		calls.Go(func() {
			path, want := "/small.txt", sum([]byte("small\n"))
			if i%4 == 0 {
				path, want = "/middle.bin", c.middle
			}
			for ctx.Err() == nil {
				a, err := c.do(t.Context(), "GET", path, nil, http.StatusOK)
				if c.cuts && cutByServer(err) {
					continue
				}
				if err != nil {
					t.Errorf("%+v", err)
					return
				}
				if got := sum(a.body); got != want {
					t.Errorf("%s: %d bytes of checksum %s, want %s", path, len(a.body), got, want)
				}
				used.add(a.connection)
			}
		})
	}
	for range 2 {
		before := used.len()
		moved := false
		for tries := 0; !moved && tries < 5; tries++ { // a server that just reloads may miss a signal
			c.reload()
			moved = within(4*time.Second, func() bool { return used.len() > before || t.Failed() })
		}
		if !moved {
			t.Error("the server reloads, and the calls stay on its old connection")
		}
	}
	stop()
	calls.Wait()
	announced := 0
	for _, e := range c.connections.Events() {
		if e.Name == "NoNewExchanges" && e.Why == event.ReasonGoAway {
			announced++
		}
	}
	if announced < 2 {
		t.Errorf("%d connections ended by GOAWAY, want one for each of 2 reloads", announced)
	}
}

// cutByServer reports whether the server ended the connection under the call.
func cutByServer(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// ids is a set.
type ids struct {
	mu  sync.Mutex // guards all
	all map[uint64]bool
}

func (s *ids) add(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[uint64]bool{}
	}
	s.all[id] = true
}

func (s *ids) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// within asks again and again whether something has happened.
func within(d time.Duration, happened func() bool) bool {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	giveUp := time.NewTimer(d)
	defer giveUp.Stop()
	for {
		if happened() {
			return true
		}
		select {
		case <-giveUp.C:
			return false
		case <-again.C:
		}
	}
}
