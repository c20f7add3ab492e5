package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// proxies chooses them: those of -x or of the environment, with the credentials of
// -U, and none for the hosts of --noproxy. Where credentials have to wait for a
// challenge it is also the authenticator that answers it.
type proxies struct {
	selector proxy.Selector
	direct   hostList
	user     *url.Userinfo // nil: what the proxy's address has
	schemes  schemes

	keepsHeads bool

	mu      sync.Mutex // guards the fields below: racing connects ask at the same time
	answers map[proxy.Proxy]auth.Preemptive
	heads   bytes.Buffer // the heads of CONNECTs and their answers, for -v
}

// Select is the selector's choice, with what the options say of it.
func (p *proxies) Select(ctx context.Context, u *url.URL) ([]proxy.Proxy, error) {
	if p.direct.has(u.Hostname()) {
		return []proxy.Proxy{{}}, nil
	}
	chosen, err := p.selector.Select(ctx, u)
	for i, via := range chosen {
		if via.IsDirect() {
			continue
		}
		if p.user != nil {
			via.User = p.user
		}
		chosen[i] = p.holdBack(via)
	}
	return chosen, err
}

// holdBack takes the credentials off a proxy that has to ask for them first.
func (p *proxies) holdBack(via proxy.Proxy) proxy.Proxy {
	if !p.schemes.wait() || via.User == nil || !speaksHTTP(via) {
		return via
	}
	of := login{user: via.User.Username()}
	of.password, _ = via.User.Password()
	via.User = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers == nil {
		p.answers = map[proxy.Proxy]auth.Preemptive{}
	}
	if p.answers[via] == nil {
		p.answers[via] = p.schemes.answer(of)
	}
	return via
}

// ConnectFailed tells the selector.
func (p *proxies) ConnectFailed(u *url.URL, via proxy.Proxy, err error) {
	p.selector.ConnectFailed(u, via, err)
}

// Authenticate answers the challenge of a proxy whose credentials were held back.
func (p *proxies) Authenticate(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
	if a := p.answer(via); a != nil {
		return a.Authenticate(via, resp)
	}
	return nil, nil
}

// Observe keeps what -v is to show, and learns the next nonce of Digest.
func (p *proxies) Observe(via proxy.Proxy, resp *http.Response) {
	if p.keepsHeads && resp.Request.Method == http.MethodConnect {
		p.keepHeads(via, resp)
	}
	if o, ok := p.answer(via).(auth.Observer); ok {
		o.Observe(via, resp)
	}
}

func (p *proxies) keepHeads(via proxy.Proxy, resp *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(&p.heads, "* proxy %s\n", via)
	showRequest(&p.heads, resp.Request, resp.Request.Host, resp.Request.Proto)
	showResponse(&p.heads, resp)
}

// takeHeads returns what was kept, once.
func (p *proxies) takeHeads() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.heads.Reset()
	return bytes.Clone(p.heads.Bytes())
}

func (p *proxies) answer(via proxy.Proxy) auth.Preemptive {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers[via]
}

func speaksHTTP(p proxy.Proxy) bool { return p.Type == proxy.HTTP || p.Type == proxy.HTTPS }

// proxyUser reads -U, which is percent-encoded as in a proxy's address. Its errors
// show nothing of it.
func proxyUser(v string) (*url.Userinfo, error) {
	name, password, _ := strings.Cut(v, ":")
	name, err := url.PathUnescape(name)
	if err == nil {
		password, err = url.PathUnescape(password)
	}
	if err != nil {
		return nil, errors.New("a % begins no percent-encoding: write it as %25")
	}
	return url.UserPassword(name, password), nil
}

// proxyHeader is a network interceptor that adds the fields of --proxy-header to
// requests that a proxy reads. Those of a CONNECT have them from the client.
func (c *command) proxyHeader(ch chain.Chain) (*http.Response, error) {
	req := ch.Request()
	if forwarded(ch.Connection(), req) {
		req = req.Clone(req.Context())
		for name, values := range c.options.connectHeader() {
			req.Header[name] = values
		}
	}
	return ch.Proceed(req)
}

// forwarded reports whether a proxy reads the request and passes it on.
func forwarded(conn event.Connection, req *http.Request) bool {
	return speaksHTTP(conn.Proxy()) && req.URL.Scheme == "http" && conn.Protocol() == "http/1.1"
}

// connectHeader is what --proxy-header says: the fields, and an empty User-Agent
// where there is to be none.
func (o *options) connectHeader() http.Header {
	h := http.Header{}
	for _, f := range o.proxyHeaders {
		if name := http.CanonicalHeaderKey(f.name); !f.without || name == "User-Agent" {
			h.Add(name, f.value)
		}
	}
	return h
}
