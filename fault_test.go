package catena_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// faultRequest is a kind of request that meets a fault.
type faultRequest struct {
	name   string
	method string
	body   int // its size
}

// watchedSize is the size of a request body beyond which the response is watched
// for while it is sent.
const watchedSize = 64 << 10

var faultRequests = []faultRequest{
	{"GET", "GET", 0},
	{"POST", "POST", 5},
	{"large POST", "POST", 256 << 10},
}

// TestFaults lets a server misbehave in every way of the table, with the first
// request on a connection and with the second, and compares what the call comes
// to with testdata/faults.txt. The next call has to work.
func TestFaults(t *testing.T) {
	checkFaults(t, "testdata/faults.txt", faults, serveFault)
}

// serveFault answers one request well where reused is set, and meets the next one
// with f. Later connections have no fault.
func serveFault(c *peerConn, f fault, reused bool) {
	if c.n > 1 {
		rawOK(c)
		return
	}
	if reused {
		c.readRequest()
		c.send(rawAnswer("200 OK", "good"))
	}
	f.do(c)
}

// checkFaults lets each kind of request meet each fault and compares the outcomes
// with the page.
func checkFaults(t *testing.T, golden string, faults []fault, serve func(*peerConn, fault, bool), opts ...catena.Option) {
	var page strings.Builder
	page.WriteString(faultsPreface)
	for _, f := range faults {
		var order []string
		met := map[string][]string{}
		for _, reused := range []bool{false, true} {
			for _, r := range faultRequests {
				name := cmp.Or(map[bool]string{true: "reused"}[reused], "fresh") + " " + r.name
				synctest.Test(t, func(t *testing.T) {
					defer func() {
						if t.Failed() {
							t.Logf("in: %s, %s", f.name, name)
						}
					}()
					outcome := meetFault(t, f, r, reused, serve, opts)
					if met[outcome] == nil {
						order = append(order, outcome)
					}
					met[outcome] = append(met[outcome], name)
				})
			}
		}
		fmt.Fprintf(&page, "\n%s\n", f.name)
		for _, outcome := range order {
			names := strings.Join(met[outcome], ", ")
			names = strings.Replace(names, "fresh GET, fresh POST, fresh large POST", "fresh", 1)
			names = strings.Replace(names, "reused GET, reused POST, reused large POST", "reused", 1)
			fmt.Fprintf(&page, "    %s:\n        %s\n", names, strings.ReplaceAll(outcome, "\n", "\n        "))
		}
	}
	if updating() {
		if err := os.WriteFile(golden, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), page.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

// updating reports whether golden files are to be written anew.
func updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

const faultsPreface = `What a call comes to when the server misbehaves with its request: the status and the body, or what the error
is and the bytes of body before it; then each failed attempt (its step, whether on a reused connection, whether
the request may have been seen, what followed and why); then how many request heads the server read.
`

// meetFault runs a call into f, after a good one on the same connection where
// reused is set, and says what came of it.
//
// Where f is of HTTP/2, no write to the network waits: x/net's client writes with a
// mutex held, for which a bubble's clock does not wait.
func meetFault(t *testing.T, f fault, r faultRequest, reused bool, serve func(*peerConn, fault, bool), opts []catena.Option) string {
	window := 64 << 10
	if f.frames != nil {
		window = roomyWindow
	}
	network := simnet.New(simnet.WithLatency(time.Millisecond), simnet.WithWindow(window))
	defer network.Close()
	network.AddHost("origin.test", "192.0.2.1")
	listener, err := network.Listen("192.0.2.1:80")
	if err != nil {
		t.Fatal(err)
	}
	peer := startFaultyPeer(t, listener, func(c *peerConn) { serve(c, f, reused) })
	defer peer.stop()
	events := event.NewRecorder()
	client := h1Client(t, append([]catena.Option{catena.WithDialContext(network.DialContext), catena.WithDNS(network),
		catena.WithEventListener(events)}, opts...)...)
	defer client.Close()
	if reused {
		if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/good", ""))); got != `200 "good"` {
			t.Errorf("the first call: %s", got)
		}
		if f.early {
			synctest.Wait()
			time.Sleep(10 * time.Millisecond) // what the peer did has arrived
		}
	}
	before := len(peer.seen())
	req := bodyRequest(t, r.method, "http://origin.test/fault", strings.Repeat("b", r.body))
	body := &countedBody{Reader: req.Body}
	if req.Body != nil {
		req.Body = body
	}
	began := time.Now()
	outcome := outcomeOf(client.Do(req))
	if took := time.Since(began).Truncate(time.Second); took > 0 {
		outcome = strings.Replace(outcome, "timeout", "timeout after "+took.String(), 1)
	}
	if !f.whole && r.body > watchedSize && !strings.Contains(outcome, "timeout") {
		// Reader and writer notice at the same time; either is right.
		outcome = strings.NewReplacer("\nread,", "\nread or write,", "\nwrite,", "\nread or write,").Replace(outcome)
	}
	seen := len(peer.seen()) - before
	if req.Body != nil && body.closes != 1 {
		t.Errorf("the request body was closed %d times", body.closes)
	}
	if n := client.Pool().ConnectionCount(); n > 1 {
		t.Errorf("%d connections are open after the call", n)
	}
	if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/next", ""))); !strings.HasPrefix(got, `200 "ok"`) {
		t.Errorf("the next call: %s", got)
	}
	client.CloseIdleConnections()
	if n := client.Pool().ConnectionCount(); n != 0 {
		t.Errorf("%d connections are open at the end", n)
	}
	if err := catenatest.CheckEvents(events.Events()); err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%s\nseen %d", outcome, seen)
}

