package catena_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/catenatest/simnet"
	"github.com/catena-http/catena/connection"
)

// simClient is a client of a network with one server at origin.test:80.
func simClient(t *testing.T, serve func(c *peerConn), opts ...catena.Option) (*catena.Client, *faultyPeer) {
	network := simnet.New(simnet.WithLatency(time.Millisecond))
	network.AddHost("origin.test", "192.0.2.1")
	listener, err := network.Listen("192.0.2.1:80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	peer := startFaultyPeer(t, listener, serve)
	return h1Client(t, append([]catena.Option{catena.WithDialContext(network.DialContext), catena.WithDNS(network)}, opts...)...), peer
}

// TestBodyOfAnotherLength: no more than declared is written, the call fails at
// once, and the connection is not used again.
func TestBodyOfAnotherLength(t *testing.T) {
	for _, size := range []int{3, 10, 200 << 10} {
		for _, declared := range []int64{5, 100 << 10} {
			synctest.Test(t, func(t *testing.T) {
				var wire []byte
				client, peer := simClient(t, func(c *peerConn) {
					if c.n > 1 {
						rawOK(c)
						return
					}
					if c.readHead() != nil {
						wire, _ = io.ReadAll(c.r)
					}
				})
				req := bodyRequest(t, "PUT", "http://origin.test/", strings.Repeat("b", size))
				req.ContentLength = declared
				closes := countCloses(req)
				began := time.Now()
				_, err := client.Do(req)
				if own := (*connection.RequestBodyError)(nil); !errors.As(err, &own) || attemptsOf(err) != "\nwrite, written: request-body" && attemptsOf(err) != "\nwrite: request-body" {
					t.Errorf("%d bytes, %d declared: %+v", size, declared, err)
				}
				if took := time.Since(began); took > 100*time.Millisecond {
					t.Errorf("%d bytes, %d declared: it took %v", size, declared, took)
				}
				if n := closes(); n[0] != 1 || len(n) != 1 {
					t.Errorf("the bodies were closed %v times", n)
				}
				if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))); got != `200 "ok"` {
					t.Errorf("the next call: %s", got)
				}
				client.Close()
				peer.stop()
				if int64(len(wire)) > declared {
					t.Errorf("%d bytes, %d declared: %d were written", size, declared, len(wire))
				}
				if complete := int64(len(wire)) == declared; complete && int64(size) < declared {
					t.Errorf("%d bytes, %d declared: the server has a complete request", size, declared)
				}
			})
		}
	}
}

// TestExpectContinue: the body is sent upon 100, upon silence for the time set, and
// never after a final status.
func TestExpectContinue(t *testing.T) {
	const wait = time.Second
	for _, test := range []struct {
		name  string
		serve func(c *peerConn, req *http.Request)
		want  string
		body  string // that arrived
		after time.Duration
		conns int // of this call and the next
	}{
		{"100", func(c *peerConn, req *http.Request) {
			c.send("HTTP/1.1 100 Continue\r\n\r\n")
		}, `200 "ok"`, "hello", 0, 1},
		{"103, then 100", func(c *peerConn, req *http.Request) {
			c.send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
		}, `200 "ok"`, "hello", 0, 1},
		{"silence", func(c *peerConn, req *http.Request) {}, `200 "ok"`, "hello", wait, 1},
		{"103, then silence", func(c *peerConn, req *http.Request) { c.send("HTTP/1.1 103 Early Hints\r\n\r\n") }, `200 "ok"`, "hello", wait, 1},
		{"401", func(c *peerConn, req *http.Request) {
			c.send(rawAnswer("401 Unauthorized", "no"))
			req.Body = nil
			c.untilClosed()
		}, `401 "no"`, "", 0, 2},
		{"closes", func(c *peerConn, req *http.Request) { req.Body = nil; c.Close() },
			"error: closed\nread, written: may-have-been-acted-on", "", 0, 2},
		{"garbage", func(c *peerConn, req *http.Request) { req.Body = nil; c.send("garbage\r\n\r\n"); c.untilClosed() },
			"error: protocol\nread, written: protocol-error", "", 0, 2},
	} {
		for _, size := range []int{5, 100 << 10} {
			t.Run(fmt.Sprint(test.name, " ", size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					text := strings.Repeat("hello", size/5)
					var arrived string
					client, peer := simClient(t, func(c *peerConn) {
						for req := c.readHead(); req != nil; req = c.readHead() {
							if req.Method == "POST" {
								body := req.Body
								if test.serve(c, req); req.Body == nil {
									return
								}
								b, _ := io.ReadAll(body)
								arrived = string(b)
							}
							c.send(rawAnswer("200 OK", "ok"))
						}
					}, catena.WithExpectContinueTimeout(wait))
					req := bodyRequest(t, "POST", "http://origin.test/", text)
					req.Header.Set("Expect", "100-continue")
					closes := countCloses(req)
					began := time.Now()
					if got := outcomeOf(client.Do(req)); got != test.want {
						t.Errorf("%s, want %s", got, test.want)
					}
					if took := time.Since(began) - test.after; took < 0 || took > 100*time.Millisecond {
						t.Errorf("it took %v, want about %v", time.Since(began), test.after)
					}
					if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))); got != `200 "ok"` {
						t.Errorf("the next call: %s", got)
					}
					if n := peer.accepted(); n != test.conns {
						t.Errorf("%d connections, want %d", n, test.conns)
					}
					if n := closes(); n[0] != 1 || len(n) != 1 {
						t.Errorf("the bodies were closed %v times", n)
					}
					client.Close()
					peer.stop()
					if (arrived == text) != (test.body != "") {
						t.Errorf("%d bytes of body arrived", len(arrived))
					}
				})
			})
		}
	}
}

