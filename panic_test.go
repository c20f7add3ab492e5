package catena_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/route"
)

type panickingBody struct{ io.Closer }

func (panickingBody) Read([]byte) (int, error) { panic("boom") }

// The application's code that runs on a goroutine of the client's must not take
// the process down: nobody could recover there.
func TestPanicOnOurGoroutines(t *testing.T) {
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
	upload, _ := http.NewRequest("POST", h2.URL, panickingBody{io.NopCloser(nil)})
	upload.ContentLength = -1
	tests := []struct {
		name string
		opts []catena.Option
		req  *http.Request
	}{
		{"resolver", []catena.Option{catena.WithDNS(route.DNSFunc(func(context.Context, string, string) ([]netip.Addr, error) { panic("boom") }))}, get("http://a.test/")},
		{"dialer", []catena.Option{catena.WithDialContext(func(context.Context, string, string) (net.Conn, error) { panic("boom") })}, get("http://192.0.2.1/")},
		{"HTTP/2 upload", []catena.Option{catena.WithProtocols("h2c")}, upload},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client := newBenchClient(t, test.opts...)
			_, err := client.Do(test.req)
			var p *catena.PanicError
			if !errors.As(err, &p) || p.Value != "boom" || !strings.Contains(string(p.Stack), "panic_test.go") {
				t.Errorf("got %v, want a PanicError with the stack", err)
			}
		})
	}
}
