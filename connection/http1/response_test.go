package http1_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/connection/http1"
)

// view is what of a response the tests compare.
type view struct {
	Status           string
	Code             int
	Proto            string
	Minor            int
	Header           http.Header
	Length           int64
	TransferEncoding []string
	Close            bool
	Body             string
	Trailer          http.Header
	Reusable         bool
}

func viewOf(o outcome) view {
	r := o.resp
	return view{
		r.Status, r.StatusCode, r.Proto, r.ProtoMinor, r.Header, r.ContentLength, r.TransferEncoding,
		r.Close, o.body, r.Trailer, o.reusable,
	}
}

func TestResponse(t *testing.T) {
	tests := []struct {
		name, method, text string
		ends               bool // the server closes after text
		want               view
	}{
		{
			name: "length",
			text: "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nX-a: 1\r\nSet-Cookie: a=b\r\nset-cookie:c=d \t\r\n\r\nhello",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1,
				Header: http.Header{"Content-Length": {"5"}, "X-A": {"1"}, "Set-Cookie": {"a=b", "c=d"}},
				Length: 5, Body: "hello", Reusable: true,
			},
		}, {
			name: "chunked with trailer",
			text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nx-sum: 11\r\nX-Late: yes\r\nContent-Length: 3\r\n\r\n",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{},
				Length: -1, TransferEncoding: []string{"chunked"}, Body: "hello world",
				Trailer: http.Header{"X-Sum": {"11"}, "X-Late": {"yes"}}, Reusable: true,
			},
		}, {
			name: "to the close", ends: true,
			text: "HTTP/1.1 200\r\n\r\nhello",
			want: view{
				Status: "200", Code: 200, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{},
				Length: -1, Close: true, Body: "hello",
			},
		}, {
			name: "two spaces and no length of the reason",
			text: "HTTP/1.1  200 \r\nContent-Length: 0\r\n\r\n",
			want: view{
				Status: "200 ", Code: 200, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{"Content-Length": {"0"}},
				Reusable: true,
			},
		}, {
			name: "bare LF",
			text: "HTTP/1.1 404 Not Found\nContent-Length: 2\nX: y\n\nno",
			want: view{
				Status: "404 Not Found", Code: 404, Proto: "HTTP/1.1", Minor: 1,
				Header: http.Header{"Content-Length": {"2"}, "X": {"y"}}, Length: 2, Body: "no", Reusable: true,
			},
		}, {
			name: "folded values",
			text: "HTTP/1.1 200 OK\r\nX-A: b \r\n \t c\r\n d\r\nX-B:\r\n e\r\nX-C: f\r\n \r\nContent-Length: 0\r\n\r\n",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1,
				Header: http.Header{"X-A": {"b c d"}, "X-B": {"e"}, "X-C": {"f"}, "Content-Length": {"0"}}, Reusable: true,
			},
		}, {
			name: "same lengths",
			text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5 , 05\r\n\r\nhello",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{"Content-Length": {"5"}},
				Length: 5, Body: "hello", Reusable: true,
			},
		}, {
			name: "coding over length",
			text: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{},
				Length: -1, TransferEncoding: []string{"chunked"}, Body: "hello",
			},
		}, {
			name: "identity",
			text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{"Content-Length": {"2"}},
				Length: 2, Body: "ok", Reusable: true,
			},
		}, {
			name: "HEAD with a length", method: "HEAD",
			text: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Encoding: gzip\r\n\r\n",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1,
				Header: http.Header{"Content-Length": {"1000"}, "Content-Encoding": {"gzip"}}, Length: 1000, Reusable: true,
			},
		}, {
			name: "HEAD with chunked", method: "HEAD",
			text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{}, Length: -1,
				TransferEncoding: []string{"chunked"}, Reusable: true,
			},
		}, {
			name: "HEAD without anything", method: "HEAD",
			text: "HTTP/1.1 200 OK\r\n\r\n",
			want: view{Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{}, Length: -1, Reusable: true},
		}, {
			name: "204",
			text: "HTTP/1.1 204 No Content\r\n\r\n",
			want: view{Status: "204 No Content", Code: 204, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{}, Reusable: true},
		}, {
			name: "204 with length 0",
			text: "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
			want: view{
				Status: "204 No Content", Code: 204, Proto: "HTTP/1.1", Minor: 1,
				Header: http.Header{"Content-Length": {"0"}}, Reusable: true,
			},
		}, {
			name: "204 that announces content",
			text: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
			want: view{
				Status: "204 No Content", Code: 204, Proto: "HTTP/1.1", Minor: 1,
				Header: http.Header{"Content-Length": {"5"}},
			},
		}, {
			name: "204 that announces chunks",
			text: "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
			want: view{
				Status: "204 No Content", Code: 204, Proto: "HTTP/1.1", Minor: 1,
				Header: http.Header{}, TransferEncoding: []string{"chunked"},
			},
		}, {
			name: "204 that sends content",
			text: "HTTP/1.1 204 No Content\r\n\r\nhello",
			want: view{Status: "204 No Content", Code: 204, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{}},
		}, {
			name: "205 with content",
			text: "HTTP/1.1 205 Reset Content\r\nContent-Length: 2\r\n\r\nok",
			want: view{
				Status: "205 Reset Content", Code: 205, Proto: "HTTP/1.1", Minor: 1,
				Header: http.Header{"Content-Length": {"2"}}, Length: 2, Body: "ok", Reusable: true,
			},
		}, {
			name: "304 with a length",
			text: "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
			want: view{
				Status: "304 Not Modified", Code: 304, Proto: "HTTP/1.1", Minor: 1,
				Header: http.Header{"Content-Length": {"99"}}, Reusable: true,
			},
		}, {
			name: "close",
			text: "HTTP/1.1 200 OK\r\nConnection: foo, CLOSE\r\nContent-Length: 0\r\n\r\n",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1, Header: http.Header{"Content-Length": {"0"}}, Close: true,
			},
		}, {
			name: "close with a long s",
			text: "HTTP/1.1 200 OK\r\nConnection: clo\u017fe\r\nContent-Length: 0\r\n\r\n",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1, Reusable: true,
				Header: http.Header{"Content-Length": {"0"}, "Connection": {"clo\u017fe"}},
			},
		}, {
			name: "HTTP/1.0",
			text: "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.0", Header: http.Header{"Content-Length": {"0"}}, Close: true,
			},
		}, {
			name: "HTTP/1.0 keep-alive",
			text: "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.0", Length: 2, Body: "ok", Reusable: true,
				Header: http.Header{"Content-Length": {"2"}, "Connection": {"Keep-Alive"}},
			},
		}, {
			name: "second response behind the first",
			text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1, Length: 2, Body: "ok",
				Header: http.Header{"Content-Length": {"2"}},
			},
		}, {
			name: "interim responses first",
			text: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 199 x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
			want: view{
				Status: "200 OK", Code: 200, Proto: "HTTP/1.1", Minor: 1, Length: 2, Body: "ok", Reusable: true,
				Header: http.Header{"Content-Length": {"2"}},
			},
		}, {
			name: "empty chunked",
			text: "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n0\r\n\r\n",
			want: view{
				Status: "404 Not Found", Code: 404, Proto: "HTTP/1.1", Minor: 1, Length: -1, Reusable: true,
				Header: http.Header{"Content-Encoding": {"gzip"}}, TransferEncoding: []string{"chunked"},
			},
		},
	}
	for _, test := range tests {
		method := test.method
		if method == "" {
			method = "GET"
		}
		for _, step := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s/%d", test.name, step), func(t *testing.T) {
				nc := answering(test.text)
				if test.ends {
					nc.end = io.EOF
				}
				nc.step = step
				got := exchange(nc, method)
				if got.err != nil {
					t.Fatal(got.err)
				}
				want := test.want
				if step > 0 && strings.Contains(test.text, "evil") || step > 0 && strings.HasSuffix(test.text, "\r\n\r\nhello") && want.Code == 204 {
					want.Reusable = true // what follows is still on its way: the pool's check finds it
				}
				if diff := cmp.Diff(want, viewOf(got)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	}
}

