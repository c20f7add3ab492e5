package interceptors_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/interceptors"
)

// constant answers everything with the same response.
type constant struct{ resp *http.Response }

func (c constant) Intercept(chain.Chain) (*http.Response, error) { return c.resp, nil }

// ready makes a run whose links cost nothing but the Bridge, or without it.
func ready(links ...chain.Interceptor) *chain.Run {
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
	return &chain.Run{
		Interceptors: append(links, constant{resp}),
		Call:         owner{},
		Allocation:   &connection.StreamAllocation{},
		Listener:     event.NopListener{},
	}
}

func usualRequest(t testing.TB) *http.Request {
	req := newRequest(t, "POST", "https://api.example.com:8443/v1/items?q=1", strings.NewReader("hello"))
	req.Header.Set("Authorization", "Bearer x")
	req.Header.Set("Content-Type", "application/json")
	return req
}

// A call costs the request and its header map, of which the runtime makes two.
func TestBridgeAllocations(t *testing.T) {
	config := settings(userAgent("ours/1"))
	req := usualRequest(t)
	start := func(run *chain.Run) float64 {
		return testing.AllocsPerRun(100, func() {
			if _, err := run.Start(req, config); err != nil {
				t.Error(err)
			}
		})
	}
	if got := start(ready(interceptors.Bridge{})) - start(ready()); got > 3 {
		t.Errorf("%v allocations a call", got)
	}
}

func BenchmarkBridge(b *testing.B) {
	run, config, req := ready(interceptors.Bridge{}), settings(userAgent("ours/1")), usualRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		run.Start(req, config)
	}
}

func BenchmarkValidateRequest(b *testing.B) {
	req := usualRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		interceptors.ValidateRequest(req)
	}
}

func BenchmarkGzip(b *testing.B) {
	text := strings.Repeat("the quick brown fox jumps over the lazy dog\n", 1000)
	coded := gz(text)
	req, config := newRequest(b, "GET", "http://a.test/", nil), settings()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		resp, err := through(req, config, func(*http.Request) (*http.Response, error) {
			return gzipped(io.NopCloser(strings.NewReader(coded))), nil
		})
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
