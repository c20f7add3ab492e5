package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// ErrUnsupportedRoute is what a route fails with that needs a part this version
// does not have: a tunnel, a TLS or a SOCKS proxy. It is never replaced by a
// direct connection.
var ErrUnsupportedRoute = errors.New("not supported by this version")

// dialer opens one connection by one route, step by step.
type dialer struct {
	route    *route.Route
	terms    Terms // of the exchange that needs the connection
	call     event.Call
	listener event.Listener
	pool     *Pool

	step    event.Step // the one under way, for the error
	socket  net.Conn   // opened; closed where connecting fails
	conn    *RealConnection
	shaking bool // SecureConnectStart was sent, its end was not
	stands  bool // it was announced, or is being
	ended   bool // ConnectEnd was sent
}

// connect opens the connection: TCP, TLS, protocol. On failure nothing is left
// open and d.step tells where it failed.
func (d *dialer) connect(ctx context.Context) (*RealConnection, error) {
	addr, p := d.route.SocketAddr(), d.route.Shown
	returned := false
	defer func() {
		if !returned {
			d.panicked(addr, p)
		}
	}()
	d.listener.ConnectStart(d.call, addr, p)
	err := d.steps(ctx, addr)
	if err != nil {
		d.closeSocket()
		err = d.explain(ctx, err)
		returned = true
		d.listener.ConnectFailed(d.call, addr, p, "", err)
		return nil, err
	}
	d.stands = true
	d.conn.observer.connected(d.conn)
	d.ended = true
	d.listener.ConnectEnd(d.call, addr, p, d.conn.protocol)
	returned = true
	return d.conn, nil
}

var errConnectPanicked = errors.New("the application's code panicked while a connection was made")

// panicked leaves nothing behind where a verifier or a listener panics: no socket,
// and no event without its end.
func (d *dialer) panicked(addr string, p proxy.Proxy) {
	if !d.ended {
		defer d.listener.ConnectFailed(d.call, addr, p, "", errConnectPanicked)
	}
	if d.stands {
		defer d.conn.close(event.ReasonConnectFailed)
		d.conn.observer.noNewExchanges(d.conn, event.ReasonConnectFailed)
		return
	}
	d.closeSocket()
	if d.shaking {
		d.listener.SecureConnectEnd(d.call, nil, errConnectPanicked)
	}
}

func (d *dialer) closeSocket() {
	if d.socket != nil {
		d.socket.Close()
	}
}

func (d *dialer) steps(ctx context.Context, addr string) error {
	if err := d.supported(); err != nil {
		d.step = event.StepProxy
		return err
	}
	d.step = event.StepConnect
	conn, err := d.openSocket(ctx, addr)
	if err != nil {
		return err
	}
	d.socket = conn
	d.conn = &RealConnection{
		id:       lastConnectionID.Add(1),
		route:    d.route,
		socket:   newSocket(conn),
		protocol: route.HTTP1,
		pool:     d.pool,
		address:  d.route.Address,
		observer: newObserver(d.route.Address.Network.ConnectionListener),
	}
	d.conn.through = d.conn.socket
	if d.route.Address.Secure() {
		d.step = event.StepTLS
		if err := d.handshake(ctx); err != nil {
			return err
		}
	}
	return d.speak()
}

func (d *dialer) supported() error {
	network := d.route.Address.Network
	switch {
	case d.route.Address.Secure() && network.PriorKnowledge():
		return fmt.Errorf("%w: protocol %q with an https URL: prior knowledge excludes TLS", ErrUnsupportedRoute, route.H2C)
	case d.route.Proxy.IsDirect():
		return nil
	case d.route.Proxy.Type != proxy.HTTP:
		return fmt.Errorf("%w: proxy %s of type %s", ErrUnsupportedRoute, d.route.Shown, d.route.Proxy.Type)
	case d.route.RequiresTunnel():
		return fmt.Errorf("%w: a tunnel through proxy %s", ErrUnsupportedRoute, d.route.Shown)
	}
	return nil
}