func TestMalformedHead(t *testing.T) {
	status := "HTTP/1.1 200 OK\r\n"
	tests := []struct{ name, text, reason string }{
		{"no space before the code", "HTTP/1.1 200OK\r\n\r\n", `malformed status line "HTTP/1.1 200OK"`},
		{"letter in the code", "HTTP/1.1 204x Odd\r\n\r\n", "malformed status line"},
		{"code below 100", "HTTP/1.1 099 X\r\n\r\n", "malformed status line"},
		{"two digits", "HTTP/1.1 20 OK\r\n\r\n", "malformed status line"},
		{"four digits", "HTTP/1.1 2000 OK\r\n\r\n", "malformed status line"},
		{"no code", "HTTP/1.1\r\n\r\n", "malformed status line"},
		{"only spaces", "HTTP/1.1           \r\n\r\n", "malformed status line"},
		{"version letter", "HTTP/1.x 200 OK\r\n\r\n", "malformed status line"},
		{"control character in the reason", "HTTP/1.1 200 O\x00K\r\n\r\n", "malformed status line"},
		{"carriage return in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", "malformed status line"},
		{"ICY", "ICY 200 OK\r\n\r\n", `malformed status line "ICY 200 OK"`},
		{"HTTP/2 in text", "HTTP/2 200\r\n\r\n", "malformed status line"},
		{"empty line first", "\r\n" + status + "\r\n", "malformed status line"},
		{"lower case", "http/1.1 200 OK\r\n\r\n", "malformed status line"},
		{"TLS alert", "\x15\x03\x01\x00\x02\x02\x46", "TLS"},
		{"TLS handshake", "\x16\x03\x01", "TLS"},
		{"HTTP/2 SETTINGS", "\x00\x00\x12\x04\x00\x00\x00\x00\x00", "HTTP/2"},

		{"space before the colon", status + "X-A : b\r\n\r\n", `"X-A : b"`},
		{"NUL in a value", status + "X-A: b\x00c\r\n\r\n", "invalid character"},
		{"CR in a value", status + "X-A: b\rc\r\n\r\n", "invalid character"},
		{"CR at the end of a value", status + "X-A: b\r\r\n\r\n", "invalid character"},
		{"DEL in a value", status + "X-A: b\x7f\r\n\r\n", "invalid character"},
		{"NUL in a folded line", status + "X-A: b\r\n c\x00\r\n\r\n", "invalid character"},
		{"folded name", status + "X-\r\n A: b\r\n\r\n", `without a colon: "X-"`},
		{"empty name", status + ": b\r\n\r\n", "invalid name"},
		{"white space first", status + " X-A: b\r\n\r\n", "white space"},
		{"no colon", status + "A: b\r\nuser\"\r\nC: d\r\n\r\n", `"user\""`},
		{"space in the name", status + "X A: b\r\n\r\n", "invalid name"},

		{"lengths differ", status + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "contradictory"},
		{"lengths differ in a list", status + "Content-Length: 5, 6\r\n\r\nhello!", "contradictory"},
		{"length with a sign", status + "Content-Length: +5\r\n\r\nhello", "malformed Content-Length"},
		{"negative length", status + "Content-Length: -1\r\n\r\nhello", "malformed Content-Length"},
		{"length with a letter", status + "Content-Length: 5x\r\n\r\nhello", "malformed Content-Length"},
		{"length of 2^63", status + "Content-Length: 9223372036854775808\r\n\r\n", "malformed Content-Length"},
		{"length of 2^64", status + "Content-Length: 18446744073709551616\r\n\r\n", "malformed Content-Length"},
		{"empty length", status + "Content-Length:\r\n\r\n", "malformed Content-Length"},
		{"length and nothing", status + "Content-Length: 5,\r\n\r\n", "malformed Content-Length"},

		{"gzip coding", status + "Transfer-Encoding: gzip\r\n\r\n", "unsupported transfer coding"},
		{"two codings", status + "Transfer-Encoding: gzip, chunked\r\n\r\n", "unsupported transfer coding"},
		{"chunked twice", status + "Transfer-Encoding: chunked, chunked\r\n\r\n", "unsupported transfer coding"},
		{"two coding fields", status + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "unsupported transfer coding"},
		{"chunked then identity", status + "Transfer-Encoding: chunked, identity\r\n\r\n", "unsupported transfer coding"},
		{"chunked with a Kelvin sign", status + "Transfer-Encoding: chun\u212aed\r\n\r\n", "unsupported transfer coding"},
		{"empty coding", status + "Transfer-Encoding:\r\n\r\n", "unsupported transfer coding"},
		{"coding in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},

		{"101 not asked for", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "did not ask"},
	}
	for _, test := range tests {
		for _, step := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s/%d", test.name, step), func(t *testing.T) {
				nc := answering(test.text)
				nc.step = step
				got := exchange(nc, "GET")
				if step == 0 {
					wantProtocolError(t, got.err, test.reason)
				} else {
					wantProtocolError(t, got.err, "")
				}
				if got.reusable {
					t.Error("the connection is reusable")
				}
			})
		}
	}
}

