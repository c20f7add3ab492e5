package catena_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/catena-http/catena"
)

// Request.Close counts on every protocol, and the response tells its TLS state, as
// net/http's do.
func TestRequestClose(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, r.Proto)
		}))
		server.EnableHTTP2 = http2
		server.StartTLS()
		defer server.Close()
		client := newBenchClient(t, catena.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}))
		for _, ask := range []func(*http.Request){
			func(r *http.Request) { r.Close = true },
			func(r *http.Request) { r.Header.Set("Connection", "close") },
		} {
			req, err := http.NewRequest("GET", server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			ask(req)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if resp.TLS == nil || !resp.TLS.HandshakeComplete {
				t.Errorf("%s: the response's TLS state is %v", resp.Proto, resp.TLS)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if n := client.Pool().ConnectionCount(); n != 0 {
				t.Errorf("%s: %d connections are left", resp.Proto, n)
			}
		}
	}
}
