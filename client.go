package catena

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/interceptors"
	"github.com/catena-http/catena/internal/redact"
	"github.com/catena-http/catena/route"
)

// Client makes calls. It keeps connections for reuse, so make one and share it;
// safe for concurrent use. New makes it; the zero Client fails every call. Close
// it to let go of its connections.
type Client struct {
	settings settings // as given, for With
	links    []chain.Interceptor
	listener event.Listener // the settings' listeners in one
	secrets  *redact.Secrets
	database *route.Database

	parent        *Client // it was derived from; nil: none
	ownsPool      bool
	ownsNetwork   bool
	closing       atomic.Bool // refuses new calls
	calls         *registry   // of the client nothing was derived for, shared with all below; nil: New did not make it
	roundTripping chain.Config
}

// New makes a client. Options that make no sense, alone or with others, are an
// error that names them.
func New(opts ...Option) (*Client, error) {
	c := &Client{database: &route.Database{}, calls: &registry{}}
	if err := c.configure(defaults(), &route.Network{}, opts); err != nil {
		return nil, err
	}
	return c, nil
}

// With makes a client with further options. It shares c's pool, dispatcher and
// memory of failed routes; and its connections, unless one of the options
// decides how servers are reached (see route.Network). It is closed with c; of a
// closed client there is none, the error is ErrClosed.
func (c *Client) With(opts ...Option) (*Client, error) {
	switch {
	case c.calls == nil:
		return nil, errUnmade.Err
	case c.refuses():
		return nil, ErrClosed
	}
	derived := &Client{database: c.database, parent: c, calls: c.calls}
	if err := derived.configure(c.settings.clone(), c.settings.config.Network, opts); err != nil {
		return nil, err
	}
	return derived, nil
}

// configure applies opts to s. network is the one to share or to derive from.
func (c *Client) configure(s settings, network *route.Network, opts []Option) error {
	if err := applyAll(&s, opts); err != nil {
		return err
	}
	c.ownsNetwork = c.parent == nil || len(s.reach) > 0
	if len(s.reach) > 0 {
		changes := s.reach
		s.reach = nil
		network = network.With(func(n *route.Network) {
			for _, change := range changes {
				change(n)
			}
		})
	}
	s.config.Network = network
	if s.config.Pool == nil {
		s.config.Pool, c.ownsPool = connection.NewPool(connection.PoolOptions{}), true
	}
	if s.dispatcher == nil {
		s.dispatcher = NewDispatcher(DispatcherOptions{})
	}
	if err := s.config.Validate(); err != nil {
		return err
	}
	c.settings = s
	c.listener = event.Join(s.listeners...)
	c.secrets = redact.New(s.secrets...)
	c.links = slices.Concat(s.application,
		[]chain.Interceptor{interceptors.RetryAndFollowUp{}, interceptors.Bridge{}, interceptors.Connect{}},
		s.network, []chain.Interceptor{interceptors.CallServer{}})
	c.roundTripping = s.config
	c.roundTripping.FollowUps = false
	return nil
}

// Do is NewCall and Execute. The response's body is the caller's to close. For
// options of this call alone, or a Call that can be canceled, use NewCall.
func (c *Client) Do(req *http.Request) (*http.Response, error) { return c.NewCall(req).Execute() }

// Pool is where the client keeps its connections.
func (c *Client) Pool() *connection.Pool { return c.settings.config.Pool }

// Dispatcher runs the client's enqueued calls.
func (c *Client) Dispatcher() *Dispatcher { return c.settings.dispatcher }

// Network decides how the client's servers are reached. Others are derived from
// it by its With, ahead of the calls that use them.
func (c *Client) Network() *route.Network { return c.settings.config.Network }

// CloseIdleConnections closes the connections of the client's pool that no call
// uses.
func (c *Client) CloseIdleConnections() { c.Pool().EvictAll() }

// Close cancels the running and queued calls of this client, and of those derived
// from it, and refuses new ones: all of them fail with ErrClosed, those that had
// begun with context.Canceled too. The pool and the dispatcher end with the client
// that made them, and with it end those of a shared pool's connections that no
// other client can use. It does not wait: what runs in code of the application's
// ends when that returns. Idempotent; the error is nil.
func (c *Client) Close() error {
	c.closing.Store(true)
	if c.calls == nil {
		return nil
	}
	// All of it may be done twice, so that nobody waits for another Close, which
	// may be this goroutine's own, and everything is done when either returns.
	for _, call := range c.calls.of(c) {
		call.cancel(closedError{})
	}
	switch {
	case c.ownsPool:
		c.Pool().Close()
	case c.ownsNetwork:
		c.Pool().EvictNetwork(c.Network())
	}
	return nil
}

// Shutdown refuses new calls, waits until those queued and running have ended,
// their bodies closed, and then closes the client. When ctx ends first it returns
// ctx's error and closes nothing; new calls stay refused, and Close or another
// Shutdown is what is left to do.
func (c *Client) Shutdown(ctx context.Context) error {
	c.closing.Store(true)
	if c.calls != nil {
		if err := c.calls.wait(ctx, c); err != nil {
			return err
		}
	}
	return c.Close()
}

// refuses reports whether the client, or one it was derived from, takes no calls.
func (c *Client) refuses() bool {
	for at := c; at != nil; at = at.parent {
		if at.closing.Load() {
			return true
		}
	}
	return false
}

// belongsTo reports whether c is of or was derived from it.
func (c *Client) belongsTo(of *Client) bool {
	for at := c; at != nil; at = at.parent {
		if at == of {
			return true
		}
	}
	return false
}

// listenerFor joins the listeners of one call.
func (c *Client) listenerFor(call *Call, more []event.Listener, ctx context.Context) event.Listener {
	var made event.Listener
	if c.settings.factory != nil {
		made = c.settings.factory(call)
	}
	trace := traceListener(ctx)
	if made == nil && trace == nil && len(more) == 0 {
		return c.listener
	}
	all := append([]event.Listener{c.listener, made}, more...)
	return event.Join(append(all, trace)...)
}