// A quoted line is cut, whatever its length.
func TestErrorQuotesAtMost64Bytes(t *testing.T) {
	got := exchange(answering("HTTP/1.1 200 OK\r\n"+strings.Repeat("x", 5000)+"\r\n\r\n"), "GET")
	wantProtocolError(t, got.err, strings.Repeat("x", 64)+`"...`)
	if len(got.err.Error()) > 200 {
		t.Errorf("the error has %d bytes", len(got.err.Error()))
	}
}

// Every place at which a head can be cut off is an error that tells from none.
func TestHeadCutAtEveryByte(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 0\r\n\r\n"
	for cut := range len(head) {
		got := exchange(ending(head[:cut]), "GET")
		want := io.ErrUnexpectedEOF
		if cut == 0 {
			want = io.EOF
		}
		if !errors.Is(got.err, want) || got.reusable {
			t.Errorf("cut after %q: error %v, reusable %v", head[:cut], got.err, got.reusable)
		}
	}
	if got := exchange(ending(head), "GET"); got.err != nil {
		t.Error(got.err)
	}
}

// Over TLS the end of a connection without a close_notify, before any byte, is
// what a stale pooled connection looks like.
func TestTruncatedBeforeResponse(t *testing.T) {
	got := exchange(&script{end: io.ErrUnexpectedEOF}, "GET")
	if !errors.Is(got.err, io.EOF) || !strings.Contains(got.err.Error(), "closed the connection before a response") {
		t.Errorf("error is %v", got.err)
	}
}

