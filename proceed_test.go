package catena_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
)

// proceedsTwice answers with the second try where the first one fails.
var proceedsTwice = chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
	if resp, err := c.Proceed(c.Request()); err == nil {
		return resp, nil
	}
	return c.Proceed(c.Request())
})

// once is a network interceptor that makes something else of the first request.
func once(first func(c chain.Chain) (*http.Response, error)) catena.Option {
	used := false
	return catena.WithNetworkInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		if used {
			return c.Proceed(c.Request())
		}
		used = true
		return first(c)
	}))
}

// What failed below an application interceptor is over: it may try again.
func TestProceedAgainAfterAFailure(t *testing.T) {
	down := errors.New("the signer is down")
	for name, first := range map[string]func(c chain.Chain) (*http.Response, error){
		"before": func(chain.Chain) (*http.Response, error) { return nil, down },
		"after": func(c chain.Chain) (*http.Response, error) {
			c.Proceed(c.Request())
			return nil, down
		},
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, allProtocols, func(w *world) {
				w.serve(answer)
				w.client = w.derive(w.client, catena.WithInterceptor(proceedsTwice), once(first))
				w.get("/", "abc")
			})
		})
	}
}

// A request that a network interceptor spoils is refused at once. That is not the
// server's failure: it is not tried again, and nothing is remembered of it.
func TestNetworkInterceptorSpoilsTheRequest(t *testing.T) {
	spoils := func(c chain.Chain) (*http.Response, error) {
		req := c.Request().Clone(c.Request().Context())
		req.Header["X"] = []string{"a\nb"}
		return c.Proceed(req)
	}
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(answer)
		w.client = w.derive(w.client, once(spoils))
		err := w.fail(w.requestTo("GET", w.url(twin, "/"), nil))
		var ours *catena.CallError
		if !errors.As(err, &ours) || len(ours.Attempts) > 0 {
			w.Errorf("error %+v, want one without an attempt", err)
		}
		for _, e := range w.calls.Events() {
			if e.Name == "RetryDecision" && (e.Taken || e.Why != event.ReasonNotRecoverable) {
				w.Errorf("%v", e)
			}
		}
		w.do(w.requestTo("GET", w.url(twin, "/"), nil), "abc")
		if first, second := w.net.Dials(twinAddr1), w.net.Dials(twinAddr2); first == 0 || second != 0 {
			w.Errorf("%d and %d connections; want the first address not postponed", first, second)
		}
	})
}

// A call whose interceptor has an answer of its own to a body that fails has not
// failed.
func TestFallbackAfterABodyThatFails(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(cutHalfway)
		w.client = w.derive(w.client, catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
			resp, err := c.Proceed(c.Request())
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close()
			if _, err := io.ReadAll(resp.Body); err == nil {
				w.Error("the body does not fail")
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
		})))
		w.get("/", "")
		names := w.calls.Names()
		if last := names[len(names)-1]; last != "CallEnd" {
			w.Errorf("the last event is %s", last)
		}
	})
}
