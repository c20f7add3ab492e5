package catena_test

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
)

var update = flag.Bool("update", false, "write the golden files of events anew")

var discardLog = log.New(io.Discard, "", 0)

// scenario is what happens in a world, and leaves one golden file: the same for
// all protocols it runs over, but for the events of a TLS handshake.
type scenario struct {
	name string
	over []string // nil: allProtocols
	// beside are events that come from another goroutine than the call's, so
	// anywhere; Canceled always does.
	beside []string
	opts   func(w *world) []catena.Option
	run    func(w *world)
}

func runScenarios(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, s := range scenarios {
		over := s.over
		if over == nil {
			over = allProtocols
		}
		for _, protocol := range over {
			t.Run(s.name+"/"+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { s.play(t, protocol, over[0]) })
			})
		}
	}
}

func (s *scenario) play(t *testing.T, protocol, lead string) {
	w := newWorld(t, protocol)
	if s.opts != nil {
		client, err := w.client.With(s.opts(w)...)
		if err != nil {
			t.Fatal(err)
		}
		w.client = client
	}
	s.run(w)
	w.close()
	synctest.Wait()
	if err := catenatest.CheckEvents(w.calls.Events()); err != nil {
		t.Errorf("events out of order: %v", err)
	}
	if err := catenatest.CheckConnectionEvents(w.conns.Events()); err != nil {
		t.Errorf("events of connections out of order: %v", err)
	}
	w.compare(s.name, w.timeline(s.beside...), lead)
}

// compare holds got against a golden file, which lead writes. If that is over TLS, it
// has the events of handshakes, which worlds in cleartext do not.
func (w *world) compare(name, got, lead string) {
	w.Helper()
	path := filepath.Join("testdata", "events", name+".txt")
	if *update && w.protocol == lead {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			w.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			w.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		w.Fatalf("%v; -update writes it", err)
	}
	want := string(file)
	if !w.secure() && w.protocol != lead {
		want = withoutHandshakes(want)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		w.Errorf("events differ from %s (-want +got):\n%s", path, diff)
	}
}

func withoutHandshakes(text string) string {
	var kept []string
	for _, line := range strings.SplitAfter(text, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "SecureConnect") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// timeline is what the world's calls told, call by call, without what differs
// from run to run or from protocol to protocol.
func (w *world) timeline(beside ...string) string {
	byCall := map[uint64][]event.Event{}
	var order []uint64
	for _, e := range w.calls.Events() {
		if byCall[e.CallID] == nil {
			order = append(order, e.CallID)
		}
		byCall[e.CallID] = append(byCall[e.CallID], e)
	}
	numbers := map[uint64]int{}
	var b strings.Builder
	for i, id := range order {
		fmt.Fprintf(&b, "call %d\n", i+1)
		var elsewhere []string
		for j, e := range byCall[id] {
			if e.Name == "Canceled" && j > 0 || slices.Contains(beside, e.Name) {
				elsewhere = append(elsewhere, w.line(e, numbers))
				continue
			}
			b.WriteString("  " + w.line(e, numbers) + "\n")
		}
		slices.Sort(elsewhere)
		for _, line := range elsewhere {
			b.WriteString("  and beside these: " + line + "\n")
		}
	}
	return b.String()
}

// line is an event with the fields that stay the same. Protocols are checked
// instead of shown.
func (w *world) line(e event.Event, numbers map[uint64]int) string {
	if e.Protocol != "" && !strings.HasPrefix(e.Name, "SecureConnect") && e.Protocol != w.wireProtocol() {
		w.Errorf("%v: protocol %q, want %q", e, e.Protocol, w.wireProtocol())
	}
	e.CallID, e.Protocol, e.TLSVersion = 0, "", ""
	_, e.URL, _ = strings.Cut(e.URL, "://")
	conn, failure := e.ConnectionID, e.Err
	e.ConnectionID, e.Err = 0, nil
	text := e.String()
	if conn != 0 {
		if numbers[conn] == 0 {
			numbers[conn] = len(numbers) + 1
		}
		text = strings.Replace(text, e.Name, fmt.Sprintf("%s #%d", e.Name, numbers[conn]), 1)
	}
	if failure != nil {
		text += " err=" + kind(failure)
	}
	return text
}

func (w *world) wireProtocol() string {
	switch w.protocol {
	case h2, h2c:
		return w.protocol
	}
	return "http/1.1"
}

// kind is the kind of an error, where the texts differ between protocols.
func kind(err error) string {
	var timeout *catena.TimeoutError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var unprocessed *connection.UnprocessedError
	var reset *connection.StreamResetError
	var protocol *connection.ProtocolError
	var tlsHeader tls.RecordHeaderError
	switch {
	case errors.As(err, &timeout):
		return fmt.Sprintf("(timeout: %s after %v)", timeout.Step, timeout.After)
	case errors.Is(err, context.Canceled):
		return "(canceled)"
	case errors.Is(err, context.DeadlineExceeded):
		return "(deadline)"
	case errors.As(err, &dns):
		return "(DNS: " + dns.Err + ")"
	case errors.As(err, &certificate):
		return "(certificate)"
	case errors.As(err, &unprocessed):
		return "(unprocessed)"
	case errors.As(err, &protocol):
		return "(protocol)"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "(refused)"
	case errors.As(err, &tlsHeader):
		return "(not TLS)"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.As(err, &reset):
		return "(cut)"
	}
	for wrapped := errors.Unwrap(err); wrapped != nil; wrapped = errors.Unwrap(wrapped) {
		err = wrapped
	}
	if err.Error() == "the request body is not wanted any more" {
		return "(cut)" // whichever is noticed first
	}
	return "(" + err.Error() + ")"
}
