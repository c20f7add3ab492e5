package http1_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

// result is what a parser made of the first response in some bytes.
type result struct {
	resp *http.Response
	body []byte
	err  error
}

// ours parses text that arrives by steps.
func ours(method string, text []byte, step int) result {
	nc := ending(string(text))
	nc.step = step
	c := http1.NewConn(nc, false)
	c.Begin(wire.Exchange{MaxHeaderBytes: 1 << 30, MaxHeaderFields: 1 << 30})
	defer c.End()
	req, _ := http.NewRequest(method, "http://h/", nil)
	req.Header = http.Header{"Connection": {"upgrade"}, "Upgrade": {"x"}}
	if err := c.WriteRequestHeaders(req, 0); err != nil {
		return result{err: err}
	}
	if err := c.FinishRequest(nil); err != nil {
		return result{err: err}
	}
	resp, err := c.ReadResponseHeaders(nil)
	if err != nil {
		return result{err: err}
	}
	body, err := io.ReadAll(resp.Body)
	return result{resp, body, err}
}

// theirs parses text with net/http.
func theirs(method string, text []byte) result {
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), &http.Request{Method: method})
	if err != nil {
		return result{err: err}
	}
	resp.Request = nil
	body, err := io.ReadAll(resp.Body)
	return result{resp, body, err}
}

// oursOnly are the texts that we accept and net/http refuses, by its error.
var oursOnly = []struct{ why, part string }{
	{"a Content-Length given several times with one value is one (RFC 9110 8.6)", "Content-Length"},
	{"identity is as good as no coding, and old servers send it", "unsupported transfer encoding"},
	{"white space before a chunk extension is legal (RFC 9112 7.1.1)", "invalid byte in chunk length"},
	{"a forbidden name in Trailer is dropped, not fatal", "bad trailer key"},
	{"trailers are bounded like heads, not by the size of a buffer", "suspiciously long trailer"},
	{"chunk extensions are bounded like heads", "too much non-data"},
}

// theirsOnly are the texts that net/http accepts and we refuse, by our error.
var theirsOnly = []struct {
	why, part string
	holds     func(theirs result) bool
}{
	{"a status is 100 to 999, the version is HTTP/1.x, a reason has no control characters", "malformed status line", func(r result) bool {
		return r.resp.StatusCode < 100 || r.resp.ProtoMajor != 1 || strings.ContainsFunc(r.resp.Status, isControl)
	}},
	{"a field name has no white space (RFC 9112 5.1)", "invalid name", nil},
	{"HTTP/1.0 has no transfer codings: how the body ends is anybody's guess (RFC 9112 6.1)", "HTTP/1.0", func(r result) bool {
		return r.resp.ProtoMinor == 0
	}},
	{"chunk lines have no control characters", "malformed chunk line", nil},
	{"a trailer section ends its lines in CRLF", "does not end in CRLF", nil},
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// compare fails the test where the parsers differ in a way that is not ours by
// intention. Beyond oursOnly and theirsOnly:
//
//	difference                             | why
//	---------------------------------------|-------------------------------------------
//	Pragma: no-cache adds no Cache-Control | a header is what the server sent
//	an empty continuation line adds        | RFC 9112 5.2 asks for a space in place of a
//	nothing to the value before it         | fold, net/http leaves one for each
//	Trailer keys are tokens                | others can never arrive
//	forbidden trailer fields are dropped   | RFC 9110 6.5.1
//	a repeated Content-Length becomes one  | see oursOnly
func compare(t *testing.T, text []byte, a, b result) {
	t.Helper()
	switch {
	case a.err != nil && b.err != nil:
		return
	case b.err != nil:
		for _, d := range oursOnly {
			if strings.Contains(b.err.Error(), d.part) {
				return
			}
		}
		t.Fatalf("%q\nwe accept it; net/http: %v", text, b.err)
	case a.err != nil:
		for _, d := range theirsOnly {
			if strings.Contains(a.err.Error(), d.part) && (d.holds == nil || d.holds(b)) {
				return
			}
		}
		t.Fatalf("%q\nwe: %v; net/http accepts it", text, a.err)
	}
	normalize(a.resp)
	normalize(b.resp)
	ignore := cmpopts.IgnoreFields(http.Response{}, "Body", "Request", "TLS")
	if diff := cmp.Diff(b.resp, a.resp, ignore, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%q\n(-net/http +ours)\n%s", text, diff)
	}
	if !bytes.Equal(a.body, b.body) {
		t.Fatalf("%q\nour body: %q\nnet/http: %q", text, a.body, b.body)
	}
}

var spaces = regexp.MustCompile(`[ \t]+`)

func normalize(r *http.Response) {
	if r.Header.Get("Pragma") == "no-cache" && r.Header["Cache-Control"] == nil {
		r.Header["Cache-Control"] = []string{"no-cache"}
	}
	for _, h := range []http.Header{r.Header, r.Trailer} {
		for _, values := range h {
			for i := range values {
				values[i] = strings.Trim(spaces.ReplaceAllString(values[i], " "), " ")
			}
		}
	}
	for name := range r.Trailer {
		token := len(name) > 0 && !strings.ContainsFunc(name, func(r rune) bool {
			return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
		})
		if !token || slices.Contains([]string{"Content-Length", "Transfer-Encoding", "Trailer"}, name) {
			delete(r.Trailer, name)
		}
	}
}

// FuzzResponse compares with net/http, and checks that it makes no difference how
// the bytes arrive.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X, Content-Length\r\n\r\n5 ; a\r\nhello\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.0 200\nConnection: keep-alive\nPragma: no-cache\n\nhello",
		"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5, 5\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: a\r\n b\r\n \r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade, close\r\n\r\nraw",
		"HTTP/1.1 099 X\r\nX : y\r\nTransfer-Encoding: identity\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chun\u212aed\r\nConnection: clo\u017fe\r\n\r\n",
	} {
		f.Add(false, uint8(3), []byte(seed))
		f.Add(true, uint8(0), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, head bool, step uint8, text []byte) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		whole := ours(method, text, 0)
		inParts := ours(method, text, int(step)+1)
		if (whole.err == nil) != (inParts.err == nil) || !bytes.Equal(whole.body, inParts.body) {
			t.Fatalf("%q\nat once: %q, %v\nby %d bytes: %q, %v", text, whole.body, whole.err, step+1, inParts.body, inParts.err)
		}
		compare(t, text, whole, theirs(method, text))
	})
}

