package interceptors_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/catena-http/catena/interceptors"
)

func TestValidateRequestAccepts(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"as it is":              func(*http.Request) {},
		"no method":             func(r *http.Request) { r.Method = "" },
		"odd method":            func(r *http.Request) { r.Method = "m-search!" },
		"TRACE":                 func(r *http.Request) { r.Method = "TRACE" },
		"nil header":            func(r *http.Request) { r.Header = nil },
		"escaped path":          func(r *http.Request) { r.URL.Path = "/a\r\nb" },
		"unescaped path":        func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/a b", "/a b" }, // as url.Parse leaves it
		"UTF-8 query":           func(r *http.Request) { r.URL.RawQuery = "q=ü" },
		"opaque":                func(r *http.Request) { r.URL.Opaque = "//a.test/%2f" },
		"other host":            func(r *http.Request) { r.Host = "virtual.test:8080" },
		"host with a zone":      func(r *http.Request) { r.Host = "[fe80::1%lo]" },
		"tab and obs-text":      func(r *http.Request) { r.Header["X"] = []string{"a\tb ü \xff"} },
		"empty value":           func(r *http.Request) { r.Header["X"] = []string{""} },
		"framing in the header": func(r *http.Request) { r.Header["Content-Length"] = []string{"7"} },
		"trailer":               func(r *http.Request) { r.Trailer = http.Header{"X-Sum": nil} },
		"chunked":               func(r *http.Request) { r.TransferEncoding = []string{"chunked"} },
		"identity":              func(r *http.Request) { r.TransferEncoding = []string{"identity"} },
		"unknown length":        func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(nil), -1 },
		"length of nothing":     func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, 5 },
		"GET with a body":       func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(nil), 5 },
		"a server's request":    func(r *http.Request) { r.RequestURI = "/" },
	} {
		t.Run(name, func(t *testing.T) {
			req := newRequest(t, "GET", "http://a.test/x?y", nil)
			change(req)
			if err := interceptors.ValidateRequest(req); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestValidateRequestRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(*http.Request)
		want   []string
	}{
		{"no URL", func(r *http.Request) { r.URL = nil }, []string{"URL"}},
		{"no scheme", func(r *http.Request) { r.URL.Scheme = "" }, []string{"URL", "scheme"}},
		{"scheme", func(r *http.Request) { r.URL.Scheme = "ftp" }, []string{`scheme "ftp"`}},
		{"no host", func(r *http.Request) { r.URL.Host = "" }, []string{"no host"}},
		{"no host but a port", func(r *http.Request) { r.URL.Host = ":80" }, []string{"no host"}},
		{"space in host", func(r *http.Request) { r.URL.Host = "a b" }, []string{"URL", `"a b"`}},
		{"NUL in host", func(r *http.Request) { r.URL.Host = "a\x00b" }, []string{"URL", `"a\x00b"`}},
		{"port", func(r *http.Request) { r.URL.Host = "a.test:65536" }, []string{`port "65536"`}},
		{"line break in Host", func(r *http.Request) { r.Host = "a\r\nX: y" }, []string{"Host", `"a\r\nX: y"`}},
		{"space in Host", func(r *http.Request) { r.Host = "a b" }, []string{"Host", `"a b"`}},
		{"slash in Host", func(r *http.Request) { r.Host = "a/b" }, []string{"Host", `"a/b"`}},
		{"line break in method", func(r *http.Request) { r.Method = "GET\r\n" }, []string{"method", `"GET\r\n"`}},
		{"space in method", func(r *http.Request) { r.Method = "GET /" }, []string{"method", `"GET /"`}},
		{"CONNECT", func(r *http.Request) { r.Method = "CONNECT" }, []string{"CONNECT"}},
		{"TRACE with a body", func(r *http.Request) { r.Method, r.Body = "TRACE", io.NopCloser(nil) }, []string{"TRACE", "body"}},
		{"line break in query", func(r *http.Request) { r.URL.RawQuery = "token=hunter2\n" }, []string{"RawQuery", `'\n'`, "13"}},
		{"space in query", func(r *http.Request) { r.URL.RawQuery = "a b" }, []string{"RawQuery", "escaped"}},
		{"NUL in opaque", func(r *http.Request) { r.URL.Opaque = "/\x00" }, []string{"Opaque", `'\x00'`}},
		{"empty name", func(r *http.Request) { r.Header[""] = []string{"x"} }, []string{"header field name", `""`}},
		{"space in name", func(r *http.Request) { r.Header["X y"] = []string{"x"} }, []string{"header field name", `"X y"`}},
		{"colon in name", func(r *http.Request) { r.Header["X:"] = nil }, []string{"header field name", `"X:"`}},
		{"LF in value", func(r *http.Request) { r.Header["Authorization"] = []string{"ok", "hunter2\n"} }, []string{`"Authorization"`, `'\n'`, "7"}},
		{"CR in value", func(r *http.Request) { r.Header["X"] = []string{"a\rb"} }, []string{`"X"`, `'\r'`}},
		{"NUL in value", func(r *http.Request) { r.Header["X"] = []string{"a\x00b"} }, []string{`"X"`, `'\x00'`}},
		{"DEL in value", func(r *http.Request) { r.Header["X"] = []string{"ü\x7f"} }, []string{`"X"`, `'\x7f'`, "byte 2"}},
		{"name in trailer", func(r *http.Request) { r.Trailer = http.Header{"X\n": nil} }, []string{"trailer field name", `"X\n"`}},
		{"value in trailer", func(r *http.Request) { r.Trailer = http.Header{"X": {"\n"}} }, []string{"trailer field", `"X"`}},
		{"framing in trailer", func(r *http.Request) { r.Trailer = http.Header{"content-length": nil} }, []string{`"content-length"`, "trailer"}},
		{"coding in trailer", func(r *http.Request) { r.Trailer = http.Header{"Transfer-Encoding": nil} }, []string{`"Transfer-Encoding"`, "trailer"}},
		{"trailer in trailer", func(r *http.Request) { r.Trailer = http.Header{"Trailer": nil} }, []string{`"Trailer"`, "trailer"}},
		{"length", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(nil), -2 }, []string{"ContentLength -2"}},
		{"length without a body", func(r *http.Request) { r.ContentLength = 5 }, []string{"ContentLength is 5", "Body"}},
		{"transfer coding", func(r *http.Request) { r.TransferEncoding = []string{"gzip", "chunked"} }, []string{"TransferEncoding", "gzip"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req := newRequest(t, "GET", "http://a.test/x?y", nil)
			test.change(req)
			err := interceptors.ValidateRequest(req)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q says nothing of %s", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q gives a secret away", err)
			}
		})
	}
	if err := interceptors.ValidateRequest(nil); err == nil {
		t.Error("nil is accepted")
	}
}

