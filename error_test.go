package catena_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/route"
)

// TestErrorTree: one sentence about the failure that decided, and with %+v a line
// for each attempt.
func TestErrorTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.WithLatency(time.Millisecond))
		defer network.Close()
		network.AddHost("origin.test", "192.0.2.1", "192.0.2.2")
		network.SetFaults("192.0.2.1:80", simnet.Faults{BlackHole: true})
		listener, err := network.Listen("192.0.2.2:80")
		if err != nil {
			t.Fatal(err)
		}
		peer := startFaultyPeer(t, listener, func(c *peerConn) { c.readRequest() })
		defer peer.stop()
		client := h1Client(t, catena.WithDialContext(network.DialContext), catena.WithDNS(network), catena.WithConnectTimeout(time.Second))
		defer client.Close()
		_, err = client.Do(bodyRequest(t, "POST", "http://user:hidden@origin.test/a?token=hidden&b=1", "hello"))
		want := `POST http://user:xxxxx@origin.test/a?token=██&b=1: read the response from 192.0.2.2:80: ` +
			`the server closed the connection before a response: EOF (the last of 2 attempts); ` +
			`the request may have been acted on and is not sent again`
		if diff := gocmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("Error (-want +got):\n%s", diff)
		}
		for _, verb := range []string{"%v", "%s"} {
			if got := fmt.Sprintf(verb, err); got != want {
				t.Errorf("%s: %s", verb, got)
			}
		}
		tree := want + `
  1. connect 192.0.2.1:80, 1s: connect timeout after 1s; tried again: next-route
  2. read 192.0.2.2:80, request written, 2ms: the server closed the connection before a response: EOF; not tried again: may-have-been-acted-on`
		if diff := gocmp.Diff(tree, fmt.Sprintf("%+v", err)); diff != "" {
			t.Errorf("%%+v (-want +got):\n%s", diff)
		}
		if got := fmt.Sprintf("%q", err); got != fmt.Sprintf("%q", want) {
			t.Errorf("%%q: %s", got)
		}
	})
}

// TestUnwrap: errors.Is and As see the failure that decided, not those before.
func TestUnwrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.WithLatency(time.Millisecond))
		defer network.Close()
		network.AddHost("origin.test", "192.0.2.1", "192.0.2.2")
		network.SetFaults("192.0.2.1:80", simnet.Faults{Refuse: true}, simnet.Faults{Refuse: true}, simnet.Faults{Refuse: true})
		listener, err := network.Listen("192.0.2.2:80")
		if err != nil {
			t.Fatal(err)
		}
		peer := startFaultyPeer(t, listener, func(c *peerConn) { c.readRequest(); c.untilClosed() })
		defer peer.stop()
		client := h1Client(t, catena.WithDialContext(network.DialContext), catena.WithDNS(network), catena.WithReadTimeout(time.Second))
		defer client.Close()
		background := func() (context.Context, context.CancelFunc) { return context.Background(), func() {} }
		deadline := func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), time.Second/2)
		}
		canceled := func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Second/2, cancel)
			return ctx, cancel
		}
		for _, test := range []struct {
			name    string
			ctx     func() (context.Context, context.CancelFunc)
			opts    []catena.CallOption
			is      error
			step    string // of the *TimeoutError
			timeout bool
			why     string // of the last attempt
		}{
			{"read timeout", background, nil, os.ErrDeadlineExceeded, "read", true, "timeout"},
			{"call timeout", background, []catena.CallOption{catena.WithCallTimeout(time.Second / 2)}, context.DeadlineExceeded, "call", true, "canceled"},
			{"the caller's deadline", deadline, nil, context.DeadlineExceeded, "", true, "canceled"},
			{"the caller's cancel", canceled, nil, context.Canceled, "", false, "canceled"},
		} {
			ctx, cancel := test.ctx()
			defer cancel()
			req := bodyRequest(t, "GET", "http://origin.test/", "").WithContext(ctx)
			_, err := client.NewCall(req, test.opts...).Execute()
			var call *catena.CallError
			if !errors.As(err, &call) {
				t.Fatalf("%s: %T", test.name, err)
			}
			for _, other := range []error{os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled, syscall.ECONNREFUSED} {
				if is := errors.Is(err, other); is != (other == test.is) {
					t.Errorf("%s: errors.Is(%v) is %v: %+v", test.name, other, is, err)
				}
			}
			var timeout *catena.TimeoutError
			var step string
			if errors.As(err, &timeout) {
				step = string(timeout.Step)
			}
			if step != test.step {
				t.Errorf("%s: timeout of step %q, want %q", test.name, step, test.step)
			}
			var verdict net.Error = call
			if verdict.Timeout() != test.timeout {
				t.Errorf("%s: Timeout() is %v", test.name, verdict.Timeout())
			}
			if last := call.Attempts[len(call.Attempts)-1]; string(last.Why) != test.why || last.Err != call.Err {
				t.Errorf("%s: the last attempt is %+v", test.name, last)
			}
			time.Sleep(time.Second)
		}
	})
}

