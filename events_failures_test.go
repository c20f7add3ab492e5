package catena_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
)

// hang answers nothing.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// cutHalfway breaks off in the middle of a body of 6 bytes.
func cutHalfway(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Length", "6")
	io.WriteString(rw, "abc")
	rw.(http.Flusher).Flush()
	time.Sleep(time.Second)
	panic(http.ErrAbortHandler)
}

// stopHalfway sends 3 bytes of 600000 and then nothing.
func stopHalfway(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Length", "600000")
	io.WriteString(rw, "abc")
	rw.(http.Flusher).Flush()
	hang(rw, r)
}

func TestEventsOfConnectFailures(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "dns-failed", run: func(w *world) {
			w.fail(w.requestTo("GET", w.url("nowhere.test", "/"), nil))
		}},
		{name: "dns-empty", run: func(w *world) {
			w.net.AddHost("void.test")
			w.fail(w.requestTo("GET", w.url("void.test", "/"), nil))
		}},
		{name: "connect-refused", run: func(w *world) {
			w.fail(w.request("GET", "/", nil))
		}},
		{name: "connect-refused-then-next", run: func(w *world) {
			w.serve(answer)
			w.net.SetFaults(twinAddr1, simnet.Faults{Refuse: true})
			w.do(w.requestTo("GET", w.url(twin, "/"), nil), "abc")
		}},
		{name: "connect-all-refused", run: func(w *world) {
			w.fail(w.requestTo("GET", w.url(twin, "/"), nil))
		}},
		{name: "connect-timeout-then-next", run: func(w *world) {
			w.serve(answer)
			w.net.SetFaults(twinAddr1, simnet.Faults{BlackHole: true})
			w.do(w.requestTo("GET", w.url(twin, "/"), nil), "abc")
		}},
		{name: "connect-postponed", run: func(w *world) { // what failed is tried last
			w.serve(answer)
			w.net.SetFaults(twinAddr1, simnet.Faults{Refuse: true})
			w.do(w.requestTo("GET", w.url(twin, "/"), nil), "abc")
			w.client.CloseIdleConnections()
			w.do(w.requestTo("GET", w.url(twin, "/"), nil), "abc")
		}},
		{name: "tls-bad-name", over: overTLS, run: func(w *world) {
			w.serve(answer)
			w.net.AddHost("unnamed.test", "192.0.2.3", "192.0.2.4")
			w.fail(w.requestTo("GET", w.url("unnamed.test", "/"), nil))
		}},
		{name: "tls-broken-then-next", over: overTLS, run: func(w *world) {
			w.serve(answer)
			w.net.SetFaults(twinAddr1, simnet.Faults{ToClient: simnet.Link{Cut: simnet.Cut{How: simnet.CutRST, After: 5}}})
			w.do(w.requestTo("GET", w.url(twin, "/"), nil), "abc")
		}},
		{name: "tls-silent", over: overTLS, run: func(w *world) {
			w.peer(swallow)
			w.fail(w.request("GET", "/", nil))
		}},
	})
}

