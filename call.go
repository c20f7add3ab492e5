package catena

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/internal/linked"
)

// Call is one request and, in the end, one response, with everything that is
// tried and followed in between. NewCall makes it; it runs once. Its methods may
// be called from any goroutine.
type Call struct {
	// Immutable after NewCall.
	id       uint64
	client   *Client
	request  *http.Request // the application's
	opts     []CallOption
	config   *chain.Config
	timeout  time.Duration // of the call; 0: none
	listener event.Listener
	invalid  error // an option that makes no sense
	plain    bool  // a RoundTripper's: see Client.RoundTripper

	// Shared with whoever cancels.
	life     lifetime.Context
	executed atomic.Bool
	canceled atomic.Bool // by Cancel or by the call timeout
	lapsed   atomic.Bool // the context had ended when the call did; set before ended
	ended    atomic.Bool

	begun   linked.Node[Call] // guarded by the registry
	running linked.Node[Call] // guarded by the Dispatcher

	// Of the goroutine that runs the call, then of the body's reader.
	early      error        // of a listener that panicked before the call ran
	sent       http.Request // request with the call's context and body
	body       *lifetime.Body
	run        chain.Run
	allocation connection.StreamAllocation
	outer      *callBody // what the application reads, where it is not the connection's own
}

var _ event.Call = (*Call)(nil)

var lastCallID atomic.Uint64

// NewCall prepares a call of req, which is not changed and, body apart, not to be
// changed before the call is over. An option that makes no sense is an error of
// Execute.
func (c *Client) NewCall(req *http.Request, opts ...CallOption) *Call {
	return c.newCall(req, opts, false)
}

func (c *Client) newCall(req *http.Request, opts []CallOption, plain bool) *Call {
	call := &Call{
		id:      lastCallID.Add(1),
		client:  c,
		request: req,
		opts:    opts,
		plain:   plain,
		config:  &c.settings.config,
		timeout: c.settings.callTimeout,
	}
	if plain {
		call.config = &c.roundTripping
	}
	var listeners []event.Listener
	if len(opts) > 0 {
		listeners = call.configure()
	}
	ctx := context.Background()
	if req != nil {
		ctx = req.Context()
	}
	call.life.Init(untraced(ctx), &call.run.Infos)
	call.listener = c.listenerFor(call, listeners, ctx)
	call.allocation.Init(call, (*owner)(call), call.listener, &call.life, c.database)
	return call
}

// configure applies the call's own options and returns the listeners among them.
func (c *Call) configure() []event.Listener {
	s := settings{config: *c.config, callTimeout: c.timeout}
	c.invalid = applyAll(&s, c.opts)
	c.config, c.timeout = &s.config, s.callTimeout
	return s.listeners
}

// ID is unique among the calls of the process.
func (c *Call) ID() uint64 { return c.id }

// Request is the request the call was made with. Read-only.
func (c *Call) Request() *http.Request { return c.request }

// RedactedHeader is a copy of h with secret values masked.
func (c *Call) RedactedHeader(h http.Header) http.Header { return c.client.secrets.Header(h) }

// RedactedURL is u without its password and with secret parameters masked.
func (c *Call) RedactedURL(u *url.URL) string { return c.client.secrets.URL(u) }

// Clone is the same call, not yet executed, with a body at its start. Where the
// body can't be sent again, Execute says so. It has a listener of the client's
// factory of its own.
func (c *Call) Clone() *Call {
	req := c.request
	var err error
	if req != nil && req.Body != nil && req.Body != http.NoBody {
		again := *req
		if req.GetBody == nil {
			again.Body = http.NoBody
			err = errors.New("clone: the request body can't be sent again: the request has no GetBody")
		} else if again.Body, err = req.GetBody(); err != nil {
			again.Body = http.NoBody
		}
		req = &again
	}
	clone := c.client.newCall(req, c.opts, c.plain)
	if clone.invalid == nil {
		clone.invalid = err
	}
	return clone
}

// Cancel ends the call with context.Canceled, wherever it is: what it waits for
// is interrupted and its request body closed. It may be called any number of
// times, before Execute and after the call is over too.
func (c *Call) Cancel() { c.cancel(context.Canceled) }

func (c *Call) cancel(cause error) {
	if c.canceled.Swap(true) {
		return
	}
	c.life.CancelFor(cause)
	c.listener.Canceled(c)
}

// expired is what the call timeout does.
func (c *Call) expired() {
	if !c.canceled.Swap(true) {
		c.listener.Canceled(c)
	}
}

// IsCanceled reports whether Cancel was called, the call timeout passed, or the
// request's context ended before the call did.
func (c *Call) IsCanceled() bool {
	over := c.ended.Load()
	return c.canceled.Load() || c.lapsed.Load() || !over && c.life.Err() != nil
}

// Execute runs the call on this goroutine and returns its response, whose body
// is the caller's to close, or a *CallError. The second time it returns
// ErrAlreadyExecuted.
func (c *Call) Execute() (*http.Response, error) {
	if c.unmade() {
		return nil, errUnmade
	}
	if c.executed.Swap(true) {
		return nil, c.refused(ErrAlreadyExecuted)
	}
	d := c.client.settings.dispatcher
	d.started(c)
	defer d.finished(c)
	c.listener.CallStart(c)
	if !c.client.calls.add(c) {
		return nil, c.fail(ErrClosed)
	}
	c.life.Watch()
	return c.proceed(c.respond)
}

