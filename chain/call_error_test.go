package chain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// errorList is an error that can't be compared.
type errorList []error

func (l errorList) Error() string { return fmt.Sprintf("%d errors", len(l)) }

func TestCallErrorSentence(t *testing.T) {
	refused := errors.New("connection refused")
	reset := errors.New("connection reset by peer")
	dial := errors.New("dial tcp 192.0.2.1:80: refused")
	lookup := errors.New("lookup a.test: no such host")
	unsupported := fmt.Errorf("%w: a reason", connection.ErrPriorKnowledge)
	via := proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 3128}
	silent := &event.TimeoutError{Step: event.StepProxy, After: time.Second}
	socks := proxy.Proxy{Type: proxy.SOCKS5, Host: "p.test"}
	for name, tc := range map[string]struct {
		err  chain.CallError
		want string
	}{
		"no attempt": {
			chain.CallError{Err: errors.New("the request is nil")},
			"GET http://a.test/: the request is nil",
		},
		"connect": {
			chain.CallError{Err: refused, Attempts: []chain.Attempt{{Step: event.StepConnect, Addr: "192.0.2.1:80", Err: refused}}},
			"GET http://a.test/: connect to 192.0.2.1:80: connection refused",
		},
		"connect to a proxy": {
			chain.CallError{Err: refused, Attempts: []chain.Attempt{{Step: event.StepConnect, Addr: "192.0.2.1:3128", Proxy: via, Err: refused}}},
			"GET http://a.test/: connect to proxy http://p.test:3128: connection refused",
		},
		"connect to a SOCKS proxy": {
			chain.CallError{Err: refused, Attempts: []chain.Attempt{{Step: event.StepConnect, Addr: "a.test:80", Proxy: socks, Err: refused}}},
			"GET http://a.test/: connect to proxy socks5://p.test:1080: connection refused",
		},
		"a proxy's dial that names its address": {
			chain.CallError{Err: dial, Attempts: []chain.Attempt{{Step: event.StepConnect, Addr: "192.0.2.1:80", Proxy: via, Err: dial}}},
			"GET http://a.test/: connect to proxy http://p.test:3128: dial tcp 192.0.2.1:80: refused",
		},
		"a proxy that does not answer": {
			chain.CallError{Err: silent, Attempts: []chain.Attempt{{Step: event.StepProxy, Addr: "192.0.2.1:3128", Proxy: via, Err: silent}}},
			"GET http://a.test/: ask proxy http://p.test:3128 for a tunnel: proxy timeout after 1s",
		},
		"a SOCKS proxy that does not answer": {
			chain.CallError{Err: silent, Attempts: []chain.Attempt{{Step: event.StepProxy, Addr: "a.test:80", Proxy: socks, Err: silent}}},
			"GET http://a.test/: connect to a.test:80 through socks5://p.test:1080: proxy timeout after 1s",
		},
		"TLS in a tunnel": {
			chain.CallError{Err: refused, Attempts: []chain.Attempt{{Step: event.StepTLS, Addr: "192.0.2.1:3128", Proxy: via, Err: refused}}},
			"GET http://a.test/: TLS handshake with the origin through proxy http://p.test:3128: connection refused",
		},
		"read through a SOCKS proxy": {
			chain.CallError{Err: refused, Attempts: []chain.Attempt{{Step: event.StepRead, Addr: "a.test:80", Proxy: socks, Err: refused}}},
			"GET http://a.test/: read the response from a.test:80 through socks5://p.test:1080: connection refused",
		},
		"an error that names the address itself": {
			chain.CallError{Err: dial, Attempts: []chain.Attempt{{Step: event.StepConnect, Addr: "192.0.2.1:80", Err: dial}}},
			"GET http://a.test/: dial tcp 192.0.2.1:80: refused",
		},
		"TLS": {
			chain.CallError{Err: refused, Attempts: []chain.Attempt{{Step: event.StepTLS, Addr: "192.0.2.1:443", Err: refused}}},
			"GET http://a.test/: TLS handshake with 192.0.2.1:443: connection refused",
		},
		"protocols that exclude the URL": {
			chain.CallError{Err: unsupported, Attempts: []chain.Attempt{{Step: event.StepTLS, Err: unsupported}}},
			"GET http://a.test/: the protocols exclude the URL: a reason",
		},
		"several, the first decides": {
			chain.CallError{Err: refused, Attempts: []chain.Attempt{
				{Step: event.StepConnect, Addr: "192.0.2.1:80", Err: refused, Retried: true},
				{Step: event.StepConnect, Addr: "192.0.2.2:80", Err: reset},
			}},
			"GET http://a.test/: connect to 192.0.2.1:80: connection refused (the first of 2 attempts)",
		},
		"several, none decides": {
			chain.CallError{Err: refused, Attempts: []chain.Attempt{
				{Step: event.StepRead, Addr: "192.0.2.1:80", Err: reset, Retried: true},
				{Step: event.StepRead, Addr: "192.0.2.1:80", Err: reset, Retried: true},
			}},
			"GET http://a.test/: connection refused",
		},
		"written and not sent again": {
			chain.CallError{Err: reset, Attempts: []chain.Attempt{{Step: event.StepRead, Addr: "192.0.2.1:80", Err: reset, Written: true, Why: event.ReasonMayHaveBeenActedOn}}},
			"GET http://a.test/: read the response from 192.0.2.1:80: connection reset by peer; the request may have been acted on and is not sent again",
		},
		"waiting": {
			chain.CallError{Err: context.Canceled, Attempts: []chain.Attempt{{Step: event.StepQueue, Err: context.Canceled}}},
			"GET http://a.test/: wait for a connection: context canceled",
		},
		"lookup": {
			chain.CallError{Err: lookup, Attempts: []chain.Attempt{{Step: event.StepDNS, Addr: "a.test", Err: lookup}}},
			"GET http://a.test/: lookup a.test: no such host",
		},
		"an error that cannot be compared": {
			chain.CallError{Err: errorList{refused}, Attempts: []chain.Attempt{{Step: event.StepConnect, Addr: "192.0.2.1:80", Err: errorList{refused}}}},
			"GET http://a.test/: 1 errors",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.err.Method, tc.err.URL = "GET", "http://a.test/"
			for _, format := range []string{"%v", "%s"} {
				if diff := cmp.Diff(tc.want, fmt.Sprintf(format, &tc.err)); diff != "" {
					t.Errorf("%s (-want +got)\n%s", format, diff)
				}
			}
			if got := fmt.Sprintf("%q", &tc.err); got != fmt.Sprintf("%q", tc.want) {
				t.Errorf("quoted: %s", got)
			}
		})
	}
}

