package connection

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// An upload that ends while the response is handed over lets go of the stream
// once, whoever is last.
func TestUploadEndsBesideTheResponse(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"no body, request read": func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) },
		"no body at once":       func(w http.ResponseWriter, r *http.Request) {},
		"body, request read":    func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); io.WriteString(w, "x") },
		"body at once":          func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "x") },
		"head at once": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			io.Copy(io.Discard, r.Body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, PoolOptions{MaxPerAddress: 1}, priorKnowledge)
			w.http2Host("a.test", "192.0.2.1", 4, h)
			for i := range 150 {
				c := w.newCall(t.Context(), "http://a.test/")
				c.request.Method = "POST"
				c.request.Body = io.NopCloser(io.LimitReader(strings.NewReader(strings.Repeat("x", 1000)), int64(i%3*400)))
				if err := c.connect(); err != nil {
					t.Fatal(err)
				}
				x := c.exchange
				if err := x.WriteRequestHeaders(c.request, -1, false); err != nil {
					t.Fatal(err)
				}
				x.StartUpload(c.request)
				resp, err := x.ReadResponseHeaders(nil)
				if err != nil {
					t.Fatal(err)
				}
				c.a.Open()
				c.a.Settle()
				if i%2 == 0 {
					io.Copy(io.Discard, resp.Body)
				}
				resp.Body.Close()
				for deadline := time.Now().Add(10 * time.Second); c.released.Load() == 0; {
					if time.Now().After(deadline) {
						t.Fatal("the call never lets go")
					}
					time.Sleep(10 * time.Microsecond)
				}
				if n := c.released.Load(); n != 1 {
					t.Fatalf("let go of %d times", n)
				}
				c.life.Finish()
			}
			w.expect(1, 1)
		})
	}
}
