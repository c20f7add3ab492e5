package catena_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
)

// phase is a point at which a call can wait for ever. prepare sets up its world
// and makes the request that gets there within a second.
type phase struct {
	name    string
	over    []string // nil: allProtocols
	opts    func(w *world) []catena.Option
	prepare func(w *world) *http.Request
	inBody  bool // Execute returns before; it is the response's body that waits
}

var phases = []phase{
	{name: "dns", prepare: func(w *world) *http.Request {
		w.net.SetDNSFault(origin, simnet.DNSFault{Hang: true})
		return w.request("GET", "/", nil)
	}},
	{name: "connect", prepare: func(w *world) *http.Request {
		w.net.SetFaults(originAddr, simnet.Faults{BlackHole: true})
		return w.request("GET", "/", nil)
	}},
	{name: "tls", over: overTLS, prepare: func(w *world) *http.Request {
		w.peer(swallow)
		return w.request("GET", "/", nil)
	}},
	{name: "write", prepare: func(w *world) *http.Request { // the server reads nothing
		w.serve(hang)
		body := &endlessBody{closed: make(chan struct{})}
		w.Cleanup(func() { body.checkClosed(w.T) })
		req := w.request("POST", "/", body)
		req.ContentLength = 1 << 30
		return req
	}},
	{name: "body-source", prepare: func(w *world) *http.Request { // the request's body does not come
		w.serve(hang)
		body := newSilentBody()
		w.Cleanup(func() { body.checkClosed(w.T) })
		req := w.request("POST", "/", body)
		req.ContentLength = 1 << 10
		return req
	}},
	{name: "continue", prepare: func(w *world) *http.Request {
		w.serve(hang)
		return expecting(w)
	}, opts: func(*world) []catena.Option {
		return []catena.Option{catena.WithExpectContinueTimeout(time.Hour), catena.WithReadTimeout(0)}
	}},
	{name: "head", prepare: func(w *world) *http.Request {
		w.serve(hang)
		return w.request("GET", "/", nil)
	}},
	{name: "body", inBody: true, prepare: func(w *world) *http.Request {
		w.serve(stopHalfway)
		return w.request("GET", "/", nil)
	}},
}

func TestEventsOfCancel(t *testing.T) {
	var scenarios []scenario
	for _, p := range phases {
		scenarios = append(scenarios, scenario{
			name: "cancel-" + p.name, over: p.over, opts: p.opts, beside: besideOf(p),
			run: func(w *world) {
				call := w.client.NewCall(p.prepare(w))
				time.AfterFunc(time.Second, call.Cancel)
				if _, err := finish(call); err == nil {
					w.Error("the call succeeds")
				}
			},
		})
	}
	runScenarios(t, append(scenarios,
		scenario{name: "cancel-before-execute", run: func(w *world) {
			call := w.client.NewCall(w.request("GET", "/", nil))
			call.Cancel()
			call.Cancel()
			if _, err := finish(call); err == nil {
				w.Error("the call succeeds")
			}
		}},
		scenario{name: "cancel-without-execute", run: func(w *world) {
			w.client.NewCall(w.request("GET", "/", nil)).Cancel()
		}},
		scenario{name: "cancel-after-end", run: func(w *world) {
			w.serve(answer)
			call := w.client.NewCall(w.request("GET", "/", nil))
			if _, err := finish(call); err != nil {
				w.Error(err)
			}
			call.Cancel()
		}},
		scenario{name: "cancel-by-context", run: func(w *world) {
			w.serve(hang)
			ctx, cancel := context.WithCancel(w.Context())
			time.AfterFunc(time.Second, cancel)
			w.fail(w.request("GET", "/", nil).WithContext(ctx))
		}},
		scenario{name: "cancel-in-queue", run: func(w *world) {
			w.serve(answer)
			w.client.Dispatcher().SetMaxCalls(1)
			done := make(chan error)
			release := make(chan struct{})
			w.client.NewCall(w.request("GET", "/", nil)).Enqueue(func(resp *http.Response, err error) {
				<-release
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				done <- err
			})
			time.Sleep(time.Second)
			queued := w.client.NewCall(w.request("GET", "/queued", nil))
			queued.Enqueue(func(_ *http.Response, err error) { done <- err })
			time.Sleep(time.Second)
			queued.Cancel()
			if err := <-done; kind(err) != "(canceled)" {
				w.Errorf("the queued call ends with %v", err)
			}
			close(release)
			<-done
		}},
	))
}

// besideOf names the events of an HTTP/2 upload.
func besideOf(p phase) []string {
	if p.name == "write" {
		return []string{"RequestFailed"}
	}
	return nil
}
