package http2_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/catena-http/catena/connection/http2"
	"github.com/google/go-cmp/cmp"
)

// What of a request reaches the wire.
func TestRequestHeaderFields(t *testing.T) {
	tests := map[string]struct {
		header http.Header
		want   map[string]string // besides the pseudo-headers
	}{
		"none":                {nil, nil},
		"plain":               {http.Header{"X-A": {"1", "2"}}, map[string]string{"x-a": "1|2"}},
		"lower case key":      {http.Header{"x-a": {"1"}}, map[string]string{"x-a": "1"}},
		"connection":          {http.Header{"Connection": {"keep-alive"}, "connection": {"close"}}, nil},
		"nominated":           {http.Header{"Connection": {"close, X-Hop"}, "X-Hop": {"1"}, "X-End": {"1"}}, map[string]string{"x-end": "1"}},
		"host":                {http.Header{"Host": {"other.test"}}, nil},
		"keep-alive":          {http.Header{"Keep-Alive": {"timeout=5"}}, nil},
		"proxy-connection":    {http.Header{"Proxy-Connection": {"keep-alive"}}, nil},
		"transfer-encoding":   {http.Header{"Transfer-Encoding": {"gzip, chunked"}}, nil},
		"upgrade":             {http.Header{"Upgrade": {"h2c"}, "Connection": {"upgrade"}}, nil},
		"http2-settings":      {http.Header{"Http2-Settings": {"AAMAAABkAARAAAAAAAIAAAAA"}}, nil},
		"content-length":      {http.Header{"Content-Length": {"7"}}, nil},
		"trailer":             {http.Header{"Trailer": {"X-T"}}, nil},
		"te":                  {http.Header{"Te": {"gzip"}}, nil},
		"te trailers":         {http.Header{"Te": {"gzip, Trailers"}}, map[string]string{"te": "trailers"}},
		"no user agent":       {http.Header{"User-Agent": {""}}, nil},
		"user agent":          {http.Header{"User-Agent": {"catena"}}, map[string]string{"user-agent": "catena"}},
		"user agent, lower":   {http.Header{"user-agent": {"catena"}}, map[string]string{"user-agent": "catena"}},
		"accept-encoding":     {http.Header{"Accept-Encoding": {"gzip"}}, map[string]string{"accept-encoding": "gzip"}},
		"cookies in crumbs":   {http.Header{"Cookie": {"a=1; b=2"}}, map[string]string{"cookie": "a=1|b=2"}},
		"expect":              {http.Header{"Expect": {"100-continue"}}, map[string]string{"expect": "100-continue"}},
		"proxy-authorization": {http.Header{"Proxy-Authorization": {"x"}}, map[string]string{"proxy-authorization": "x"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{Secure: true})
			req := request(t, "GET", "https://x.test/p?q=1#frag")
			req.Header = tt.header
			before := tt.header.Clone()
			open(t, p.client, terms, req, 0)
			got := p.headers()
			want := map[string]string{":method": "GET", ":scheme": "https", ":authority": "x.test", ":path": "/p?q=1"}
			for k, v := range tt.want {
				want[k] = v
			}
			if diff := cmp.Diff(want, got.fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if !got.end {
				t.Error("HEADERS without END_STREAM")
			}
			if diff := cmp.Diff(before, req.Header); diff != "" {
				t.Errorf("the request was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestTarget(t *testing.T) {
	tests := map[string]struct {
		url             *url.URL
		method, host    string
		path, authority string
	}{
		"empty path":       {url: &url.URL{Host: "x.test"}, path: "/", authority: "x.test"},
		"query, no path":   {url: &url.URL{Host: "x.test", RawQuery: "q"}, path: "/?q", authority: "x.test"},
		"raw path":         {url: &url.URL{Host: "x.test", Path: "/a/b", RawPath: "/a%2fb"}, path: "/a%2fb", authority: "x.test"},
		"double slash":     {url: &url.URL{Host: "x.test", Path: "//a"}, path: "//a", authority: "x.test"},
		"opaque":           {url: &url.URL{Host: "x.test", Opaque: "/%41", RawQuery: "q"}, path: "/%41?q", authority: "x.test"},
		"opaque, absolute": {url: &url.URL{Host: "x.test", Opaque: "//y.test/%41"}, path: "/%41", authority: "x.test"},
		"opaque, host":     {url: &url.URL{Host: "x.test", Opaque: "//y.test"}, path: "/", authority: "x.test"},
		"options":          {url: &url.URL{Host: "x.test", Path: "*"}, method: "OPTIONS", path: "*", authority: "x.test"},
		"user info":        {url: &url.URL{Host: "x.test", User: url.UserPassword("u", "p")}, path: "/", authority: "x.test"},
		"host field":       {url: &url.URL{Host: "x.test:8443"}, host: "y.test", path: "/", authority: "y.test"},
		"port":             {url: &url.URL{Host: "x.test:8443"}, path: "/", authority: "x.test:8443"},
		"zone":             {url: &url.URL{Host: "[fe80::1%lo]:80"}, path: "/", authority: "[fe80::1]:80"},
		"zone in host":     {url: &url.URL{Host: "x.test"}, host: "[fe80::1%25lo]", path: "/", authority: "[fe80::1]"},
		"international":    {url: &url.URL{Host: "bücher.test"}, path: "/", authority: "xn--bcher-kva.test"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			req := &http.Request{Method: tt.method, URL: tt.url, Host: tt.host}
			open(t, p.client, terms, req, 0)
			got := p.headers().fields
			want := map[string]string{":method": "GET", ":scheme": "http", ":authority": tt.authority, ":path": tt.path}
			if tt.method != "" {
				want[":method"] = tt.method
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// A request that can not be sent fails before a frame is written, does not show
// values, and does not harm the connection.
func TestRequestRefused(t *testing.T) {
	tests := map[string]struct {
		change func(*http.Request)
		want   string
	}{
		"field name":   {func(r *http.Request) { r.Header = http.Header{"X A": {"1"}} }, `"X A"`},
		"field value":  {func(r *http.Request) { r.Header = http.Header{"X-A": {"secret\r\nEvil: 1"}} }, `"X-A"`},
		"pseudo field": {func(r *http.Request) { r.Header = http.Header{":protocol": {"x"}} }, `":protocol"`},
		"trailer":      {func(r *http.Request) { r.Trailer = http.Header{"X-A": {"secret\n"}} }, `"X-A"`},
		"no host":      {func(r *http.Request) { r.URL.Host, r.Host = "", "" }, `host ""`},
		"host":         {func(r *http.Request) { r.Host = "x.test\r\nx" }, "host"},
		"no URL":       {func(r *http.Request) { r.URL = nil }, "no URL"},
		"path":         {func(r *http.Request) { r.URL.Opaque = "relative" }, ":path"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, http2.Options{})
			req := request(t, "GET", "http://x.test/")
			tt.change(req)
			s := newStream(t, p.client, terms)
			err := s.WriteRequestHeaders(req, 0)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want one with %s", err, tt.want)
			}
			if s.Written() {
				t.Error("Written is true")
			}
			s.End()
			p.works()
		})
	}
}