// FuzzChunked is FuzzResponse for what follows the head of a chunked response.
func FuzzChunked(f *testing.F) {
	for _, seed := range []string{
		"0\r\n\r\n",
		"5\r\nhello\r\n0\r\n\r\n",
		"5;a=\"b\"\r\nhello\r\nA ;x\r\n0123456789\r\n00\r\nX: y\r\nZ:\r\n z\r\n\r\nmore",
		"ffffffffffffffff\r\n",
		"5\nhello\r\n0\n\n",
		"1;\x01\r\nx\r\n0 \t\r\nX: y\nZ: z\r\n\r\n",
	} {
		f.Add(uint8(0), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, step uint8, body []byte) {
		text := append([]byte(chunkedHead), body...)
		whole := ours("GET", text, 0)
		inParts := ours("GET", text, int(step)+1)
		if (whole.err == nil) != (inParts.err == nil) || !bytes.Equal(whole.body, inParts.body) {
			t.Fatalf("%q\nat once: %q, %v\nby %d bytes: %q, %v", text, whole.body, whole.err, step+1, inParts.body, inParts.err)
		}
		compare(t, text, whole, theirs("GET", text))
	})
}

// FuzzRequestHead checks that what is written is one request, and the one that
// was meant.
func FuzzRequestHead(f *testing.F) {
	f.Add("GET", "http://example.com/a?b#c", "", "X-A", "b", int64(0), false)
	f.Add("POST", "http://user:pass@[fe80::1%25lo]:80", "other:81", "connection", "close", int64(5), true)
	f.Add("PUT", "http://h/%2f//../é?a b", "bücher.example", "Content-Length", "9", int64(-1), false)
	f.Add("OPTIONS", "http://h/*", "h\r\nX: y", "X\r\nY", "a\nb", int64(0), true)
	f.Add("G T", "mailto:x", "", "", "\x00", int64(3), false)
	f.Fuzz(func(t *testing.T, method, url, host, name, value string, size int64, absolute bool) {
		req, err := http.NewRequest(method, url, nil)
		if err != nil {
			return
		}
		size = max(-1, min(size, 1000))
		req.Host = host
		req.Header = http.Header{name: {value}, "Z-Last": {"z"}}
		nc := answering("")
		c := http1.NewConn(nc, false)
		c.Begin(wire.Exchange{AbsoluteForm: absolute})
		defer c.End()
		if err := c.WriteRequestHeaders(req, size); err != nil {
			if nc.out.Len() > 0 {
				t.Fatalf("refused after %q", nc.out.String())
			}
			return
		}
		content := strings.Repeat("x", int(max(size, 0)))
		if _, err := c.ReadFrom(strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		if err := c.FinishRequest(nil); err != nil {
			t.Fatal(err)
		}
		wrote := nc.out.String()
		r := bufio.NewReader(strings.NewReader(wrote))
		got, err := http.ReadRequest(r)
		if err != nil {
			if strings.Contains(err.Error(), "invalid URI for request") || strings.Contains(err.Error(), "parse ") {
				return // a target that net/url finds no sense in, such as an opaque one
			}
			t.Fatalf("%q: %v", wrote, err)
		}
		wantMethod := method
		if wantMethod == "" {
			wantMethod = "GET"
		}
		if got.Method != wantMethod {
			t.Fatalf("%q: method %q", wrote, got.Method)
		}
		if strings.ContainsAny(got.RequestURI, "#") && !strings.Contains(req.URL.Opaque+req.URL.RawQuery, "#") {
			t.Fatalf("%q: a fragment in %q", wrote, got.RequestURI)
		}
		if req.URL.Opaque == "" && got.URL.Path != req.URL.Path && got.URL.Path != "/"+req.URL.Path && got.URL.Path != "" && !strings.HasPrefix(got.RequestURI, "//") {
			t.Fatalf("%q: path %q of %q", wrote, got.URL.Path, req.URL.Path)
		}
		if got.URL.RawQuery != req.URL.RawQuery {
			t.Fatalf("%q: query %q of %q", wrote, got.URL.RawQuery, req.URL.RawQuery)
		}
		if got.URL.User != nil && req.URL.Opaque == "" {
			t.Fatalf("%q: user information", wrote)
		}
		if got.Header.Get("Z-Last") != "z" || len(got.Header) > 3 {
			t.Fatalf("%q: header %v", wrote, got.Header)
		}
		body, err := io.ReadAll(got.Body)
		if string(body) != content || err != nil {
			t.Fatalf("%q: body %q, %v", wrote, body, err)
		}
		if r.Buffered() > 0 {
			t.Fatalf("%q: %d bytes more than a request", wrote, r.Buffered())
		}
	})
}
