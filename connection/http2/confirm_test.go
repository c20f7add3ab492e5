package http2

import (
	"context"
	"testing"
	"time"
)

// Of the reservations made before the server's SETTINGS as many hold as it allows.
func TestConfirm(t *testing.T) {
	c := &Conn{limit: assumedStreams, settled: make(chan struct{})}
	c.reserved = 5
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if !c.Confirm(ended) || c.reserved != 5 {
		t.Error("the end of a context settled something")
	}
	held := make(chan bool)
	for range 5 {
		go func() { held <- c.Confirm(t.Context()) }()
	}
	select {
	case <-held:
		t.Error("confirmed before SETTINGS")
	case <-time.After(time.Millisecond):
	}
	c.mu.Lock()
	c.limit = 2
	c.mu.Unlock()
	close(c.settled)
	n := 0
	for range 5 {
		if <-held {
			n++
		}
	}
	if n != 2 || c.reserved != 2 {
		t.Errorf("%d reservations hold, %d are counted", n, c.reserved)
	}
}