// uncomparable is an error that == can't compare.
type uncomparable []error

func (e uncomparable) Error() string { return fmt.Sprint("several: ", []error(e)) }

// TestErrorOfOthers: whatever a dialer, a resolver or an interceptor fails with is
// found in the call's error, and shown.
func TestErrorOfOthers(t *testing.T) {
	several := uncomparable{errors.New("one"), errors.New("two")}
	dial := func(err error) catena.Option {
		return catena.WithDialContext(func(context.Context, string, string) (net.Conn, error) { return nil, err })
	}
	one := errors.New("mine")
	already := &catena.CallError{Method: "GET", URL: "http://inner.test/", Err: one}
	for _, test := range []struct {
		name     string
		opt      catena.Option
		want     string
		attempts string
	}{
		{"dialer", dial(one), "GET http://origin.test/: connect to 127.0.0.1:80: mine", "\nconnect: no-more-routes"},
		{"dialer, uncomparable", dial(several), "GET http://origin.test/: several: [one two]", "\nconnect: no-more-routes"},
		{"resolver", catena.WithDNS(route.DNSFunc(func(context.Context, string, string) ([]netip.Addr, error) { return nil, one })),
			"GET http://origin.test/: look up origin.test: mine", "\ndns: no-more-routes"},
		{"interceptor", catena.WithInterceptor(failing(one)), "GET http://origin.test/: mine", ""},
		{"interceptor, uncomparable", catena.WithInterceptor(failing(several)), "GET http://origin.test/: several: [one two]", ""},
		{"interceptor with a call's error", catena.WithInterceptor(failing(already)), "GET http://inner.test/: mine", ""},
	} {
		client := h1Client(t, catena.WithDNS(&loopbackNames{}), test.opt)
		_, err := client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))
		if got := err.Error(); got != test.want {
			t.Errorf("%s: %s; want %s", test.name, got, test.want)
		}
		if got := attemptsOf(err); got != test.attempts {
			t.Errorf("%s: attempts %q, want %q", test.name, got, test.attempts)
		}
		if found := (uncomparable)(nil); !errors.Is(err, one) && !errors.As(err, &found) {
			t.Errorf("%s: the cause is not found in %v", test.name, err)
		}
		_ = fmt.Sprintf("%+v", err)
	}
}

func failing(err error) chain.Interceptor {
	return chain.InterceptorFunc(func(chain.Chain) (*http.Response, error) { return nil, err })
}

