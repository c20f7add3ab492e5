package zaplog_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/event/zaplog"
	"github.com/catena-http/catena/proxy"
)

// logger writes JSON lines without the time to the buffer.
func logger(level zapcore.Level) (*zap.Logger, *bytes.Buffer) {
	var out bytes.Buffer
	config := zapcore.EncoderConfig{LevelKey: "L", MessageKey: "M", EncodeLevel: zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.StringDurationEncoder}
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.Lock(zapcore.AddSync(&out)), level)), &out
}

func wantLines(t *testing.T, out *bytes.Buffer, want ...string) {
	t.Helper()
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

var direct proxy.Proxy

// run sends the events of a POST over a new connection, raced by two addresses
// and redirected once; each step takes another number of milliseconds.
func run(l event.Listener, c event.Call) {
	took := func(ms int) { time.Sleep(time.Duration(ms) * time.Millisecond) }
	u := &url.URL{Scheme: "https", Host: "example.com", Path: "/"}
	addrs := []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.1")}
	conn := fakeConnection{4}

	l.CallStart(c)
	l.DispatcherQueueStart(c)
	took(1)
	l.DispatcherQueueEnd(c)
	l.ProxySelectStart(c, u)
	took(2)
	l.ProxySelectEnd(c, u, []proxy.Proxy{direct}, nil)
	l.DNSStart(c, "example.com")
	took(4)
	l.DNSEnd(c, "example.com", addrs, nil)
	l.RouteDecision(c, "[2001:db8::1]:443", direct, true, event.ReasonNext)
	l.ConnectStart(c, "[2001:db8::1]:443", direct)
	took(250)
	l.RouteDecision(c, "192.0.2.1:443", direct, true, event.ReasonNext)
	l.ConnectStart(c, "192.0.2.1:443", direct)
	took(10)
	l.ConnectFailed(c, "[2001:db8::1]:443", direct, "", context.Canceled)
	l.SecureConnectStart(c)
	took(20)
	l.SecureConnectEnd(c, &tls.ConnectionState{Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256, NegotiatedProtocol: "h2"}, nil)
	l.ConnectEnd(c, "192.0.2.1:443", direct, "h2")
	l.ConnectionAcquired(c, conn)
	for i, code := range []int{308, 200} {
		l.RequestHeadersStart(c)
		took(1)
		l.RequestHeadersEnd(c, &http.Request{Method: "POST", URL: u, Header: http.Header{"X-Key": {"hunter2"}, "Accept": {"*/*"}}})
		l.RequestBodyStart(c)
		took(3)
		l.RequestBodyEnd(c, 5)
		took(100)
		l.ResponseHeadersStart(c)
		if code == 200 {
			l.InformationalResponse(c, 103, http.Header{"Link": {"</a>"}})
		}
		l.ResponseHeadersEnd(c, &http.Response{StatusCode: code, Proto: "HTTP/2.0", Header: http.Header{"X-Key": {"hunter2"}}})
		if i == 0 {
			l.FollowUpDecision(c, &http.Response{StatusCode: code}, &http.Request{Method: "POST", URL: u}, event.ReasonRedirect)
			l.ReuseDecision(c, conn, true, event.ReasonHeld)
		} else {
			l.FollowUpDecision(c, &http.Response{StatusCode: code}, nil, event.ReasonFinal)
		}
		l.ResponseBodyStart(c)
		took(7)
		l.ResponseBodyEnd(c, 3)
	}
	l.ConnectionReleased(c, conn)
	l.CallEnd(c)
}

const callEnded = `{"L":"info","M":"call ended","call":1,"method":"GET","url":"https://me:xxxxx@example.com/?token=masked",` +
	`"duration":"509ms","attempts":2,"status":200,"sent":10,"received":6,` +
	`"connection":4,"addr":"192.0.2.1:443","protocol":"h2","reused":false,` +
	`"took":{"queue":"1ms","proxyselect":"2ms","dns":"4ms","connect":"280ms","tls":"20ms","write":"8ms","wait":"200ms","read":"14ms"}}`

func TestInfoIsOneLineACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := logger(zap.InfoLevel)
		run(zaplog.New(l), newCall(1))
		wantLines(t, out, callEnded)
	})
}

func TestWarnIsSilentWhenAllGoesWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := logger(zap.WarnLevel)
		run(zaplog.New(l), newCall(1))
		wantLines(t, out, "")
	})
}

func TestDebugTellsEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := logger(zap.DebugLevel)
		run(zaplog.New(l, zaplog.WithHeaders()), newCall(1))
		head := `{"L":"debug","M":"request head sent","call":1,"method":"POST","url":"https://example.com/","header":{"Accept":["*/*"],"X-Key":["masked"]},"took":"1ms"}`
		sent := `{"L":"debug","M":"request body sent","call":1,"bytes":5,"took":"3ms"}`
		body := `{"L":"debug","M":"response body received","call":1,"bytes":3,"took":"7ms"}`
		wantLines(t, out,
			`{"L":"debug","M":"call started","call":1,"method":"GET","url":"https://me:xxxxx@example.com/?token=masked"}`,
			`{"L":"debug","M":"queue left","call":1,"took":"1ms"}`,
			`{"L":"debug","M":"proxies selected","call":1,"url":"https://example.com/","proxies":["direct"],"took":"2ms"}`,
			`{"L":"debug","M":"name looked up","call":1,"host":"example.com","addrs":["2001:db8::1","192.0.2.1"],"took":"4ms"}`,
			`{"L":"debug","M":"route taken","call":1,"addr":"[2001:db8::1]:443","why":"next"}`,
			`{"L":"debug","M":"route taken","call":1,"addr":"192.0.2.1:443","why":"next"}`,
			`{"L":"debug","M":"connect failed","call":1,"method":"GET","url":"https://me:xxxxx@example.com/?token=masked","addr":"[2001:db8::1]:443","took":"260ms","error":"context canceled"}`,
			`{"L":"debug","M":"TLS established","call":1,"version":"TLS 1.3","cipher":"TLS_AES_128_GCM_SHA256","alpn":"h2","took":"20ms"}`,
			`{"L":"debug","M":"connected","call":1,"addr":"192.0.2.1:443","protocol":"h2","took":"30ms"}`,
			`{"L":"debug","M":"connection acquired","call":1,"connection":4,"addr":"192.0.2.1:443","protocol":"h2"}`,
			head, sent,
			`{"L":"debug","M":"response head received","call":1,"status":308,"protocol":"HTTP/2.0","header":{"X-Key":["masked"]},"took":"0s"}`,
			`{"L":"debug","M":"response followed","call":1,"status":308,"method":"POST","url":"https://example.com/","why":"redirect"}`,
			`{"L":"debug","M":"connection reused","call":1,"connection":4,"why":"held"}`,
			body, head, sent,
			`{"L":"debug","M":"interim response received","call":1,"status":103,"header":{"Link":["</a>"]}}`,
			`{"L":"debug","M":"response head received","call":1,"status":200,"protocol":"HTTP/2.0","header":{"X-Key":["masked"]},"took":"0s"}`,
			`{"L":"debug","M":"response is the answer","call":1,"status":200,"why":"final"}`,
			body,
			`{"L":"debug","M":"connection released","call":1,"connection":4}`,
			callEnded)
	})
}

func TestHeadersAreLoggedOnlyWhenAskedFor(t *testing.T) {
	l, out := logger(zap.DebugLevel)
	z := zaplog.New(l)
	h := http.Header{"X-Other": {"hunter2"}}
	z.RequestHeadersEnd(newCall(1), &http.Request{Header: h})
	z.InformationalResponse(newCall(1), 103, h)
	z.ResponseHeadersEnd(newCall(1), &http.Response{StatusCode: 200, Header: h})
	if strings.Contains(out.String(), "X-Other") {
		t.Errorf("headers are shown:\n%s", out)
	}
}

// TestFailures: a pooled connection is stale, the next attempt is refused.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := logger(zap.InfoLevel)
		z, c := zaplog.New(l), newCall(2)
		p := proxy.Proxy{Type: proxy.HTTP, Host: "proxy.test", User: url.UserPassword("me", "hunter2")}
		reset, refused := errors.New("connection reset"), errors.New("connection refused")
		z.CallStart(c)
		z.ReuseDecision(c, fakeConnection{3}, true, event.ReasonPooled)
		z.ConnectionAcquired(c, fakeConnection{3})
		z.RequestHeadersStart(c)
		z.RequestHeadersEnd(c, &http.Request{})
		time.Sleep(time.Second)
		z.ResponseFailed(c, reset)
		z.RetryDecision(c, reset, true, event.ReasonStaleConnection)
		z.ConnectionReleased(c, fakeConnection{3})
		z.ConnectStart(c, "192.0.2.9:80", p)
		time.Sleep(time.Second)
		z.ConnectFailed(c, "192.0.2.9:80", p, "", refused)
		z.RetryDecision(c, refused, false, event.ReasonNoMoreRoutes)
		z.CallFailed(c, refused)
		about := `"call":2,"method":"GET","url":"https://me:xxxxx@example.com/?token=masked",`
		wantLines(t, out,
			`{"L":"warn","M":"reading the response failed",`+about+`"took":"1s","error":"connection reset"}`,
			`{"L":"warn","M":"attempt made again",`+about+`"why":"stale-connection","error":"connection reset"}`,
			`{"L":"warn","M":"connect failed",`+about+`"addr":"192.0.2.9:80","proxy":"http://me:xxxxx@proxy.test:80","took":"1s","error":"connection refused"}`,
			`{"L":"warn","M":"call failed",`+about+`"duration":"2s","attempts":1,"sent":0,"received":0,`+
				`"connection":3,"addr":"192.0.2.1:443","protocol":"h2","reused":true,`+
				`"took":{"connect":"1s","write":"0s","wait":"1s"},"error":"connection refused"}`)
	})
}

func TestCancellationIsNoWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := logger(zap.InfoLevel)
		z, c := zaplog.New(l), newCall(3)
		canceled := fmt.Errorf("lookup: %w", context.Canceled)
		z.Canceled(c)
		z.CallStart(c)
		z.DNSStart(c, "example.com")
		z.DNSEnd(c, "example.com", nil, canceled)
		z.CallFailed(c, canceled)
		wantLines(t, out, `{"L":"info","M":"call failed","call":3,"method":"GET","url":"https://me:xxxxx@example.com/?token=masked",`+
			`"duration":"0s","attempts":0,"took":{"dns":"0s"},"error":"lookup: context canceled"}`)
	})
}

// TestEarlyResponse: time after the first byte of an early response is not spent
// waiting for it, and an attempt that ended while waiting leaves nothing behind.
func TestEarlyResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := logger(zap.InfoLevel)
		z, c := zaplog.New(l), newCall(4)
		z.CallStart(c)
		z.RequestHeadersStart(c)
		z.RequestFailed(c, context.Canceled)
		time.Sleep(time.Second)
		z.RequestHeadersStart(c)
		z.RequestHeadersEnd(c, &http.Request{})
		z.RequestBodyStart(c)
		time.Sleep(time.Second)
		z.ResponseHeadersStart(c)
		z.ResponseHeadersEnd(c, &http.Response{StatusCode: 200})
		time.Sleep(time.Second)
		z.RequestBodyEnd(c, 9)
		time.Sleep(time.Second)
		z.ResponseBodyStart(c)
		z.ResponseBodyEnd(c, 9)
		z.CallEnd(c)
		wantLines(t, out, `{"L":"info","M":"call ended","call":4,"method":"GET","url":"https://me:xxxxx@example.com/?token=masked",`+
			`"duration":"4s","attempts":2,"status":200,"sent":9,"received":9,"took":{"write":"2s","wait":"0s","read":"0s"}}`)
	})
}

func TestNothingOfACallIsInTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := logger(zap.InfoLevel)
		z := zaplog.New(l)
		for range 20 {
			z.Canceled(newCall(1))
			run(z, newCall(1))
			z.Canceled(newCall(1))
		}
		if n := zaplog.Remembered(z); n != 0 {
			t.Errorf("%d calls are remembered that are over", n)
		}
		out.Reset()
		z.CallStart(newCall(5))
		z.CallEnd(newCall(5))
		z.CallEnd(newCall(6)) // its start was missed
		wantLines(t, out,
			`{"L":"info","M":"call ended","call":5,"method":"GET","url":"https://me:xxxxx@example.com/?token=masked","duration":"0s","attempts":0}`,
			`{"L":"info","M":"call ended","call":6,"method":"GET","url":"https://me:xxxxx@example.com/?token=masked"}`)
	})
}

func TestManyCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := logger(zap.InfoLevel)
		z := zaplog.New(l)
		var calls sync.WaitGroup
		for id := range uint64(10) {
			calls.Go(func() { run(z, newCall(id+1)) })
		}
		calls.Wait()
		_, rest, _ := strings.Cut(callEnded, `"call":1`)
		if n := strings.Count(out.String(), rest); n != 10 {
			t.Errorf("%d calls have the line of a call that is alone, want 10:\n%s", n, out)
		}
	})
}

func TestNoLoggerIsNoListener(t *testing.T) {
	if got := zaplog.New(nil); got != event.Listener(event.NopListener{}) {
		t.Errorf("got %T, want NopListener", got)
	}
}
