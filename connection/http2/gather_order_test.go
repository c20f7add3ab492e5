package http2

import (
	"net"
	"strings"
	"testing"
)

// sink is a connection that keeps what is written.
type sink struct {
	net.Conn
	strings.Builder
}

func (s *sink) Write(p []byte) (int, error) { return s.Builder.Write(p) }

// What is written while held bytes are on their way comes after them.
func TestGatherKeepsOrder(t *testing.T) {
	raw := &sink{}
	g := Gather(raw).(*gatherer)
	write := func(s string) {
		if n, err := g.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("Write(%q): %d, %v", s, n, err)
		}
	}
	write("1")
	g.hold()
	write("2")
	write("3")
	meanwhile := true
	err := g.release(func(p []byte) error {
		if meanwhile {
			meanwhile = false
			write("4")
		}
		raw.Write(p)
		return nil
	})
	write("5")
	if got := raw.String(); got != "12345" || err != nil {
		t.Errorf("%q, %v; want 12345", got, err)
	}
}