func TestCallErrorTree(t *testing.T) {
	refused, reset := errors.New("refused"), errors.New("reset")
	err := &chain.CallError{Method: "POST", URL: "http://a.test/", Err: reset, Attempts: []chain.Attempt{
		{Step: event.StepConnect, Addr: "192.0.2.1:80", Proxy: proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 3128}, Duration: 1234567, Err: refused, Retried: true, Why: event.ReasonNextRoute},
		{Step: event.StepRead, Addr: "192.0.2.2:80", Reused: true, Written: true, Duration: 3 * time.Millisecond, Err: reset, Why: event.ReasonMayHaveBeenActedOn},
	}}
	want := `POST http://a.test/: read the response from 192.0.2.2:80: reset (the last of 2 attempts); the request may have been acted on and is not sent again
  1. connect 192.0.2.1:80 via http://p.test:3128, 1.23ms: refused; tried again: next-route
  2. read 192.0.2.2:80, reused connection, request written, 3ms: reset; not tried again: may-have-been-acted-on`
	if diff := cmp.Diff(want, fmt.Sprintf("%+v", err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The deciding failure alone is found by errors.Is, not those of other attempts.
func TestCallErrorUnwrapsTheDecidingFailure(t *testing.T) {
	err := error(&chain.CallError{Err: io.ErrUnexpectedEOF, Attempts: []chain.Attempt{{Err: context.Canceled}, {Err: io.ErrUnexpectedEOF}}})
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) {
		t.Error("errors.Is looks at the wrong failure")
	}
}

func TestCallErrorTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"ours":     {&event.TimeoutError{Step: event.StepRead, After: time.Second}, true},
		"deadline": {context.DeadlineExceeded, true},
		"wrapped":  {fmt.Errorf("read: %w", context.DeadlineExceeded), true},
		"canceled": {context.Canceled, false},
		"plain":    {io.EOF, false},
	} {
		e := &chain.CallError{Err: tc.err}
		if e.Timeout() != tc.want || e.Temporary() != tc.want {
			t.Errorf("%s: %v, %v", name, e.Timeout(), e.Temporary())
		}
	}
}

func TestNewCallError(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), "", "http://me:hunter2@a.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Method = ""
	got := chain.NewCallError(owner{req}, nil, io.EOF)
	if s := got.Error(); strings.Contains(s, "hunter2") || !strings.HasPrefix(s, "GET http://me:") {
		t.Errorf("got %q", s)
	}
	wrapped := fmt.Errorf("interceptor: %w", got)
	if again := chain.NewCallError(owner{req}, nil, wrapped); again != wrapped {
		t.Errorf("a CallError was wrapped again: %v", again)
	}
	if none := chain.NewCallError(owner{nil}, nil, io.EOF); none.Error() == "" {
		t.Error("no text without a request")
	}
}
