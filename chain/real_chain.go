package chain

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/redact"
	"github.com/catena-http/catena/route"
)

// engineLinks is how many links of the engine's stand between the application's
// interceptors and the network ones: RetryAndFollowUp, Bridge and Connect.
const engineLinks = 3

// inlineLinks is how many links a call's own memory has room for: the engine's
// four. What the application adds is one allocation, whatever its number.
const inlineLinks = engineLinks + 1

// Run is one call's way through its interceptors: what its links share. It is an
// engine part without a promise to users. Used by the call's goroutine.
type Run struct {
	// Interceptors are all links in order; Application of them come first and are
	// the application's, the last one is CallServer.
	Interceptors []Interceptor
	Application  int
	Call         event.Call
	Listener     event.Listener
	Allocation   *connection.StreamAllocation
	Secrets      *redact.Secrets
	Infos        Infos

	// ProxyAuthorization is what an authenticator made last for a proxy, or the last
	// link sent ahead; nil: nothing.
	ProxyAuthorization *ProxyAuthorization

	links [inlineLinks]RealInterceptorChain
	more  []RealInterceptorChain
}

// Start sends req through the chain.
func (r *Run) Start(req *http.Request, config *Config) (*http.Response, error) {
	start := RealInterceptorChain{run: r, index: -1, request: req, config: config}
	return start.Proceed(req)
}

// link is the memory of link i. A link that runs again, because one above called
// Proceed again, takes the place of its earlier run, which is over.
func (r *Run) link(i int) *RealInterceptorChain {
	if i < inlineLinks {
		return &r.links[i]
	}
	if r.more == nil {
		r.more = make([]RealInterceptorChain, len(r.Interceptors)-inlineLinks)
	}
	return &r.more[i-inlineLinks]
}

// network reports whether link i is a network interceptor.
func (r *Run) network(i int) bool {
	return i >= r.Application+engineLinks && i < len(r.Interceptors)-1
}

// HasNetwork reports whether there are network interceptors.
func (r *Run) HasNetwork() bool { return r.network(len(r.Interceptors) - 2) }

// application reports whether link i is an application interceptor.
func (r *Run) application(i int) bool { return i >= 0 && i < r.Application }

// RealInterceptorChain is the Chain of the engine: one link of a Run. Its methods
// beyond Chain's are for the engine's own interceptors, without a promise to
// users.
type RealInterceptorChain struct {
	run      *Run
	index    int
	request  *http.Request
	config   *Config
	exchange *connection.Exchange // from Connect on
	proceeds int
	err      error // of With, for Proceed
}

var _ Chain = (*RealInterceptorChain)(nil)

// Request is the request to answer.
func (c *RealInterceptorChain) Request() *http.Request { return c.request }

// Call is the call.
func (c *RealInterceptorChain) Call() event.Call { return c.run.Call }

// Config are the settings in force.
func (c *RealInterceptorChain) Config() *Config { return c.config }

// Connection carries the request, nil above Connect.
func (c *RealInterceptorChain) Connection() event.Connection {
	if c.exchange == nil {
		return nil
	}
	return c.exchange.Connection()
}

// Exchange is the exchange under way, nil above Connect.
func (c *RealInterceptorChain) Exchange() *connection.Exchange { return c.exchange }

// Run is what the call's links share.
func (c *RealInterceptorChain) Run() *Run { return c.run }

// With is this chain with changed settings for the links below.
func (c *RealInterceptorChain) With(change func(*Config)) Chain {
	changed := *c
	if c.run.network(c.index) {
		changed.err = fmt.Errorf("network interceptor %s changes the settings of the call: it is too late for that", c.name())
		return &changed
	}
	config := *c.config
	change(&config)
	changed.config = &config
	if err := config.Validate(); err != nil {
		changed.err = fmt.Errorf("interceptor %s: invalid settings: %w", c.name(), err)
	}
	return &changed
}

func (c *RealInterceptorChain) name() string { return name(c.run.Interceptors[c.index]) }

// Proceed hands req to the next link.
func (c *RealInterceptorChain) Proceed(req *http.Request) (*http.Response, error) {
	return c.proceed(req, c.exchange)
}

// ProceedOn is Proceed for Connect: the links below run on x.
func (c *RealInterceptorChain) ProceedOn(x *connection.Exchange, req *http.Request) (*http.Response, error) {
	return c.proceed(req, x)
}

func (c *RealInterceptorChain) proceed(req *http.Request, x *connection.Exchange) (*http.Response, error) {
	c.proceeds++
	if err := c.mayProceed(req); err != nil {
		return nil, err
	}
	i := c.index + 1
	next := c.run.link(i)
	*next = RealInterceptorChain{run: c.run, index: i, request: req, config: c.config, exchange: x}
	resp, err := c.run.Interceptors[i].Intercept(next)
	return next.returned(resp, err)
}

// mayProceed checks what the interceptor of this link is held to.
func (c *RealInterceptorChain) mayProceed(req *http.Request) error {
	switch {
	case c.err != nil:
		return c.err
	case c.index < 0:
		return nil
	case req == nil || req.URL == nil:
		return fmt.Errorf("interceptor %s proceeds with a nil request or URL", c.name())
	case c.run.application(c.index) && c.run.Allocation.Open():
		return fmt.Errorf("interceptor %s proceeds again while the body of the response before is open: read it to its end or close it first", c.name())
	case !c.run.network(c.index):
		return nil
	case c.proceeds > 1:
		return fmt.Errorf("network interceptor %s %w", c.name(), errProceedOnce)
	case !sameServer(req, c.request):
		return fmt.Errorf("network interceptor %s must keep host and port: it changed %q to %q", c.name(), c.request.URL.Host, req.URL.Host)
	}
	return nil
}

var errProceedOnce = errors.New("must call Proceed exactly once")

// sameServer reports whether both requests go to the same host and port. The
// scheme may differ only where the port is written out.
func sameServer(a, b *http.Request) bool {
	if a.URL.Host == b.URL.Host && a.URL.Scheme == b.URL.Scheme {
		return true
	}
	x, err := route.NewAddress(a.URL, nil)
	if err != nil {
		return false
	}
	y, err := route.NewAddress(b.URL, nil)
	return err == nil && x.Host == y.Host && x.Port == y.Port
}

// returned checks what the interceptor of this link returned.
func (c *RealInterceptorChain) returned(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if resp == nil {
		return nil, fmt.Errorf("interceptor %s returned neither a response nor an error", c.name())
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	if c.run.network(c.index) && c.proceeds != 1 {
		resp.Body.Close()
		return nil, fmt.Errorf("network interceptor %s %w", c.name(), errProceedOnce)
	}
	if resp.Request == nil {
		c.complete(resp)
	}
	return resp, nil
}

// complete fills in what an interceptor left out of an answer of its own.
func (c *RealInterceptorChain) complete(resp *http.Response) {
	resp.Request = c.request
	if resp.Status == "" {
		resp.Status = strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	}
	if resp.Proto == "" && resp.ProtoMajor == 0 {
		resp.Proto, resp.ProtoMajor, resp.ProtoMinor = "HTTP/1.1", 1, 1
	}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
}
