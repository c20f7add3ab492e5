package catena_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/catena-http/catena"
)

// compressed is text in gzip.
func compressed(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.Bytes()
}

func TestGzipFromEndToEnd(t *testing.T) {
	long := strings.Repeat("all work and no play ", 10_000)
	for name, test := range map[string]struct {
		opts       []catena.CallOption
		header     http.Header
		asks       string
		decoded    bool
		contentLen bool
	}{
		"transparent":       {asks: "gzip", decoded: true},
		"off":               {opts: []catena.CallOption{catena.WithTransparentGzip(false)}, contentLen: true},
		"the caller's own":  {header: http.Header{"Accept-Encoding": {"gzip"}}, asks: "gzip", contentLen: true},
		"a range":           {header: http.Header{"Range": {"bytes=0-"}}, contentLen: true},
		"the caller's none": {header: http.Header{"Accept-Encoding": {"identity"}}, asks: "identity", contentLen: true},
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, allProtocols, func(w *world) {
				asked := ""
				w.serve(func(rw http.ResponseWriter, r *http.Request) {
					asked = r.Header.Get("Accept-Encoding")
					data := compressed(long)
					rw.Header().Set("Content-Encoding", "gzip")
					rw.Header().Set("Content-Length", strconv.Itoa(len(data)))
					rw.Write(data)
				})
				req := w.request("GET", "/", nil)
				for name, values := range test.header {
					req.Header[name] = values
				}
				resp, err := w.client.NewCall(req, test.opts...).Execute()
				body := w.slurp(resp, err)
				want := long
				if !test.decoded {
					want = string(compressed(long))
				}
				if body != want {
					w.Errorf("a body of %d bytes, want %d", len(body), len(want))
				}
				if resp.Uncompressed != test.decoded || (resp.ContentLength >= 0) != test.contentLen ||
					(resp.Header.Get("Content-Encoding") == "") != test.decoded {
					w.Errorf("uncompressed %v, length %d, header %v", resp.Uncompressed, resp.ContentLength, resp.Header)
				}
				if asked != test.asks {
					w.Errorf("Accept-Encoding %q, want %q", asked, test.asks)
				}
				w.get("/", long)
				if n := w.net.Dials(originAddr); n != 1 {
					w.Errorf("%d connections, want 1: the first is reused", n)
				}
			})
		})
	}
}

// A connection whose decoded response is closed early is none the worse for it,
// or gone.
func TestGzipClosedEarly(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Encoding", "gzip")
			rw.Write(compressed(r.URL.Path))
		})
		for _, path := range []string{"/a", "/b", "/c"} {
			resp, err := w.client.Do(w.request("GET", path, nil))
			if err != nil {
				w.Fatal(err)
			}
			var one [1]byte
			if _, err := resp.Body.Read(one[:]); err != nil || one[0] != '/' {
				w.Errorf("read %q, %v", one, err)
			}
			resp.Body.Close()
			if _, err := resp.Body.Read(one[:]); err == nil {
				w.Error("Read after Close succeeds")
			}
			w.get(path, path)
		}
	})
}