func TestEventsOfExchangeFailures(t *testing.T) {
	runScenarios(t, []scenario{
		{name: "read-timeout", run: func(w *world) {
			w.serve(hang)
			w.fail(w.request("GET", "/", nil))
		}},
		{name: "read-timeout-in-body", run: func(w *world) {
			w.serve(stopHalfway)
			w.fail(w.request("GET", "/", nil))
		}},
		{name: "call-timeout", run: func(w *world) {
			w.serve(hang)
			w.fail(w.request("GET", "/", nil), catena.WithCallTimeout(time.Second))
		}},
		{name: "call-timeout-in-body", run: func(w *world) {
			w.serve(stopHalfway)
			w.fail(w.request("GET", "/", nil), catena.WithCallTimeout(time.Second))
		}},
		{name: "body-closed-early", run: func(w *world) {
			w.serve(stopHalfway)
			resp, err := w.client.Do(w.request("GET", "/", nil))
			if err != nil {
				w.Fatal(err)
			}
			io.ReadFull(resp.Body, make([]byte, 3))
			resp.Body.Close()
		}},
		{name: "body-closed-unread", run: func(w *world) {
			w.serve(stopHalfway)
			resp, err := w.client.Do(w.request("GET", "/", nil))
			if err != nil {
				w.Fatal(err)
			}
			resp.Body.Close()
		}},
		{name: "body-cut", run: func(w *world) {
			w.serve(cutHalfway)
			w.fail(w.request("GET", "/", nil))
		}},
		{name: "no-response", run: func(w *world) {
			w.serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			w.fail(w.request("GET", "/", nil))
		}},
		{name: "no-response-then-next", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				if r.Context().Value(http.LocalAddrContextKey).(net.Addr).String() == twinAddr1 {
					panic(http.ErrAbortHandler)
				}
				answer(rw, r)
			})
			w.do(w.requestTo("GET", w.url(twin, "/"), nil), "abc")
		}},
		{name: "no-response-while-uploading", beside: []string{"RequestFailed"}, run: func(w *world) {
			w.serve(func(_ http.ResponseWriter, r *http.Request) {
				io.ReadFull(r.Body, make([]byte, 10))
				panic(http.ErrAbortHandler)
			})
			endless := &endlessBody{closed: make(chan struct{})}
			w.fail(w.request("POST", "/", endless))
			endless.checkClosed(w.T)
		}},
		{name: "no-response-while-body-waits", beside: []string{"RequestFailed"}, run: func(w *world) {
			w.serve(func(http.ResponseWriter, *http.Request) {
				time.Sleep(time.Second)
				panic(http.ErrAbortHandler)
			})
			body := stallingBody{bytes.NewReader(make([]byte, 100<<10)), newSilentBody()}
			req := w.request("POST", "/", body)
			req.ContentLength = 1 << 20
			w.fail(req)
			body.checkClosed(w.T)
		}},
		{name: "request-body-fails", run: func(w *world) {
			w.serve(answer)
			req := w.request("POST", "/", io.MultiReader(strings.NewReader("Hel"), failingReader{}))
			req.ContentLength = 5
			w.fail(req)
		}},
		{name: "large-request-body-fails", beside: []string{"RequestFailed"}, run: func(w *world) {
			w.serve(answer)
			w.fail(w.request("POST", "/", io.MultiReader(strings.NewReader("Hel"), failingReader{})))
		}},
		{name: "request-body-fails-after-continue", run: func(w *world) {
			w.serve(answer)
			req := expecting(w)
			req.Body, req.GetBody = io.NopCloser(failingReader{}), nil
			w.fail(req)
		}},
		{name: "stale-get", run: func(w *world) {
			w.serve(answer)
			w.get("/", "abc")
			w.closeBehindOurBack()
			w.get("/", "abc")
		}},
		{name: "stale-post", run: func(w *world) {
			w.serve(answer)
			w.get("/", "abc")
			w.closeBehindOurBack()
			w.fail(w.request("POST", "/", strings.NewReader("Hello")))
		}},
		{name: "dead-in-the-pool", over: onHTTP1, run: func(w *world) { w.findDead() }},
		{name: "dead-in-the-pool-noticed", over: onHTTP2, run: func(w *world) { w.findDead() }},
	})
}

// findDead makes a call when the pooled connection has been closed long ago: for
// HTTP/1.1 the health check finds out, for HTTP/2 its reader did.
func (w *world) findDead() {
	w.serve(answer)
	w.get("/", "abc")
	w.closeBehindOurBack()
	time.Sleep(latency)
	w.do(w.request("POST", "/", strings.NewReader("Hello")), "abc")
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

// closeBehindOurBack lets the server close its connections. The client can't
// know for half a latency yet when it returns.
func (w *world) closeBehindOurBack() {
	time.Sleep(time.Second)
	for _, c := range w.net.Conns(originAddr) {
		c.Close()
	}
	time.Sleep(latency / 2)
}
