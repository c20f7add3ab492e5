package catena_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/route"
)

// explodingBody is a request body whose Read does not return.
type explodingBody struct {
	io.Closer
	explode func()
}

func (b explodingBody) Read([]byte) (int, error) { b.explode(); return 0, io.EOF }

// The application's code that runs on a goroutine of the client's must not take
// the process down, nor the call: nobody could recover there.
func TestPanicOnOurGoroutines(t *testing.T) {
	onOurGoroutines(t, func() { panic("boom") }, func(err error) bool {
		var p *catena.PanicError
		return errors.As(err, &p) && p.Value == "boom" && strings.Contains(string(p.Stack), "panic_test.go")
	})
}

func TestGoexitOnOurGoroutines(t *testing.T) {
	onOurGoroutines(t, runtime.Goexit, func(err error) bool { return errors.Is(err, lifetime.ErrGoexit) })
}

func onOurGoroutines(t *testing.T, explode func(), wanted func(error) bool) {
	h2 := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	}))
	h2.Config.Protocols = new(http.Protocols)
	h2.Config.Protocols.SetUnencryptedHTTP2(true)
	h2.Start()
	defer h2.Close()

	get := func(url string) *http.Request {
		req, _ := http.NewRequest("GET", url, nil)
		return req
	}
	upload, _ := http.NewRequest("POST", h2.URL, explodingBody{io.NopCloser(nil), explode})
	upload.ContentLength = -1
	tests := []struct {
		name string
		opts []catena.Option
		req  *http.Request
	}{
		{"resolver", []catena.Option{catena.WithDNS(route.DNSFunc(func(context.Context, string, string) (a []netip.Addr, err error) {
			explode()
			return
		}))}, get("http://a.test/")},
		{"dialer", []catena.Option{catena.WithDialContext(func(context.Context, string, string) (c net.Conn, err error) {
			explode()
			return
		})}, get("http://192.0.2.1/")},
		{"HTTP/2 upload", []catena.Option{catena.WithProtocols("h2c")}, upload},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client := newBenchClient(t, test.opts...)
			for range 2 { // the second one finds nothing that the first one has left
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if _, err := client.Do(test.req.WithContext(ctx)); !wanted(err) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