func TestValidateRequestDoesNotAllocate(t *testing.T) {
	req := newRequest(t, "POST", "https://api.example.com:8443/v1/items?q=1", strings.NewReader("hello"))
	req.Header.Set("Authorization", "Bearer x")
	req.Header.Set("Content-Type", "application/json")
	n := testing.AllocsPerRun(100, func() {
		if err := interceptors.ValidateRequest(req); err != nil {
			t.Error(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What passes can be written by net/http, and reads back as one request.
func FuzzValidateRequest(f *testing.F) {
	f.Add("GET", "http", "a.test", "", "/", "", "", "", "X", "y", "T", "", int64(0))
	f.Add("POST", "https", "[::1%25lo]:8443", "b.test:80", "/a b", "/a%20b", "", "q=1&r", "Content-Type", "text/plain", "X-Sum", "1", int64(5))
	f.Add("M-SEARCH", "http", "bücher.test", "bücher.test:1", "*", "", "//a.test/x", "?", "Cookie", "a=b\t", "Trailer", "\r\n", int64(-1))
	f.Add("GET\r\n", "ftp", ":0", "a\nb", "", "\x00", "\x7f", " ", "", "\x00", ":", "\n", int64(-2))
	f.Fuzz(func(t *testing.T, method, scheme, host, reqHost, path, rawPath, opaque, query, name, value, trailer, trailerValue string, length int64) {
		req := &http.Request{
			Method:        method,
			URL:           &url.URL{Scheme: scheme, Host: host, Path: path, RawPath: rawPath, Opaque: opaque, RawQuery: query},
			Host:          reqHost,
			Header:        http.Header{name: {value}},
			Trailer:       http.Header{trailer: {trailerValue}},
			ContentLength: length,
		}
		if length != 0 {
			if length > 1<<10 {
				return
			}
			req.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", int(max(length, 1)))))
		}
		if interceptors.ValidateRequest(req) != nil {
			return
		}
		bridged(t, req.WithContext(t.Context()), settings())
		var wire bytes.Buffer
		if err := req.Write(&wire); err != nil {
			t.Fatalf("accepted, but net/http can't write it: %v", err)
		}
		head, _, _ := strings.Cut(wire.String(), "\r\n\r\n")
		line, _, _ := strings.Cut(head, "\r\n")
		if strings.Count(line, " ") != 2 || strings.ContainsAny(strings.ReplaceAll(head, "\r\n", ""), "\r\n\x00") {
			t.Fatalf("accepted, but broken on the wire: %q", head)
		}
	})
}

func ExampleValidateRequest() {
	req, _ := http.NewRequest("GET", "http://example.com/", nil)
	req.Header.Set("X-Note", "two\nlines")
	fmt.Println(interceptors.ValidateRequest(req))
	// Output: invalid value of the header field "X-Note": it has the character '\n' at byte 3
}
