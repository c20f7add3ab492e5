package catena

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hookLog notes the hooks that are called. The fields of a head are noted apart:
// clients order and choose them as they like.
type hookLog struct {
	mu      sync.Mutex // guards the fields below
	calls   []string
	fields  map[string][]string
	conn    net.Conn
	waiting chan struct{} // closed by Wait100Continue; nil: none
	sent    chan struct{} // told by WroteRequest; nil: none
	interim chan struct{} // told by Got1xxResponse; nil: none
}

func (l *hookLog) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
}

func (l *hookLog) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(hostPort string) { l.note("GetConn %s", hostPort) },
		GotConn: func(info httptrace.GotConnInfo) {
			l.note("GotConn reused=%v idle=%v", info.Reused, info.WasIdle)
			l.conn = info.Conn
		},
		PutIdleConn:          func(err error) { l.note("PutIdleConn %v", err) },
		GotFirstResponseByte: func() { l.note("GotFirstResponseByte") },
		Got100Continue:       func() { l.note("Got100Continue") },
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			l.note("Got1xxResponse %d %s", code, h.Get("Link"))
			if l.interim != nil {
				l.interim <- struct{}{}
			}
			return nil
		},
		DNSStart:          func(info httptrace.DNSStartInfo) { l.note("DNSStart %s", info.Host) },
		DNSDone:           func(info httptrace.DNSDoneInfo) { l.note("DNSDone %v %v", info.Addrs, info.Err) },
		ConnectStart:      func(network, addr string) { l.note("ConnectStart %s %s", network, addr) },
		ConnectDone:       func(network, addr string, err error) { l.note("ConnectDone %s %s %v", network, addr, err) },
		TLSHandshakeStart: func() { l.note("TLSHandshakeStart") },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			l.note("TLSHandshakeDone complete=%v %v", state.HandshakeComplete, err)
		},
		WroteHeaderField: func(key string, values []string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.fields == nil {
				l.fields = map[string][]string{}
			}
			l.fields[key] = append(l.fields[key], values...)
		},
		WroteHeaders: func() { l.note("WroteHeaders") },
		Wait100Continue: func() {
			l.note("Wait100Continue")
			if l.waiting != nil {
				close(l.waiting)
			}
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			l.note("WroteRequest %v", info.Err)
			if l.sent != nil {
				l.sent <- struct{}{}
			}
		},
	}
}

// take is what was noted since it was last asked, with "server" for server's
// address.
func (l *hookLog) take(server *httptest.Server) (calls []string, fields map[string][]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls, fields = l.calls, l.fields
	l.calls, l.fields = nil, nil
	if server == nil {
		return calls, fields
	}
	anonymous := func(texts []string) {
		for i := range texts {
			texts[i] = strings.ReplaceAll(texts[i], server.Listener.Addr().String(), "server")
		}
	}
	anonymous(calls)
	for _, values := range fields {
		anonymous(values)
	}
	return calls, fields
}

func tracedRequest(t *testing.T, log *hookLog, target string) *http.Request {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), log.trace())
	req, err := http.NewRequestWithContext(ctx, "GET", target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "test")
	return req
}

// traceServer answers what the paths of its comparisons need.
func traceServer(waiting, sent <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "hello")
	})
	mux.HandleFunc("/sent", func(w http.ResponseWriter, r *http.Request) {
		<-sent
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "hello")
	})
	mux.HandleFunc("/hint", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "hello")
	})
	mux.HandleFunc("/expect", func(w http.ResponseWriter, r *http.Request) {
		<-waiting
		io.Copy(io.Discard, r.Body) // sends 100
		io.WriteString(w, "hello")
	})
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, r *http.Request) {
		<-waiting
		w.WriteHeader(http.StatusExpectationFailed)
	})
	mux.HandleFunc("/close", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "hello")
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/", http.StatusFound)
	})
	return mux
}

// lateReader waits before its first Read, so that hooks which net/http calls on
// several goroutines come in one order.
type lateReader struct {
	wait chan struct{}
	io.Reader
}

func (r *lateReader) Read(p []byte) (int, error) {
	if r.wait != nil {
		<-r.wait
		r.wait = nil
	}
	return r.Reader.Read(p)
}