// within bounds a step by the connect timeout.
func (d *dialer) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.terms.ConnectTimeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d.terms.ConnectTimeout)
}

// explain says what ended a step: the call's end, our timeout, or err itself.
func (d *dialer) explain(ctx context.Context, err error) error {
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		<-ctx.Done() // a socket's own timer was faster
	}
	if cause := lifetime.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, context.DeadlineExceeded) && d.terms.ConnectTimeout > 0 {
		return &event.TimeoutError{Step: d.step, After: d.terms.ConnectTimeout}
	}
	return err
}

// openSocket returns at ctx's end even if a DialContext of the user's does not: a
// connection that comes late is closed.
func (d *dialer) openSocket(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	network := d.route.Address.Network
	if network.OwnDialer() {
		return network.DialContext(ctx, "tcp", addr)
	}
	type result struct {
		conn net.Conn
		err  error
	}
	results, abandoned := make(chan result), make(chan struct{})
	defer close(abandoned)
	go func() { // ends when DialContext returns
		var conn net.Conn
		lifetime.Run(func() (err error) {
			conn, err = network.DialContext(ctx, "tcp", addr)
			return err
		}, func(err error) {
			select {
			case results <- result{conn, err}:
			case <-abandoned:
				if conn != nil {
					conn.Close()
				}
			}
		})
	}()
	select {
	case r := <-results:
		if r.err == nil && r.conn == nil {
			return nil, errors.New("DialContext returned neither a connection nor an error")
		}
		return r.conn, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *dialer) handshake(ctx context.Context) error {
	bounded, cancel := d.within(ctx)
	defer cancel()
	address := d.route.Address
	d.shaking = true
	d.listener.SecureConnectStart(d.call)
	conn := tls.Client(http1.NoteEnd(d.conn.socket), address.Network.TLSConfigFor(address))
	err := conn.HandshakeContext(bounded)
	if err != nil {
		err = d.explain(ctx, plainTLS(err))
		d.shaking = false
		d.listener.SecureConnectEnd(d.call, nil, err)
		return err
	}
	state := conn.ConnectionState()
	address.Network.CompleteState(&state)
	d.conn.through, d.conn.state = conn, &state
	d.shaking = false
	d.listener.SecureConnectEnd(d.call, &state, nil)
	return nil
}

// plainTLS recognises a server that does not speak TLS.
func plainTLS(err error) error {
	var header tls.RecordHeaderError
	if errors.As(err, &header) && string(header.RecordHeader[:5]) == "HTTP/" {
		return fmt.Errorf("the server speaks HTTP without TLS on this port: %w", err)
	}
	return err
}

// speak settles the protocol and starts it.
func (d *dialer) speak() error {
	c, network := d.conn, d.route.Address.Network
	secure := c.state != nil
	if secure {
		switch c.state.NegotiatedProtocol {
		case "", route.HTTP1, "http/1.0":
		case route.HTTP2:
			c.protocol = route.HTTP2
		default:
			return fmt.Errorf("the server chose protocol %q, which was not offered", c.state.NegotiatedProtocol)
		}
	} else if network.PriorKnowledge() {
		c.protocol = route.H2C
	}
	stream := c.through
	if !secure {
		stream = c.socket.stream()
	}
	if c.protocol == route.HTTP1 {
		c.http1 = http1.NewConn(stream, secure)
		return nil
	}
	d.step = event.StepConnect
	var err error
	c.http2, err = http2.NewConn(stream, http2.Options{
		Secure:          secure,
		PingInterval:    network.PingInterval,
		SettingsTimeout: orNone(d.terms.ConnectTimeout),
		WriteTimeout:    orNone(d.terms.Exchange.WriteTimeout),
		MaxHeaderBytes:  d.terms.Exchange.MaxHeaderBytes,
		MaxHeaderFields: d.terms.Exchange.MaxHeaderFields,
	})
	if err != nil {
		return fmt.Errorf("start HTTP/2: %w", err)
	}
	return nil
}

// orNone is a timeout as the codec's options have it, where 0 is a default and
// less than 0 is none.
func orNone(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return -1
	}
	return timeout
}
