package catena_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/catenatest"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/connection"
)

// lifelines is what became of the world's connections, one by one.
func (w *world) lifelines() string {
	numbers, calls := map[uint64]int{}, map[uint64]int{}
	var lines [][]string
	for _, e := range w.conns.Events() {
		n := numbers[e.ConnectionID]
		if n == 0 {
			n = len(numbers) + 1
			numbers[e.ConnectionID] = n
			lines = append(lines, []string{fmt.Sprintf("connection %d to %s", n, e.Addr)})
		}
		text := e.Name
		if e.CallID != 0 {
			if calls[e.CallID] == 0 {
				calls[e.CallID] = len(calls) + 1
			}
			text += fmt.Sprintf(" call=%d", calls[e.CallID])
		}
		if e.Why != "" {
			text += " why=" + string(e.Why)
		}
		lines[n-1] = append(lines[n-1], "  "+text)
	}
	var b strings.Builder
	for _, life := range lines {
		b.WriteString(strings.Join(life, "\n") + "\n")
	}
	return b.String()
}

// Each scenario has a file of its own for HTTP/1.1 and for HTTP/2: what becomes of
// a connection is where they differ.
func TestEventsOfConnections(t *testing.T) {
	scenarios := []scenario{
		{name: "one-call", run: func(w *world) {
			w.serve(answer)
			w.get("/", "abc")
		}},
		{name: "two-calls", run: func(w *world) {
			w.serve(answer)
			w.get("/", "abc")
			w.get("/", "abc")
		}},
		{name: "read-timeout", run: func(w *world) {
			w.serve(hang)
			w.fail(w.request("GET", "/", nil))
		}},
		{name: "body-cut", run: func(w *world) {
			w.serve(cutHalfway)
			w.fail(w.request("GET", "/", nil))
		}},
		{name: "body-closed-early", run: func(w *world) {
			w.serve(stopHalfway)
			resp, err := w.client.Do(w.request("GET", "/", nil))
			if err != nil {
				w.Fatal(err)
			}
			resp.Body.Close()
		}},
		{name: "canceled", run: func(w *world) {
			w.serve(hang)
			call := w.client.NewCall(w.request("GET", "/", nil))
			time.AfterFunc(time.Second, call.Cancel)
			finish(call)
		}},
		{name: "server-closes", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Connection", "close")
				answer(rw, r)
			})
			w.get("/", "abc")
			time.Sleep(5 * time.Second)
		}},
		{name: "dead-in-the-pool", run: func(w *world) { w.findDead() }},
		{name: "idle-timeout", run: func(w *world) {
			w.serve(answer)
			w.get("/", "abc")
			time.Sleep(connection.DefaultKeepAlive + time.Minute)
		}},
		{name: "evicted", run: func(w *world) {
			w.serve(answer)
			w.get("/", "abc")
			w.client.CloseIdleConnections()
		}},
		{name: "redirect-other-host", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/from" {
					http.Redirect(rw, r, w.url(other, "/"), http.StatusFound)
				}
				answer(rw, r)
			})
			w.get("/from", "abc")
		}},
		{name: "connect-failed", run: func(w *world) {
			w.serve(answer)
			w.net.SetFaults(twinAddr1, simnet.Faults{Refuse: true})
			w.do(w.requestTo("GET", w.url(twin, "/"), nil), "abc")
		}},
		{name: "upgrade", over: []string{h1}, run: func(w *world) {
			w.peer(func(c net.Conn) {
				io.ReadAtLeast(c, make([]byte, 1<<10), 10)
				io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				io.Copy(c, c)
			})
			req := w.request("GET", "/", nil)
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "echo")
			resp, err := w.client.Do(req)
			if err != nil {
				w.Fatal(err)
			}
			if _, ok := resp.Body.(io.ReadWriteCloser); !ok {
				w.Errorf("the body is a %T", resp.Body)
			}
			resp.Body.Close()
		}},
		{name: "at-the-same-time", run: func(w *world) {
			w.serve(func(rw http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Second)
				answer(rw, r)
			})
			ended := make(chan struct{})
			go func() {
				w.get("/", "abc")
				close(ended)
			}()
			time.Sleep(500 * time.Millisecond)
			w.get("/", "abc")
			<-ended
		}},
	}
	for _, s := range scenarios {
		for _, half := range []struct {
			name string
			over []string
		}{{"http1", onHTTP1}, {"http2", onHTTP2}} {
			over := half.over
			if s.over != nil {
				over = s.over
				if half.name == "http2" {
					continue
				}
			}
			for _, protocol := range over {
				t.Run(s.name+"/"+protocol, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, protocol)
						s.run(w)
						w.close()
						synctest.Wait()
						if err := catenatest.CheckConnectionEvents(w.conns.Events()); err != nil {
							t.Error(err)
						}
						w.compare("connection-"+s.name+"-"+half.name, w.lifelines(), over[0])
					})
				})
			}
		}
	}
}
