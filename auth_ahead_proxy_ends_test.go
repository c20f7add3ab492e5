package catena_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// slowSource has no credentials ahead of a refusal until the call ends.
type slowSource struct{ auth.Authenticator }

func (slowSource) Authenticate(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
	ctx := resp.Request.Context()
	<-ctx.Done()
	return nil, fmt.Errorf("the source gave up: %w", context.Cause(ctx))
}

func (slowSource) Authorize(*http.Request) error { return nil }

// What ends the call while credentials for a plain proxy are made is the call's error, and the request's body
// is closed.
func TestAheadOfAPlainProxyIsInterrupted(t *testing.T) {
	for name, tc := range map[string]struct {
		opts []catena.CallOption
		end  func(*catena.Call)
		want func(error) bool
	}{
		"timeout": {[]catena.CallOption{catena.WithCallTimeout(time.Second)}, func(*catena.Call) {}, func(err error) bool {
			var timeout *catena.TimeoutError
			return errors.As(err, &timeout) && timeout.Step == "call"
		}},
		"cancel": {nil, (*catena.Call).Cancel, func(err error) bool {
			return errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "source")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, h1, catena.WithProxy(proxyAt(proxy.HTTP, proxyHost)), catena.WithProxyAuthenticator(slowSource{}))
				p := w.proxy(proxyAddr, false, deniedKept)
				body := &counted{Reader: strings.NewReader("body")}
				recorder := event.NewRecorder()
				call := w.client.NewCall(w.request("POST", "/", body), append(tc.opts, catena.WithEventListener(recorder))...)
				go func() { // ends at once
					time.Sleep(time.Second)
					tc.end(call)
				}()
				if _, err := call.Execute(); !tc.want(err) {
					t.Errorf("got %v", err)
				}
				if n := body.closes.Load(); n != 1 || len(p.asks) != 0 {
					t.Errorf("the body was closed %d times, the proxy saw %q", n, p.asks)
				}
				if err := catenatest.CheckEvents(recorder.Events()); err != nil {
					t.Error(err)
				}
				w.close()
			})
		})
	}
}

// A proxy whose nonces are good for one request, and that tells the next one, refuses once.
func TestDigestLearnsTheNextNonceOfAPlainProxy(t *testing.T) {
	var nonce, refusals atomic.Int32
	p := plainProxy(t, func(w http.ResponseWriter, r *http.Request) {
		if current := fmt.Sprintf(`nonce="%d"`, nonce.Load()); !strings.Contains(r.Header.Get("Proxy-Authorization"), current) {
			refusals.Add(1)
			w.Header().Set("Proxy-Authenticate", `Digest realm="p", qop="auth", stale=true, `+current)
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		w.Header().Set("Proxy-Authentication-Info", fmt.Sprintf(`nextnonce="%d"`, nonce.Add(1)))
	})
	client := newClient(t, catena.WithProxy(p), catena.WithProxyAuthenticator(auth.Store(auth.Digest("me", "pw"))))
	for range 4 {
		if got := sendThrough(client, bodyRequest(t, "GET", "http://a.test/", "")); got != "200 " {
			t.Error(got)
		}
	}
	if n := refusals.Load(); n != 1 {
		t.Errorf("%d refusals, want 1", n)
	}
}
