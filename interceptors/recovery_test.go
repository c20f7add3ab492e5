package interceptors

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
)

// documented is the rows of a table of docs/connections.md, by cells.
func documented(t *testing.T, table string) [][]string {
	t.Helper()
	page, err := os.ReadFile("../docs/connections.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "<!-- "+table+" -->\n")
	text, _, ended := strings.Cut(rest, "<!-- end -->")
	if !found || !ended {
		t.Fatalf("the page has no table %q", table)
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		rows = append(rows, cells)
	}
	return rows
}

var (
	errLost     = fmt.Errorf("read: %w", syscall.ECONNRESET)
	errBody     = fmt.Errorf("wrapped: %w", &connection.RequestBodyError{Err: io.ErrNoProgress})
	errProtocol = fmt.Errorf("wrapped: %w", &connection.ProtocolError{Reason: "malformed"})
	errTimeout  = fmt.Errorf("wrapped: %w", &event.TimeoutError{Step: event.StepRead})
	errRefused  = &connection.UnprocessedError{Err: &connection.StreamResetError{Name: "REFUSED_STREAM"}}
)

// lost is a request of which everything may be tried again, on a connection that
// broke; change makes it another failure.
func lost(change func(r *recovery)) recovery {
	r := recovery{
		failure:    &connection.Failure{Err: errLost, Exchanged: true, Written: true, MoreRoutes: true},
		enabled:    true,
		idempotent: true,
		replayable: true,
	}
	change(&r)
	return r
}

// noConnection is a failure to connect, which was given up for a reason; "": the
// failure was none of the network's.
func noConnection(why event.Reason) recovery {
	return lost(func(r *recovery) {
		r.failure.Exchanged, r.failure.GaveUp = false, why
		r.enabled = false
	})
}

// recoveryTable has a failure for each line of the page, in its order, that each
// later line would decide otherwise where it can.
var recoveryTable = []struct {
	failure string
	recovery
}{
	{"the call was canceled, its context or its timeout ended",
		lost(func(r *recovery) { r.canceled = true; r.failure.Exchanged = false })},
	{"no connection was made: a certificate, or its name, was refused", noConnection(event.ReasonCertificate)},
	{"no connection was made: all routes were tried, or there was none", noConnection(event.ReasonNoMoreRoutes)},
	{"no connection was made: the protocols of the settings exclude the URL", noConnection(event.ReasonUnsupported)},
	{"it was not the network that failed, but an interceptor for instance", noConnection("")},
	{"anything, with `WithRetryOnConnectionFailure(false)`",
		lost(func(r *recovery) { r.enabled = false; r.failure.Err = errBody })},
	{"the request's own body: its Read failed, or it had another length than declared",
		lost(func(r *recovery) { r.failure.Err = errors.Join(errBody, errProtocol) })},
	{"the server broke HTTP",
		lost(func(r *recovery) { r.failure.Err = errors.Join(errProtocol, errTimeout) })},
	{"a read or write timeout",
		lost(func(r *recovery) { r.failure.Err = errTimeout; r.failure.Unprocessed, r.failure.Refusals = true, 4 })},
	{"the server did not process the request, for the fourth time",
		lost(func(r *recovery) {
			r.failure.Err, r.failure.Unprocessed, r.failure.Refusals = errRefused, true, 4
			r.replayable = false
		})},
	{"a body that was begun and can't be had again",
		lost(func(r *recovery) { r.replayable = false; r.failure.Unprocessed = true })},
	{"the server did not process the request: REFUSED_STREAM, or a GOAWAY below it",
		lost(func(r *recovery) {
			r.failure.Err, r.failure.Unprocessed, r.failure.Refusals = errRefused, true, 3
			r.idempotent, r.failure.MoreRoutes = false, false
		})},
	{"the request was written in part at least, and is not idempotent",
		lost(func(r *recovery) { r.idempotent, r.failure.MoreRoutes = false, false })},
	{"nothing is left to try",
		lost(func(r *recovery) { r.failure.MoreRoutes, r.failure.Reused = false, true })},
	{"the connection had been used before",
		lost(func(r *recovery) { r.failure.Reused = true })},
	{"the connection was new, and another route is left",
		lost(func(*recovery) {})},
}

func TestRecoveryTable(t *testing.T) {
	var got [][]string
	for _, row := range recoveryTable {
		again, why := row.decide()
		got = append(got, []string{row.failure, map[bool]string{true: "yes", false: "no"}[again], string(why)})
	}
	want := documented(t, "recovery")
	for _, cells := range got {
		cells[0] = strings.Trim(cells[0], " `")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/connections.md and the code (-page +code):\n%s", diff)
	}
}

// TestRecoveryOfWhatWasNotSent covers what the page says below its table.
func TestRecoveryOfWhatWasNotSent(t *testing.T) {
	for _, test := range []struct {
		name  string
		r     recovery
		again bool
		why   event.Reason
	}{
		{"not idempotent, not written", lost(func(r *recovery) { r.idempotent, r.failure.Written = false, false }), true, event.ReasonNextRoute},
		{"not idempotent, like OkHttp", lost(func(r *recovery) { r.idempotent = false; r.policy = chain.RetryLikeOkHttp }), true, event.ReasonNextRoute},
		{"one-shot, like OkHttp", lost(func(r *recovery) { r.replayable = false; r.policy = chain.RetryLikeOkHttp }), false, event.ReasonOneShotBody},
		{"stream reset", lost(func(r *recovery) { r.failure.Err = &connection.StreamResetError{Name: "CANCEL"} }), true, event.ReasonNextRoute},
		{"stream reset, not idempotent", lost(func(r *recovery) {
			r.idempotent, r.failure.Err = false, &connection.StreamResetError{Name: "CANCEL"}
		}), false, event.ReasonMayHaveBeenActedOn},
		{"an end of stream", lost(func(r *recovery) { r.failure.Err = io.ErrUnexpectedEOF }), true, event.ReasonNextRoute},
	} {
		if again, why := test.r.decide(); again != test.again || why != test.why {
			t.Errorf("%s: again %v, %s; want %v, %s", test.name, again, why, test.again, test.why)
		}
	}
}

func TestIdempotent(t *testing.T) {
	for _, test := range []struct {
		method string
		header http.Header
		want   bool
	}{
		{"", nil, true}, {"GET", nil, true}, {"HEAD", nil, true}, {"OPTIONS", nil, true}, {"TRACE", nil, true},
		{"PUT", nil, true}, {"DELETE", nil, true}, {"PROPFIND", nil, true}, {"QUERY", nil, true}, {"SEARCH", nil, true},
		{"POST", nil, false}, {"PATCH", nil, false}, {"get", nil, false}, {"LOCK", nil, false}, {"MOVE", nil, false},
		{"POST", http.Header{"Idempotency-Key": {"k"}}, true},
		{"POST", http.Header{"X-Idempotency-Key": {"k"}}, true},
		{"POST", http.Header{"Idempotency": {"k"}}, false},
	} {
		if got := idempotent(&http.Request{Method: test.method, Header: test.header}); got != test.want {
			t.Errorf("%q with %v: %v, want %v", test.method, test.header, got, test.want)
		}
	}
}
