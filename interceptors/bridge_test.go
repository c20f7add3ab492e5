package interceptors_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/interceptors"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/route"
)

// owner is a call that marks what it wraps.
type owner struct{ event.Call }

type bodyFailure struct{ err error }

func (f bodyFailure) Error() string { return "call: " + f.err.Error() }
func (f bodyFailure) Unwrap() error { return f.err }

func (owner) BodyFailed(err error) error { return bodyFailure{err} }
func (owner) Released(error)             {}

// settings are those of a client, without a User-Agent.
func settings(change ...func(*chain.Config)) *chain.Config {
	c := &chain.Config{FollowUps: true, TransparentGzip: true}
	for _, f := range change {
		f(c)
	}
	return c
}

func userAgent(ua string) func(*chain.Config) {
	return func(c *chain.Config) { c.UserAgent = ua }
}

func cookieJar(jar http.CookieJar) func(*chain.Config) {
	return func(c *chain.Config) { c.CookieJar = jar }
}

func roundTripper(c *chain.Config) { c.FollowUps = false }

func noGzip(c *chain.Config) { c.TransparentGzip = false }

// through sends req through the Bridge to server, which stands for all links
// below.
func through(req *http.Request, config *chain.Config, server func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	var life lifetime.Context
	life.Init(context.Background(), nil)
	defer life.Finish()
	return throughOf(&life, req, config, server)
}

// throughOf is through for a call whose end is life's.
func throughOf(life *lifetime.Context, req *http.Request, config *chain.Config, server func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	allocation := &connection.StreamAllocation{}
	allocation.Init(owner{}, owner{}, event.NopListener{}, life, nil)
	run := &chain.Run{
		Interceptors: []chain.Interceptor{
			interceptors.Bridge{},
			chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) { return server(c.Request()) }),
		},
		Call:       owner{},
		Allocation: allocation,
		Listener:   event.NopListener{},
	}
	return run.Start(req, config)
}