// TestEarlyAnswer: a final response that comes while a large body is being sent
// ends the upload and is returned, however the server goes on.
func TestEarlyAnswer(t *testing.T) {
	big := rawAnswer("413 Content Too Large", "big")
	for _, test := range []struct {
		name  string
		serve func(c *peerConn)
	}{
		{"keeps reading", func(c *peerConn) { c.send(big); c.untilClosed() }},
		{"stops reading", func(c *peerConn) { c.send(big); time.Sleep(time.Minute) }},
		{"closes", func(c *peerConn) { c.send(big); c.closeWrite(); c.untilClosed() }},
		{"reads a little first", func(c *peerConn) { c.readSome(1000); c.send(big); c.untilClosed() }},
	} {
		for _, unknown := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, " ", unknown), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client, peer := simClient(t, func(c *peerConn) {
						if c.n > 1 {
							rawOK(c)
						} else if c.readHead() != nil {
							test.serve(c)
						}
					})
					req := bodyRequest(t, "POST", "http://origin.test/", strings.Repeat("b", 1<<20))
					if unknown {
						req.ContentLength = -1
					}
					closes := countCloses(req)
					began := time.Now()
					if got := outcomeOf(client.Do(req)); got != `413 "big"` {
						t.Error(got)
					}
					if took := time.Since(began); took > 200*time.Millisecond {
						t.Errorf("it took %v", took)
					}
					if n := closes(); n[0] != 1 || len(n) != 1 {
						t.Errorf("the bodies were closed %v times", n)
					}
					if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))); got != `200 "ok"` {
						t.Errorf("the next call: %s", got)
					}
					if n := peer.accepted(); n != 2 {
						t.Errorf("%d connections, want 2", n)
					}
				})
			})
		}
	}
}

// TestKeepAliveHint: a connection is given up a second before the server means to.
func TestKeepAliveHint(t *testing.T) {
	for _, test := range []struct {
		fields string
		close  bool // the request asks for it
		idle   time.Duration
		conns  int
	}{
		{"Keep-Alive: timeout=1", false, 0, 2},
		{"Keep-Alive: timeout=5", false, 3900 * time.Millisecond, 1},
		{"Keep-Alive: timeout=5", false, 4100 * time.Millisecond, 2},
		{"Keep-Alive: timeout=5, max=1000", false, 4100 * time.Millisecond, 2},
		{"X-None: 1", false, 4 * time.Minute, 1},
		{"X-None: 1", false, 6 * time.Minute, 2},
		{"Keep-Alive: timeout=100000", false, 6 * time.Minute, 2},
		{"Connection: close", false, 0, 2},
		{"X-None: 1", true, 0, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, peer := simClient(t, func(c *peerConn) {
				for c.readRequest() {
					c.send(rawAnswer("200 OK", "ok", test.fields))
				}
			})
			for i := range 2 {
				req := bodyRequest(t, "POST", "http://origin.test/", "hello")
				req.Close = test.close
				if got := outcomeOf(client.Do(req)); got != `200 "ok"` {
					t.Errorf("%s, call %d: %s", test.fields, i, got)
				}
				if i == 0 {
					time.Sleep(test.idle)
				}
			}
			if n := peer.accepted(); n != test.conns {
				t.Errorf("%s, idle for %v: %d connections, want %d", test.fields, test.idle, n, test.conns)
			}
		})
	}
}

// pieceReader gives its pieces with a second between them.
type pieceReader struct{ pieces []string }

func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.pieces[0])
	if r.pieces[0] = r.pieces[0][n:]; r.pieces[0] == "" {
		r.pieces = r.pieces[1:]
		time.Sleep(time.Second)
	}
	return n, nil
}

// TestAnswerBeforeTheWriteFails: a response that came before the connection was
// lost is the answer, though the request could not be written to its end.
func TestAnswerBeforeTheWriteFails(t *testing.T) {
	for _, test := range []struct{ answer, want string }{
		{rawAnswer("413 Content Too Large", "big"), `413 "big"`},
		{"HTTP/1.1 413 Content", "error: reset\nwrite, written: one-shot-body"},
		{"", "error: reset\nwrite, written: one-shot-body"},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, peer := simClient(t, func(c *peerConn) {
				if c.n == 1 && c.readHead() != nil {
					c.send(test.answer)
					time.Sleep(10 * time.Millisecond)
					c.reset()
					return
				}
				rawOK(c)
			})
			piece := strings.Repeat("b", 20<<10)
			req := bodyRequest(t, "POST", "http://origin.test/", "")
			body := &countedBody{Reader: &pieceReader{[]string{piece, piece}}}
			req.Body, req.ContentLength = body, int64(2*len(piece))
			if got := outcomeOf(client.Do(req)); got != test.want {
				t.Errorf("%q: %s, want %s", test.answer, got, test.want)
			}
			if body.closes != 1 {
				t.Errorf("the body was closed %d times", body.closes)
			}
			if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://origin.test/", ""))); got != `200 "ok"` {
				t.Errorf("the next call: %s", got)
			}
			if n := peer.accepted(); n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
		})
	}
}