// unmade reports whether the call, or its client, is a zero value.
func (c *Call) unmade() bool { return c.client == nil || c.client.calls == nil }

// refused is err for a call that does not begin.
func (c *Call) refused(err error) error { return chain.NewCallError(c, nil, err) }

// proceed sends the request through the chain. A panic in it goes on when
// everything is released and the events have ended.
func (c *Call) proceed(respond func() (*http.Response, error)) (*http.Response, error) {
	if c.timeout > 0 {
		c.life.StartTimeout(c.timeout, c.expired)
	}
	returned := false
	defer func() {
		if !returned {
			c.fail(errPanicked)
		}
	}()
	resp, err := respond()
	if err == nil {
		if cause := lifetime.Cause(&c.life); cause != nil {
			resp.Body.Close()
			err = cause
		}
	}
	if err != nil {
		resp, err = nil, c.fail(err)
	} else {
		resp = c.succeed(resp)
	}
	returned = true
	return resp, err
}

var errPanicked = errors.New("the call panicked")

// respond is the chain's answer.
func (c *Call) respond() (*http.Response, error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}
	c.run.Interceptors = c.client.links
	c.run.Application = len(c.client.settings.application)
	c.run.Call = c
	c.run.Listener = c.listener
	c.run.Allocation = &c.allocation
	c.run.Secrets = c.client.secrets
	return c.run.Start(&c.sent, c.config)
}

// prepare makes the request that goes through the chain: the application's with
// the call's context, and a body that is closed once.
func (c *Call) prepare() error {
	req := c.request
	switch {
	case c.invalid != nil:
		return c.invalid
	case req == nil:
		return errors.New("the request is nil")
	case req.URL == nil:
		return errors.New("the request has no URL")
	}
	c.sent = *req.WithContext(&c.life)
	c.sent.Response = nil
	if c.body = bodyOf(req); c.body != nil {
		c.sent.Body = c.body
	}
	if c.sent.Header == nil {
		c.sent.Header = http.Header{}
	}
	return lifetime.Cause(&c.life)
}

// bodyOf is req's body, closed at most once; nil where there is none.
func bodyOf(req *http.Request) *lifetime.Body {
	if req == nil || req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	return lifetime.OnceBody(req.Body)
}

func (c *Call) closeBody() {
	if c.body != nil {
		c.body.Close()
	}
}

// fail ends the call with err, as the application gets it.
func (c *Call) fail(err error) error {
	if c.body == nil {
		c.body = bodyOf(c.request)
	}
	c.closeBody()
	c.allocation.Abort()
	err = c.failure(err)
	c.end(err)
	return err
}

// succeed hands over a response. The call ends with its body, at once where
// there is none left on a connection.
func (c *Call) succeed(resp *http.Response) *http.Response {
	if !c.allocation.Uploading() {
		c.closeBody()
	}
	// A 101 may be another client's, which an interceptor asked.
	switched := resp.StatusCode == http.StatusSwitchingProtocols || c.allocation.Upgraded()
	if switched {
		c.life.StopTimeout()
	}
	if c.plain {
		resp.Request = c.request
	}
	switch {
	case c.allocation.Owns(resp.Body):
	case resp.Body == http.NoBody:
		if c.allocation.Uploading() {
			// Nobody can close a body that is not there: the upload ends here.
			c.allocation.Drop()
		} else if c.allocation.Open() {
			c.client.settings.logger.Warn("an interceptor replaced a response body without closing it: its connection is given up",
				zap.Uint64("call", c.id))
			c.allocation.Drop()
		}
	default:
		c.outer = &callBody{call: c, body: resp.Body, switched: switched}
		resp.Body = c.outer.public()
	}
	open := c.allocation.Open()
	c.allocation.Settle()
	if c.outer != nil && !open {
		c.announceEnd(nil)
	}
	return resp
}

// owner is a call as the engine sees it, with methods that are not the
// application's to call.
type owner Call

var _ connection.Owner = (*owner)(nil)

// BodyFailed is err for the one who reads the response's body.
func (o *owner) BodyFailed(err error) error { return (*Call)(o).failure(err) }

// Released is told that the connection was let go of for good.
func (o *owner) Released(err error) {
	if o.outer == nil {
		(*Call)(o).end(err)
	}
}

// failure is err as the application gets it.
func (c *Call) failure(err error) error {
	return chain.NewCallError(c, c.allocation.Attempts(), err)
}

// end is the call's end: the last event, and nothing of it is left.
func (c *Call) end(err error) {
	defer c.closeBody()
	defer c.life.Finish()
	c.announceEnd(err)
}

// announceEnd sends the last event, once, and lets go of the client.
func (c *Call) announceEnd(err error) {
	if !c.ended.Load() && c.life.Err() != nil {
		c.lapsed.Store(true)
	}
	if c.ended.Swap(true) {
		return
	}
	defer c.client.calls.remove(c)
	if err != nil {
		c.listener.CallFailed(c, err)
	} else {
		c.listener.CallEnd(c)
	}
}
