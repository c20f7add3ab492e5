package http1_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/internal/wire"
)

func TestRequestHead(t *testing.T) {
	parse := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	tests := []struct {
		name     string
		req      *http.Request
		size     int64
		absolute bool
		want     string
	}{
		{
			name: "plain",
			req: &http.Request{Method: "GET", URL: parse("http://example.com/a%2fb?q=1#frag"), Header: http.Header{
				"User-Agent": {"x"}, "Accept": {"a", "b"}, "x-raw": {" c \t"},
			}},
			want: "GET /a%2fb?q=1 HTTP/1.1\r\nHost: example.com\r\nAccept: a\r\nAccept: b\r\nUser-Agent: x\r\nx-raw: c\r\n\r\n",
		}, {
			name: "no method, no path, empty query",
			req:  &http.Request{URL: parse("http://example.com?")},
			want: "GET /? HTTP/1.1\r\nHost: example.com\r\n\r\n",
		}, {
			name: "query without a path",
			req:  &http.Request{URL: parse("http://example.com?q")},
			want: "GET /?q HTTP/1.1\r\nHost: example.com\r\n\r\n",
		}, {
			name: "path without a slash",
			req:  &http.Request{URL: &url.URL{Scheme: "http", Host: "h", Path: "a b"}},
			want: "GET /a%20b HTTP/1.1\r\nHost: h\r\n\r\n",
		}, {
			name: "path with a space",
			req:  &http.Request{URL: parse("http://h/a b")},
			want: "GET /a%20b HTTP/1.1\r\nHost: h\r\n\r\n",
		}, {
			name: "opaque",
			req:  &http.Request{URL: &url.URL{Scheme: "http", Host: "h", Opaque: "/a%2Fb", RawQuery: "q"}},
			want: "GET /a%2Fb?q HTTP/1.1\r\nHost: h\r\n\r\n",
		}, {
			name: "opaque with an authority",
			req:  &http.Request{URL: &url.URL{Scheme: "http", Host: "h", Opaque: "//other/x"}},
			want: "GET http://other/x HTTP/1.1\r\nHost: h\r\n\r\n",
		}, {
			name: "server-wide options",
			req:  &http.Request{Method: "OPTIONS", URL: &url.URL{Scheme: "http", Host: "h", Path: "*"}},
			want: "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
		}, {
			name: "a star is a path elsewhere",
			req:  &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: "h", Path: "*"}},
			want: "GET /* HTTP/1.1\r\nHost: h\r\n\r\n",
		}, {
			name: "absolute-form", absolute: true,
			req:  &http.Request{URL: parse("http://user:pass@example.com:8080/a?q#frag"), Host: "other"},
			want: "GET http://example.com:8080/a?q HTTP/1.1\r\nHost: other\r\n\r\n",
		}, {
			name: "absolute-form without a path", absolute: true,
			req:  &http.Request{URL: parse("http://example.com")},
			want: "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		}, {
			name: "absolute-form of server-wide options", absolute: true,
			req:  &http.Request{Method: "OPTIONS", URL: &url.URL{Scheme: "http", Host: "h", Path: "*"}},
			want: "OPTIONS http://h HTTP/1.1\r\nHost: h\r\n\r\n",
		}, {
			name: "absolute-form of opaque", absolute: true,
			req:  &http.Request{URL: &url.URL{Scheme: "http", Host: "h", Opaque: "/a%2Fb"}},
			want: "GET http://h/a%2Fb HTTP/1.1\r\nHost: h\r\n\r\n",
		}, {
			name: "zone", absolute: true,
			req:  &http.Request{URL: parse("http://[fe80::1%25lo]:81/")},
			want: "GET http://[fe80::1]:81/ HTTP/1.1\r\nHost: [fe80::1]:81\r\n\r\n",
		}, {
			name: "name in letters of its own",
			req:  &http.Request{URL: &url.URL{Scheme: "http", Host: "bücher.example:80", Path: "/"}},
			want: "GET / HTTP/1.1\r\nHost: xn--bcher-kva.example:80\r\n\r\n",
		}, {
			name: "framing of the header is not the codec's", size: 3,
			req: &http.Request{Method: "POST", URL: parse("http://h/"), ContentLength: 9, TransferEncoding: []string{"chunked"}, Header: http.Header{
				"Content-Length": {"7"}, "content-length": {"8"}, "Transfer-Encoding": {"gzip"}, "Trailer": {"X"}, "host": {"evil"},
			}},
			want: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n",
		}, {
			name: "chunked with trailer names", size: -1,
			req: &http.Request{Method: "PUT", URL: parse("http://h/"), Trailer: http.Header{
				"X-B": nil, "X-A": nil, "Content-Length": nil, "bad name": nil,
			}},
			want: "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-A, X-B\r\n\r\n",
		}, {
			name: "no trailer to name", size: -1,
			req:  &http.Request{Method: "PUT", URL: parse("http://h/"), Trailer: http.Header{"Trailer": nil}},
			want: "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
		}, {
			name: "empty POST",
			req:  &http.Request{Method: "POST", URL: parse("http://h/")},
			want: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		}, {
			name: "empty PATCH",
			req:  &http.Request{Method: "PATCH", URL: parse("http://h/")},
			want: "PATCH / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		}, {
			name: "empty DELETE",
			req:  &http.Request{Method: "DELETE", URL: parse("http://h/")},
			want: "DELETE / HTTP/1.1\r\nHost: h\r\n\r\n",
		}, {
			name: "close",
			req:  &http.Request{URL: parse("http://h/"), Close: true},
			want: "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
		}, {
			name: "close said already",
			req:  &http.Request{URL: parse("http://h/"), Close: true, Header: http.Header{"Connection": {"Close"}}},
			want: "GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n",
		}, {
			name: "more than fits the buffer",
			req:  &http.Request{URL: parse("http://h/"), Header: http.Header{"X": {strings.Repeat("x", 20000)}, "Y": {"y"}}},
			want: "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 20000) + "\r\nY: y\r\n\r\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			nc := answering("")
			c := http1.NewConn(nc, false)
			c.Begin(wire.Exchange{AbsoluteForm: test.absolute})
			defer c.End()
			if err := c.WriteRequestHeaders(test.req, test.size); err != nil {
				t.Fatal(err)
			}
			if err := c.Flush(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, nc.out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Many fields are sorted as well as few.
func TestRequestHeadManyFields(t *testing.T) {
	req := newRequest(t, "GET", "http://h/")
	want := "GET / HTTP/1.1\r\nHost: h\r\n"
	for i := range 100 {
		name := fmt.Sprintf("X-%03d", i)
		req.Header.Set(name, "v")
		want += name + ": v\r\n"
	}
	nc := answering("")
	sendRequest(t, http1.NewConn(nc, false), req)
	if diff := cmp.Diff(want+"\r\n", nc.out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Nothing that could break out of its place is written, and nothing before it.
func TestRequestInjection(t *testing.T) {
	for _, evil := range []string{"\r\n", "\n", "\r", "\x00"} {
		bad := "a" + evil + "b"
		tests := map[string]*http.Request{
			"method": {Method: "G" + evil, URL: &url.URL{Scheme: "http", Host: "h"}},
			"host":   {URL: &url.URL{Scheme: "http", Host: "h"}, Host: bad},
			"url":    {URL: &url.URL{Scheme: "http", Host: bad}},
			"opaque": {URL: &url.URL{Scheme: "http", Host: "h", Opaque: "/" + bad}},
			"query":  {URL: &url.URL{Scheme: "http", Host: "h", RawQuery: bad}},
			"scheme": {URL: &url.URL{Scheme: bad, Host: "h"}},
			"name":   {URL: &url.URL{Scheme: "http", Host: "h"}, Header: http.Header{"A": {"b"}, bad: {"x"}}},
			"value":  {URL: &url.URL{Scheme: "http", Host: "h"}, Header: http.Header{"A": {"b"}, "X": {"ok", bad}}},
		}
		for name, req := range tests {
			t.Run(fmt.Sprintf("%s/%q", name, evil), func(t *testing.T) {
				nc := answering("")
				c := http1.NewConn(nc, false)
				c.Begin(wire.Exchange{AbsoluteForm: true})
				defer c.End()
				if err := c.WriteRequestHeaders(req, 0); err == nil {
					t.Error("it was accepted")
				}
				if err := c.FinishRequest(nil); err == nil {
					t.Error("a request without a head was finished")
				}
				if nc.out.Len() > 0 || c.Written() || !c.Reusable() {
					t.Errorf("%q was written; reusable %v", nc.out.String(), c.Reusable())
				}
			})
		}
	}
	// A path is escaped instead.
	nc := answering("")
	sendRequest(t, http1.NewConn(nc, false), &http.Request{URL: &url.URL{Scheme: "http", Host: "h", Path: "/a\r\nb: c"}})
	if got := nc.out.String(); !strings.HasPrefix(got, "GET /a%0D%0Ab:%20c HTTP/1.1\r\n") {
		t.Errorf("got %q", got)
	}
}

func TestRequestHeadNeedsHost(t *testing.T) {
	c := http1.NewConn(answering(""), false)
	c.Begin(wire.Exchange{})
	if err := c.WriteRequestHeaders(&http.Request{URL: &url.URL{Path: "/"}}, 0); err == nil {
		t.Error("it was accepted")
	}
}

func TestOneRequestAnExchange(t *testing.T) {
	c := http1.NewConn(answering(""), false)
	send(t, c, "GET")
	if err := c.WriteRequestHeaders(newRequest(t, "GET", "http://h/"), 0); err == nil {
		t.Error("a second head was accepted")
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("a body was accepted after the end")
	}
	if _, err := c.ReadFrom(strings.NewReader("x")); err == nil {
		t.Error("a body was accepted after the end")
	}
	if err := c.FinishRequest(nil); err == nil {
		t.Error("it was finished twice")
	}
}