// Errors that are not the end of the connection are not dressed up.
func TestReadErrorAsItIs(t *testing.T) {
	boom := errors.New("boom")
	for _, text := range []string{"", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n", "HTTP/1.1 200 OK\r\n\r\nx"} {
		got := exchange(&script{in: []byte(text), end: boom}, "GET")
		if got.err != boom {
			t.Errorf("after %q: error is %v", text, got.err)
		}
	}
}

func TestStarted(t *testing.T) {
	c := http1.NewConn(answering("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 oops\r\n"), false)
	send(t, c, "GET")
	calls := 0
	for range 2 {
		c.ReadResponseHeaders(func() { calls++ })
	}
	if calls != 2 {
		t.Errorf("started was called %d times", calls)
	}
	c = http1.NewConn(ending(""), false)
	send(t, c, "GET")
	if _, err := c.ReadResponseHeaders(func() { t.Error("started without a byte") }); err == nil {
		t.Error("no error")
	}
}

func TestOneFinalResponse(t *testing.T) {
	c := http1.NewConn(answering("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"), false)
	get(t, c)
	if _, err := c.ReadResponseHeaders(nil); err == nil || !strings.Contains(err.Error(), "final response already") {
		t.Errorf("error is %v", err)
	}
}

func TestKeepAlive(t *testing.T) {
	tests := map[string]time.Duration{
		"timeout=5":                    5 * time.Second,
		"max=10, Timeout = 7":          7 * time.Second,
		"timeout=0":                    0,
		"timeout=-1":                   0,
		"timeout=x":                    0,
		"timeout=99999999999999999999": 0,
		"timeout":                      0,
		"":                             0,
	}
	for value, want := range tests {
		c := http1.NewConn(answering("HTTP/1.1 204 OK\r\nKeep-Alive: "+value+"\r\n\r\n"), false)
		get(t, c)
		c.End()
		if got, ok := c.KeepAlive(); got != want || ok != (want > 0) {
			t.Errorf("%q: got %v, %v", value, got, ok)
		}
	}
}