// TestHooksAreCalledAsByNetHTTP compares the hooks, and the fields written, with
// those of net/http's Transport against the same server.
func TestHooksAreCalledAsByNetHTTP(t *testing.T) {
	post := func(r *http.Request, _ *hookLog) {
		r.Method, r.Body, r.ContentLength = "POST", io.NopCloser(strings.NewReader("body")), 4
	}
	chunked := func(r *http.Request, _ *hookLog) {
		r.Method, r.Body, r.ContentLength = "POST", io.NopCloser(strings.NewReader("body")), -1
	}
	expect := func(r *http.Request, log *hookLog) {
		r.Method, r.Body, r.ContentLength = "POST", io.NopCloser(&lateReader{log.interim, strings.NewReader("body")}), 4
		r.Header.Set("Expect", "100-continue")
	}
	for _, test := range []struct {
		name    string
		tls, h2 bool
		path    string
		times   int
		change  func(*http.Request, *hookLog)
	}{
		{name: "fresh GET", path: "/"},
		{name: "pooled GET", path: "/", times: 2},
		{name: "POST", path: "/", change: post},
		{name: "chunked POST", path: "/", change: chunked},
		{name: "empty POST", path: "/", change: func(r *http.Request, _ *hookLog) { r.Method = "POST" }},
		{name: "100-continue", path: "/expect", change: expect},
		{name: "103", path: "/hint"},
		{name: "connection closed", path: "/close", times: 2},
		{name: "TLS", tls: true, path: "/", times: 2},
		{name: "HTTP/2", tls: true, h2: true, path: "/sent", times: 2},
		{name: "HTTP/2 POST", tls: true, h2: true, path: "/sent", change: post},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := func(makeTransport func(*httptest.Server) http.RoundTripper) (calls []string, fields []map[string][]string) {
				log := &hookLog{waiting: make(chan struct{}), sent: make(chan struct{}, 2), interim: make(chan struct{}, 2)}
				server := httptest.NewUnstartedServer(traceServer(log.waiting, log.sent))
				server.EnableHTTP2 = test.h2
				if test.tls {
					server.StartTLS()
				} else {
					server.Start()
				}
				defer server.Close()
				transport := makeTransport(server)
				for range max(test.times, 1) {
					req := tracedRequest(t, log, server.URL+test.path)
					if test.change != nil {
						test.change(req, log)
					}
					resp, err := transport.RoundTrip(req)
					if err != nil {
						t.Fatal(err)
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					these, wrote := log.take(server)
					calls, fields = append(calls, these...), append(fields, wrote)
				}
				if _, isTLS := log.conn.(*tls.Conn); isTLS != test.tls {
					t.Errorf("GotConn's Conn is a %T", log.conn)
				}
				return calls, fields
			}
			want, wantFields := run(func(s *httptest.Server) http.RoundTripper {
				transport := s.Client().Transport.(*http.Transport)
				transport.ExpectContinueTimeout = 1 << 40
				t.Cleanup(transport.CloseIdleConnections)
				return transport
			})
			got, gotFields := run(func(s *httptest.Server) http.RoundTripper {
				opts := []Option{}
				if test.tls {
					opts = append(opts, WithTLSConfig(s.Client().Transport.(*http.Transport).TLSClientConfig))
				}
				client, err := New(opts...)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { client.Close() })
				return client.RoundTripper()
			})
			if test.h2 { // we do not tell whether other streams were there
				for i := range want {
					want[i] = strings.ReplaceAll(want[i], " idle=true", " idle=false")
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("hooks (-net/http +catena):\n%s", diff)
			}
			for _, wrote := range gotFields {
				delete(wrote, "Connection") // we say Keep-Alive
			}
			if diff := cmp.Diff(wantFields, gotFields); diff != "" {
				t.Errorf("fields (-net/http +catena):\n%s", diff)
			}
		})
	}
}

func TestHooksAreCalledForEachHop(t *testing.T) {
	server := httptest.NewServer(traceServer(nil, nil))
	defer server.Close()
	client, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	log := &hookLog{}
	resp, err := client.Do(tracedRequest(t, log, server.URL+"/redirect"))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	want := []string{
		"GetConn server", "ConnectStart tcp server", "ConnectDone tcp server <nil>", "GotConn reused=false idle=false",
		"WroteHeaders", "WroteRequest <nil>", "GotFirstResponseByte",
		"GetConn server", "GotConn reused=true idle=false",
		"WroteHeaders", "WroteRequest <nil>", "GotFirstResponseByte", "PutIdleConn <nil>",
	}
	got, _ := log.take(server)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

func TestHooksOfABodyThatIsNotWanted(t *testing.T) {
	log := &hookLog{waiting: make(chan struct{})}
	server := httptest.NewServer(traceServer(log.waiting, nil))
	defer server.Close()
	client, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	transport := client.RoundTripper()
	req := tracedRequest(t, log, server.URL+"/refuse")
	req.Method, req.Body, req.ContentLength = "POST", io.NopCloser(strings.NewReader("body")), 4
	req.Header.Set("Expect", "100-continue")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	want := []string{
		"GetConn server", "ConnectStart tcp server", "ConnectDone tcp server <nil>", "GotConn reused=false idle=false",
		"WroteHeaders", "Wait100Continue", "GotFirstResponseByte", "WroteRequest <nil>",
	}
	got, _ := log.take(server)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

func TestHookThatRefusesAnInterimResponseEndsTheCall(t *testing.T) {
	server := httptest.NewServer(traceServer(nil, nil))
	defer server.Close()
	client, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(int, textproto.MIMEHeader) error { return errors.New("not wanted") },
	})
	resp, err := client.Get(ctx, server.URL+"/hint")
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the call gave %v, want context.Canceled", err)
	}
}