// h1Client is a client without proxies that speaks HTTP/1.1 and ends with the
// test.
func h1Client(t testing.TB, opts ...catena.Option) *catena.Client {
	t.Helper()
	client, err := catena.New(append([]catena.Option{
		catena.WithProxy(proxy.Proxy{}), catena.WithProtocols("http/1.1"), catena.WithUserAgent(""),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// bodyRequest has a body that can be sent again, none for "".
func bodyRequest(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// countedBody counts how often it is closed.
type countedBody struct {
	io.Reader
	closes int
}

func (b *countedBody) Close() error {
	b.closes++
	return nil
}

// outcomeOf reads a response to its end and says in a line what came: the status
// and the body, or what the error is and what came before; then a line for each
// failed attempt.
func outcomeOf(resp *http.Response, err error) string {
	if err != nil {
		return "error: " + kindOf(err) + attemptsOf(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return fmt.Sprintf("%d, %q, then error: %s%s", resp.StatusCode, body, kindOf(err), attemptsOf(err))
	}
	var tries string
	if info, ok := catena.InfoOf(resp); ok {
		tries = triesOf(info.Attempts)
	}
	return fmt.Sprintf("%d %q%s", resp.StatusCode, body, tries)
}

func attemptsOf(err error) string {
	var call *catena.CallError
	if !errors.As(err, &call) {
		return "\nnot a CallError"
	}
	return triesOf(call.Attempts)
}

func triesOf(attempts []catena.Attempt) string {
	var b strings.Builder
	for _, a := range attempts {
		fmt.Fprintf(&b, "\n%s", a.Step)
		for _, is := range []struct {
			so   bool
			word string
		}{{a.Reused, "reused"}, {a.Written, "written"}, {a.Retried, "again"}} {
			if is.so {
				b.WriteString(", " + is.word)
			}
		}
		fmt.Fprintf(&b, ": %s", a.Why)
	}
	return b.String()
}

// kindOf is the kind of a call's error, as errors.As and errors.Is tell it.
func kindOf(err error) string {
	var kinds []string
	var timeout *catena.TimeoutError
	var protocol *connection.ProtocolError
	var body *connection.RequestBodyError
	var reset *connection.StreamResetError
	var unprocessed *connection.UnprocessedError
	var verdict net.Error
	if errors.As(err, &timeout) {
		kinds = append(kinds, string(timeout.Step)+" timeout")
	}
	if errors.As(err, &verdict) && verdict.Timeout() != (timeout != nil) {
		kinds = append(kinds, fmt.Sprintf("Timeout() is %v", verdict.Timeout()))
	}
	if errors.As(err, &protocol) {
		kinds = append(kinds, "protocol")
	}
	if errors.As(err, &body) {
		kinds = append(kinds, "request body")
	}
	if errors.As(err, &reset) {
		kinds = append(kinds, reset.Name)
	}
	if errors.As(err, &unprocessed) {
		kinds = append(kinds, "not processed")
	}
	for _, known := range []struct {
		err  error
		name string
	}{
		{io.EOF, "closed"}, {io.ErrUnexpectedEOF, "cut short"}, {syscall.ECONNRESET, "reset"}, {syscall.EPIPE, "broken pipe"},
		{syscall.ECONNREFUSED, "refused"}, {context.Canceled, "canceled"}, {context.DeadlineExceeded, "caller's deadline"},
		{connection.ErrTooManyInterim, "too many interim"},
	} {
		if errors.Is(err, known.err) {
			kinds = append(kinds, known.name)
		}
	}
	if kinds == nil {
		return err.Error()
	}
	return strings.Join(slices.Compact(kinds), ", ")
}

// TestFaultsOnSockets repeats on sockets of the system what does not take long.
func TestFaultsOnSockets(t *testing.T) {
	for _, f := range faults {
		for _, reused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reused=%v", f.name, reused), func(t *testing.T) {
				t.Parallel()
				meetFaultOnSocket(t, f, reused)
			})
		}
	}
}

// meetFaultOnSocket checks what holds however the kernel orders things: the call
// ends soon, a POST that was read is not sent again, and the next call works.
func meetFaultOnSocket(t *testing.T, f fault, reused bool) {
	acted := make(chan struct{})
	peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
		if c.n > 1 {
			rawOK(c)
			return
		}
		if reused {
			c.readRequest()
			c.send(rawAnswer("200 OK", "good"))
		}
		if f.early {
			defer close(acted)
		}
		switch f.name {
		case "never reads", "drips the body", "drips the head":
			return // by the clock of TestFaults alone
		case "answers before the request":
			c.send(rawAnswer("200 OK", "early"))
			return
		}
		f.do(c)
		if f.early {
			c.Close()
		}
	})
	client := h1Client(t, catena.WithReadTimeout(300*time.Millisecond), catena.WithWriteTimeout(300*time.Millisecond))
	if reused {
		if got := outcomeOf(client.Do(bodyRequest(t, "GET", peer.url("/good"), ""))); got != `200 "good"` {
			t.Fatalf("the first call: %s", got)
		}
		if f.early {
			<-acted
		}
	}
	before := len(peer.seen())
	outcome := outcomeOf(client.Do(bodyRequest(t, "POST", peer.url("/fault"), "hello")))
	if seen := len(peer.seen()) - before; seen > 1 && !strings.Contains(f.name, "408") {
		t.Errorf("the server saw the POST %d times: %s", seen, outcome)
	}
	if got := outcomeOf(client.Do(bodyRequest(t, "GET", peer.url("/next"), ""))); !strings.HasPrefix(got, `200 "ok"`) {
		t.Errorf("the next call: %s, after %s", got, outcome)
	}
	client.CloseIdleConnections()
	if n := client.Pool().ConnectionCount(); n != 0 {
		t.Errorf("%d connections are open at the end", n)
	}
}