// bridged is the network request of req.
func bridged(t *testing.T, req *http.Request, config *chain.Config) *http.Request {
	t.Helper()
	var network *http.Request
	resp, err := through(req, config, func(req *http.Request) (*http.Response, error) {
		network = req
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Request != req {
		t.Error("the response's Request is not the application's")
	}
	return network
}

func newRequest(t testing.TB, method, target string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// All that can be missing at once: the memory for it is counted.
func TestBridgeSetsEverything(t *testing.T) {
	req := newRequest(t, "POST", "http://user:secret@a.test/", io.NopCloser(strings.NewReader("text")))
	cookies := &jar{give: []*http.Cookie{{Name: "a", Value: "1"}}}
	network := bridged(t, req, settings(userAgent("ua"), cookieJar(cookies)))
	want := http.Header{
		"Connection":      {"Keep-Alive"},
		"Accept-Encoding": {"gzip"},
		"User-Agent":      {"ua"},
		"Authorization":   {"Basic dXNlcjpzZWNyZXQ="},
		"Cookie":          {"a=1"},
	}
	if diff := cmp.Diff(want, network.Header); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
	if diff := cmp.Diff([]string{"chunked"}, network.TransferEncoding); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestBridgeSetsWhatIsMissing(t *testing.T) {
	keepAlive := []string{"Keep-Alive"}
	gzip := []string{"gzip"}
	tests := []struct {
		name   string
		method string
		url    string
		header http.Header
		close  bool
		config []func(*chain.Config)
		want   http.Header
	}{
		{
			name: "nothing is set",
			want: http.Header{"Connection": keepAlive, "Accept-Encoding": gzip},
		},
		{
			name:   "user agent of the settings",
			config: []func(*chain.Config){userAgent("ours/1")},
			want:   http.Header{"Connection": keepAlive, "Accept-Encoding": gzip, "User-Agent": {"ours/1"}},
		},
		{
			name:   "user agent of the application",
			header: http.Header{"User-Agent": {"theirs/1", "more"}},
			config: []func(*chain.Config){userAgent("ours/1")},
			want:   http.Header{"Connection": keepAlive, "Accept-Encoding": gzip, "User-Agent": {"theirs/1"}},
		},
		{
			name:   "empty user agent",
			header: http.Header{"User-Agent": {""}},
			config: []func(*chain.Config){userAgent("ours/1")},
			want:   http.Header{"Connection": keepAlive, "Accept-Encoding": gzip},
		},
		{
			name:   "user agent without a value",
			header: http.Header{"User-Agent": nil},
			config: []func(*chain.Config){userAgent("ours/1")},
			want:   http.Header{"Connection": keepAlive, "Accept-Encoding": gzip},
		},
		{
			name:   "names in lower case",
			header: http.Header{"user-agent": {"theirs/1"}, "accept-encoding": {"br"}, "connection": {"close"}, "host": {"evil.test"}},
			config: []func(*chain.Config){userAgent("ours/1")},
			want:   http.Header{"user-agent": {"theirs/1"}, "accept-encoding": {"br"}, "connection": {"close"}},
		},
		{
			name:   "encodings of the application",
			header: http.Header{"Accept-Encoding": {"gzip"}},
			want:   http.Header{"Connection": keepAlive, "Accept-Encoding": gzip},
		},
		{
			name:   "range",
			header: http.Header{"Range": {"bytes=0-1"}},
			want:   http.Header{"Connection": keepAlive, "Range": {"bytes=0-1"}},
		},
		{
			name:   "HEAD",
			method: "HEAD",
			want:   http.Header{"Connection": keepAlive},
		},
		{
			name:   "no gzip",
			config: []func(*chain.Config){noGzip},
			want:   http.Header{"Connection": keepAlive},
		},
		{
			name:  "close",
			close: true,
			want:  http.Header{"Connection": {"close"}, "Accept-Encoding": gzip},
		},
		{
			name:   "connection of the application",
			header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}},
			want:   http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Accept-Encoding": gzip},
		},
		{
			name: "fields that the request's own decide",
			header: http.Header{
				"Host": {"evil.test"}, "Content-Length": {"5"}, "Transfer-Encoding": {"chunked"}, "Trailer": {"X"},
				"X": {"1", "2"},
			},
			want: http.Header{"Connection": keepAlive, "Accept-Encoding": gzip, "X": {"1", "2"}},
		},
		{
			name: "user information",
			url:  "http://user:pass%20word@a.test/",
			want: http.Header{"Connection": keepAlive, "Accept-Encoding": gzip, "Authorization": {"Basic dXNlcjpwYXNzIHdvcmQ="}},
		},
		{
			name:   "user information and credentials",
			url:    "http://user:password@a.test/",
			header: http.Header{"Authorization": {"Bearer x"}},
			want:   http.Header{"Connection": keepAlive, "Accept-Encoding": gzip, "Authorization": {"Bearer x"}},
		},
		{
			name:   "user information in a RoundTripper",
			url:    "http://user:password@a.test/",
			config: []func(*chain.Config){roundTripper},
			want:   http.Header{"Connection": keepAlive, "Accept-Encoding": gzip},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			target := test.url
			if target == "" {
				target = "http://a.test/"
			}
			req := newRequest(t, test.method, target, nil)
			req.Header, req.Close = test.header, test.close
			given := test.header.Clone()
			network := bridged(t, req, settings(test.config...))
			if diff := cmp.Diff(test.want, network.Header); diff != "" {
				t.Error("header (-want +got):\n" + diff)
			}
			if diff := cmp.Diff(given, req.Header); diff != "" {
				t.Error("the application's header has changed (-want +got):\n" + diff)
			}
		})
	}
}

func TestBridgeKeepsTheRequest(t *testing.T) {
	type key struct{}
	req := newRequest(t, "", "http://a.test/x?y", nil)
	req = req.WithContext(context.WithValue(req.Context(), key{}, "value"))
	req.Method = ""
	network := bridged(t, req, settings())
	if network == req {
		t.Error("the application's request went to the network")
	}
	if network.Method != "GET" || network.URL != req.URL || network.Context().Value(key{}) != "value" {
		t.Errorf("network request %v, context %v", network, network.Context())
	}
	if req.Method != "" || req.Header.Get("Connection") != "" {
		t.Errorf("the application's request has changed: %v", req)
	}
}

// What an interceptor appends to must not be the application's.
func TestBridgeSharesNoRoom(t *testing.T) {
	req := newRequest(t, "GET", "http://a.test/", nil)
	values := make([]string, 1, 4)
	values[0] = "one"
	req.Header["X"] = values
	network := bridged(t, req, settings(userAgent("ours/1")))
	for name, v := range network.Header {
		if cap(v) != len(v) {
			t.Errorf("%s has room for %d more", name, cap(v)-len(v))
		}
	}
	network.Header.Add("Connection", "x")
	if got := network.Header.Get("Accept-Encoding"); got != "gzip" {
		t.Errorf("Accept-Encoding has become %q", got)
	}
}

func TestBridgeHost(t *testing.T) {
	tests := []struct{ url, host, want string }{
		{"http://a.test/", "", "a.test"},
		{"http://a.test:80/", "", "a.test:80"},
		{"http://a.test:8080/", "", "a.test:8080"},
		{"http://A.Test:8080/", "", "a.test:8080"},
		{"http://a.test:/", "", "a.test"},
		{"http://a.test./", "", "a.test."},
		{"http://bücher.test:8080/", "", "xn--bcher-kva.test:8080"},
		{"http://[::1]/", "", "[::1]"},
		{"http://[::1]:8080/", "", "[::1]:8080"},
		{"http://[0:0::1]:8080/", "", "[::1]:8080"},
		{"http://[fe80::1%25lo]:8080/", "", "[fe80::1]:8080"},
		{"http://[fe80::1%25lo]/", "", "[fe80::1]"},
		{"http://[::ffff:127.0.0.1]/", "", "127.0.0.1"},
		{"http://127.1/", "", "127.1"},
		{"http://127.0.0.1:8080/", "Virtual.test", "Virtual.test"},
		{"http://127.0.0.1:8080/", "bücher.test:1", "xn--bcher-kva.test:1"},
		{"http://127.0.0.1:8080/", "[fe80::1%lo]:1", "[fe80::1]:1"},
	}
	for _, test := range tests {
		t.Run(test.url+" "+test.host, func(t *testing.T) {
			u, err := url.Parse(test.url)
			if err != nil {
				t.Fatal(err)
			}
			hosts := []string{test.host}
			if test.host == "" {
				hosts = append(hosts, u.Host) // as http.NewRequest has it
			}
			for _, host := range hosts {
				req := (&http.Request{URL: u, Host: host}).WithContext(t.Context())
				if err := interceptors.ValidateRequest(req); err != nil {
					t.Fatal(err)
				}
				network := bridged(t, req, settings())
				if network.Host != test.want {
					t.Errorf("Host %q: got %q, want %q", host, network.Host, test.want)
				}
				sameAddress(t, network.URL, u)
			}
		})
	}
}

// sameAddress checks that network, in its canonical form, leads where u does.
func sameAddress(t *testing.T, network, u *url.URL) {
	t.Helper()
	got, err := route.NewAddress(network, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := route.NewAddress(u, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got != want || network.Hostname() != want.Host {
		t.Errorf("the network's URL is %v, want one of %v", network, want)
	}
}

func TestBridgeRefuses(t *testing.T) {
	server := newRequest(t, "GET", "http://a.test/", nil)
	server.RequestURI = "/"
	bad := []*http.Cookie{{Name: "a", Value: "b\r\nX: y"}}
	tests := []struct {
		name   string
		req    *http.Request
		config *chain.Config
		want   string
	}{
		{"a server's request", server, settings(), "RequestURI"},
		{"user agent", newRequest(t, "GET", "http://a.test/", nil), settings(userAgent("a\nb")), "User-Agent"},
		{"cookie value", newRequest(t, "GET", "http://a.test/", nil), settings(cookieJar(&jar{give: bad})), `cookie "a"`},
		{"cookie that is two", newRequest(t, "GET", "http://a.test/", nil), settings(cookieJar(&jar{give: []*http.Cookie{{Name: "a", Value: "b; c=d"}}})), `cookie "a"`},
		{"cookie name", newRequest(t, "GET", "http://a.test/", nil), settings(cookieJar(&jar{give: []*http.Cookie{{Name: "a b"}}})), `cookie "a b"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := through(test.req, test.config, func(*http.Request) (*http.Response, error) {
				t.Error("sent")
				return nil, errors.New("sent")
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want one about %s", err, test.want)
			}
		})
	}
	// A reverse proxy hands on what a server got.
	if network := bridged(t, server, settings(roundTripper)); network.RequestURI != "" {
		t.Errorf("RequestURI is %q", network.RequestURI)
	}
}
