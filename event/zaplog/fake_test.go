package zaplog_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// fakeCall is a GET whose list of secrets is the field X-Key and the query
// parameter "token".
type fakeCall struct {
	id  uint64
	req *http.Request
}

func newCall(id uint64) fakeCall {
	u := &url.URL{Scheme: "https", User: url.UserPassword("me", "hunter2"), Host: "example.com", Path: "/", RawQuery: "token=hunter2"}
	return fakeCall{id, &http.Request{Method: "GET", URL: u}}
}

func (c fakeCall) ID() uint64             { return c.id }
func (c fakeCall) Request() *http.Request { return c.req }

func (c fakeCall) RedactedHeader(h http.Header) http.Header {
	h = h.Clone()
	if h.Get("X-Key") != "" {
		h.Set("X-Key", "masked")
	}
	return h
}

func (c fakeCall) RedactedURL(u *url.URL) string {
	v := *u
	if v.Query().Has("token") {
		v.RawQuery = "token=masked"
	}
	return v.Redacted()
}

type fakeConnection struct{ id uint64 }

var _ event.Connection = fakeConnection{}

func (c fakeConnection) ID() uint64                { return c.id }
func (c fakeConnection) LocalAddr() net.Addr       { return nil }
func (c fakeConnection) RemoteAddr() net.Addr      { return address("192.0.2.1:443") }
func (c fakeConnection) Proxy() proxy.Proxy        { return proxy.Proxy{} }
func (c fakeConnection) Protocol() string          { return "h2" }
func (c fakeConnection) TLS() *tls.ConnectionState { return nil }

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }
