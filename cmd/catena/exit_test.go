package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// peer is a server that reads the head of one request a connection, writes what
// it is told, and closes.
func peer(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with the test
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				io.Copy(io.Discard, req.Body)
				io.WriteString(conn, answer)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return "http://" + l.Addr().String()
}

// TestExitCodes is about failures that are easy to have.
func TestExitCodes(t *testing.T) {
	stuck := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	secure := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	plain := serve(t, echo)
	folder := t.TempDir()
	tests := []struct {
		name string
		args []string
		want int
		text string // in the error
	}{
		{"malformed", []string{"http://user:secret@a b/"}, exitURL, `the URL "...@a b/" can't be parsed`},
		{"no host", []string{"http:///path"}, exitURL, "malformed URL: it has no host"},
		{"empty", []string{""}, exitURL, "malformed URL: it has no host"},
		{"scheme", []string{"ftp://example.test/"}, exitOther, `the scheme "ftp" is not supported`},
		{"refused", []string{"http://" + closedPort(t)}, exitConnect, "refused"},
		{"no such name", []string{"http://" + strings.Repeat("a", 64) + "/"}, exitDNS, "no such host"},
		{"no answer", []string{peer(t, "")}, exitEmptyReply, "closed the connection before a response"},
		{"half a head", []string{peer(t, "HTTP/1.1 200 OK\r\nA: b")}, exitReceive, "the connection ended inside"},
		{"half a body", []string{peer(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")}, exitPartial, "after 5 of 10 bytes"},
		{"half a chunk", []string{peer(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n12345")}, exitPartial, ""},
		{"not HTTP", []string{peer(t, "220 mail.test ESMTP\r\n\r\n")}, exitWeirdServer, "protocol error"},
		{"status", []string{"-f", peer(t, "HTTP/1.1 500 Broken\r\nContent-Length: 4\r\n\r\nbody")}, exitStatus, "the server answered 500 Broken"},
		{"read timeout", []string{"--read-timeout", "0.01", stuck.URL}, exitTimeout, "read timeout after 10ms"},
		{"call timeout", []string{"--call-timeout", "10ms", stuck.URL}, exitTimeout, "call timeout after 10ms"},
		{"untrusted", []string{secure.URL}, exitCertificate, "certificate"},
		{"no TLS", []string{strings.Replace(plain.URL, "http:", "https:", 1)}, exitTLS, "without TLS"},
		{"prior knowledge by TLS", []string{"--http2-prior-knowledge", secure.URL}, exitExcluded, "prior knowledge"},
		{"no file to send", []string{"-T", filepath.Join(folder, "missing"), plain.URL}, exitReadError, "missing"},
		{"a folder to send", []string{"-T", folder, plain.URL}, exitReadError, "is a folder"},
		{"no file to post", []string{"-d", "@" + filepath.Join(folder, "missing"), plain.URL}, exitReadError, "missing"},
		{"no file to write", []string{"-o", filepath.Join(folder, "missing", "file"), plain.URL}, exitWriteError, "missing"},
		{"no CA file", []string{"--cacert", filepath.Join(folder, "missing"), plain.URL}, exitCAFile, "missing"},
		{"a CA file without one", []string{"--cacert", file(t, "ca.pem", "no"), plain.URL}, exitCAFile, "no certificate"},
		{"a field that no CONNECT has", []string{"--proxy-header", "Connection: secret", plain.URL}, exitUsage, "must not have Connection"},
		{"an invalid method", []string{"-X", "B AD", plain.URL}, exitOther, plain.URL + `: invalid method "B AD"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := catenaRun(t, "", tt.args...)
			if got.code != tt.want {
				t.Errorf("exit code %d, want %d", got.code, tt.want)
			}
			prefix := fmt.Sprintf("catena: (%d) ", tt.want)
			if !strings.HasPrefix(got.stderr, prefix) || strings.Count(got.stderr, "\n") != 1 ||
				!strings.Contains(got.stderr, tt.text) || strings.Contains(got.stderr, "secret") {
				t.Errorf("errors %q, want one line that begins with %q and has %q", got.stderr, prefix, tt.text)
			}
			if silent := catenaRun(t, "", append([]string{"-s"}, tt.args...)...); silent.code != tt.want || silent.stderr != "" {
				t.Errorf("with -s: exit code %d, errors %q; want %d and none", silent.code, silent.stderr, tt.want)
			}
			if shown := catenaRun(t, "", append([]string{"-sS"}, tt.args...)...); !strings.HasPrefix(shown.stderr, prefix) {
				t.Errorf("with -sS: errors %q", shown.stderr)
			}
		})
	}
}

// closedPort is an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l.Addr().String()
}

// TestExitCode is about failures that are hard to have.
func TestExitCode(t *testing.T) {
	at := func(step event.Step, err error) error {
		return &catena.CallError{Attempts: []catena.Attempt{{Step: event.StepConnect}, {Step: step, Err: err}}, Err: err}
	}
	broken := errors.New("broken")
	way := func(p proxy.Type, ofProxy bool, err error) error {
		return at(event.StepDNS, &route.Error{Step: event.StepDNS, Proxy: proxy.Proxy{Type: p}, OfProxy: ofProxy, Err: err})
	}
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"none", nil, 0},
		{"any", broken, exitOther},
		{"no attempt", &catena.CallError{Err: broken}, exitOther},
		{"own", fmt.Errorf("wrapped: %w", fail(exitRedirects, broken)), exitRedirects},
		{"a proxy's choice", at(event.StepProxySelect, broken), exitProxyDNS},
		{"a proxy's name", way(proxy.HTTP, true, &net.DNSError{}), exitProxyDNS},
		{"a name for a proxy", way(proxy.SOCKS4, false, &net.DNSError{}), exitDNS},
		{"an address that a proxy can't be told", way(proxy.SOCKS4, false, broken), exitSOCKS},
		{"a direct name", way(proxy.Direct, false, broken), exitDNS},
		{"a name", at(event.StepDNS, &net.DNSError{IsTimeout: true}), exitDNS},
		{"a socket", at(event.StepConnect, broken), exitConnect},
		{"a proxy", at(event.StepProxy, broken), exitReceive},
		{"a refused tunnel", at(event.StepProxy, &route.ProxyError{StatusCode: 403}), exitReceive},
		{"a SOCKS proxy", at(event.StepProxy, &proxy.SOCKSError{Code: 5, Err: broken}), exitSOCKS},
		{"a proxy's certificate", at(event.StepProxy, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), exitCertificate},
		{"TLS", at(event.StepTLS, broken), exitTLS},
		{"TLS timeout", at(event.StepTLS, &event.TimeoutError{Step: event.StepTLS}), exitTimeout},
		{"a certificate", at(event.StepTLS, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), exitCertificate},
		{"a write", at(event.StepWrite, broken), exitSend},
		{"a read", at(event.StepRead, broken), exitReceive},
		{"no answer", at(event.StepRead, fmt.Errorf("closed: %w", io.EOF)), exitEmptyReply},
		{"the caller's deadline", at(event.StepRead, context.DeadlineExceeded), exitTimeout},
		{"a stream", at(event.StepRead, &wire.StreamResetError{}), exitStreamReset},
		{"the request's body", at(event.StepWrite, &wire.RequestBodyError{Err: broken}), exitReadError},
		{"an excluded URL", at(event.StepProxy, fmt.Errorf("%w: a reason", connection.ErrPriorKnowledge)), exitExcluded},
		{"a queue", at(event.StepQueue, broken), exitOther},
	}
	for _, tt := range tests {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%s: exit code %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestVerboseFailure: -v prints the tree of attempts.
func TestVerboseFailure(t *testing.T) {
	addr := closedPort(t)
	_, port, _ := net.SplitHostPort(addr)
	got := catenaRun(t, "", "-v", "--resolve", "two.test:"+port+":127.0.0.1,127.0.0.2", "http://two.test:"+port)
	if got.code != exitConnect || !strings.Contains(got.stderr, "\n  1. connect 127.0.0.1:"+port) ||
		!strings.Contains(got.stderr, "\n  2. connect 127.0.0.2:"+port) {
		t.Errorf("exit code %d, errors:\n%s", got.code, got.stderr)
	}
}

// TestInterrupt: the end of run's context ends the call, and no other begins.
// What was written stays.
func TestInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "part")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	out := &interrupting{interrupt: interrupt}
	code, stderr := runTo(ctx, out, "--trace", s.URL, "http://not.called.test/")
	if code != exitInterrupted || !strings.HasSuffix(stderr, "catena: (130) interrupted\n") || out.String() != "part" {
		t.Errorf("exit code %d, output %q, errors:\n%s", code, out, stderr)
	}
	if !strings.Contains(stderr, "CallFailed") || strings.Contains(stderr, "not.called.test") {
		t.Errorf("the timeline does not end with the interrupted call:\n%s", stderr)
	}
}

// interrupting is an output that interrupts the command when something arrives.
type interrupting struct {
	bytes.Buffer
	interrupt func()
}

func (i *interrupting) Write(p []byte) (int, error) {
	i.interrupt()
	return i.Buffer.Write(p)
}