// TestInvalidCalls fail before anything is dialed, with a CallError that has no
// attempt.
func TestInvalidCalls(t *testing.T) {
	dialed := false
	client := h1Client(t, catena.WithDialContext(func(context.Context, string, string) (net.Conn, error) {
		dialed = true
		return nil, errors.New("dialed")
	}))
	closed := h1Client(t)
	closed.Close()
	twice := closed.NewCall(bodyRequest(t, "GET", "http://origin.test/", ""))
	twice.Execute()
	for _, test := range []struct {
		name string
		do   func() (*http.Response, error)
		is   error
		want string
	}{
		{"no scheme", func() (*http.Response, error) { return client.Do(bodyRequest(t, "GET", "//origin.test/", "")) }, nil, "scheme"},
		{"ftp", func() (*http.Response, error) { return client.Do(bodyRequest(t, "GET", "ftp://origin.test/", "")) }, nil, "ftp"},
		{"no host", func() (*http.Response, error) { return client.Do(bodyRequest(t, "GET", "http:///a", "")) }, nil, "host"},
		{"a closed client", func() (*http.Response, error) { return closed.Do(bodyRequest(t, "GET", "http://origin.test/", "")) }, catena.ErrClosed, ""},
		{"a second time", func() (*http.Response, error) { return twice.Execute() }, catena.ErrAlreadyExecuted, ""},
		{"a bad option", func() (*http.Response, error) {
			return client.NewCall(bodyRequest(t, "GET", "http://origin.test/", ""), catena.WithReadTimeout(-1)).Execute()
		}, nil, "WithReadTimeout"},
	} {
		_, err := test.do()
		if got := attemptsOf(err); got != "" {
			t.Errorf("%s: %v with attempts %q", test.name, err, got)
		}
		if test.is != nil && !errors.Is(err, test.is) || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		if strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%s: more than one line: %v", test.name, err)
		}
	}
	if dialed {
		t.Error("an invalid request was dialed for")
	}
}

// TestWrongProtocol: the error names what the server speaks.
func TestWrongProtocol(t *testing.T) {
	for _, test := range []struct {
		says string
		tls  bool
		want string
	}{
		{"\x00\x00\x12\x04\x00\x00\x00\x00\x00", false, "HTTP/2"},
		{"\x15\x03\x01\x00\x02\x02\x46", false, "TLS"},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", true, "without TLS"},
	} {
		peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
			c.send(test.says)
			c.closeWrite()
			c.untilClosed()
		})
		url := peer.url("/")
		if test.tls {
			url = strings.Replace(url, "http:", "https:", 1)
		}
		client := h1Client(t, catena.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}))
		_, err := client.Do(bodyRequest(t, "GET", url, ""))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v does not speak of %s", test.says, err, test.want)
		}
	}
}

// TestBodyError: reading a response's body fails with a CallError too, again and
// again, and Close after it does not.
func TestBodyError(t *testing.T) {
	peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) { c.readRequest(); c.send(sized + "12345") })
	resp, err := h1Client(t).Do(bodyRequest(t, "POST", peer.url("/"), "hello"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	want := fmt.Sprintf("POST %s: read the response from %s: the connection ended inside the response body after 5 of 20 bytes: unexpected EOF", peer.url("/"), peer.listener.Addr())
	if string(body) != "12345" || err.Error() != want || !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		t.Errorf("body %q, then %v; want %s", body, err, want)
	}
	_, again := resp.Body.Read(make([]byte, 1))
	if again != err {
		t.Errorf("read again: %v", again)
	}
	if err := resp.Body.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestRequestBodyFails: the body's own error is the call's, the server sees no
// end of the request, and nothing is sent again.
func TestRequestBodyFails(t *testing.T) {
	boom := errors.New("boom")
	for _, size := range []int{0, 3, 200 << 10} {
		for _, declared := range []int64{-1, int64(size) + 5} {
			peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), rawOK)
			req := bodyRequest(t, "PUT", peer.url("/"), "")
			body := &countedBody{Reader: io.MultiReader(strings.NewReader(strings.Repeat("b", size)), brokenReader{boom})}
			req.Body, req.ContentLength = body, declared
			req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("asked for another body") }
			_, err := h1Client(t).Do(req)
			var own *connection.RequestBodyError
			if !errors.Is(err, boom) || !errors.As(err, &own) || attemptsOf(err) != "\nwrite, written: request-body" && attemptsOf(err) != "\nwrite: request-body" {
				t.Errorf("%d bytes, %d declared: %+v", size, declared, err)
			}
			peer.stop()
			for _, s := range peer.seen() {
				if s.err == nil && s.body != "" {
					t.Errorf("%d bytes, %d declared: the server took %d bytes for the whole body", size, declared, len(s.body))
				}
			}
			if body.closes != 1 {
				t.Errorf("the body was closed %d times", body.closes)
			}
		}
	}
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }
