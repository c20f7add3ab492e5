package connection

import (
	"context"
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

// dialer opens one connection by one route, step by step.
type dialer struct {
	route    *route.Route
	terms    Terms // of the exchange that needs the connection
	call     event.Call
	listener event.Listener
	pool     *Pool

	step    event.Step    // the one under way, for the error
	tunnel  tunnel        // what was said about it, from one socket to the next
	talked  time.Duration // how long the talk with the proxy has taken
	foreign bool          // the error is the application's, and no other route would mend it

	// Of the socket in use.
	socket  net.Conn // opened; closed where connecting fails
	conn    *RealConnection
	secure  bool // conn.through is TLS, with the proxy or the origin
	shaking bool // SecureConnectStart was sent, its end was not
	stands  bool // it was announced, or is being
	ended   bool // ConnectEnd was sent
}

// errAnotherSocket says that the proxy wants to be asked for the tunnel again, and
// that this socket is of no more use.
var errAnotherSocket = errors.New("the tunnel needs another connection")

// connect opens the connection: TCP, what the proxy on the way wants, TLS,
// protocol. On failure nothing is left open and d.step tells where it failed.
func (d *dialer) connect(ctx context.Context) (*RealConnection, error) {
	addr, p := d.route.SocketAddr(), d.route.Shown
	returned := false
	defer func() {
		if !returned {
			d.panicked(addr, p)
		}
	}()
	err := errAnotherSocket
	for err == errAnotherSocket {
		d.ended = false
		d.listener.ConnectStart(d.call, addr, p)
		if err = d.steps(ctx); err == errAnotherSocket {
			d.closeSocket()
			d.ended = true
			d.listener.ConnectEnd(d.call, addr, p, "")
		}
	}
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
		d.socket = nil
	}
}

func (d *dialer) steps(ctx context.Context) error {
	d.step = event.StepConnect
	conn, err := d.openSocket(ctx, d.route.DialAddr())
	if err != nil {
		return err
	}
	d.socket, d.secure = conn, false
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
	if err := d.passProxy(ctx); err != nil {
		return err
	}
	if d.route.Address.Secure() {
		d.step = event.StepTLS
		if err := d.secureOrigin(ctx); err != nil {
			return err
		}
	}
	return d.speak()
}

// within bounds a step by the connect timeout.
func (d *dialer) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.terms.ConnectTimeout == 0 {
		return ctx, func() {}
	}
	return lifetime.WithTimeout(ctx, d.terms.ConnectTimeout)
}

// explain says what ended a step: the call's end, our timeout, or err itself.
func (d *dialer) explain(ctx context.Context, err error) error {
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		<-ctx.Done() // a socket's own timer was faster
	}
	if cause := lifetime.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, context.DeadlineExceeded) && d.terms.ConnectTimeout > 0 && !d.foreign {
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

// speak settles the protocol and starts it.
func (d *dialer) speak() error {
	c, network := d.conn, d.route.Address.Network
	origin := d.route.Address.Secure()
	if origin {
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
	if c.protocol == route.HTTP1 {
		c.http1 = http1.NewConn(d.stream(), d.secure)
		return nil
	}
	d.step = event.StepConnect
	var err error
	c.http2, err = http2.NewConn(d.stream(), http2.Options{
		Secure:          origin,
		PingInterval:    network.PingInterval,
		SettingsTimeout: orNone(d.terms.ConnectTimeout),
		WriteTimeout:    orNone(d.terms.Exchange.WriteTimeout),
		MaxHeaderBytes:  d.terms.Exchange.MaxHeaderBytes,
		MaxHeaderFields: d.terms.Exchange.MaxHeaderFields,
		StreamWindow:    network.HTTP2StreamWindow,
		ConnWindow:      network.HTTP2ConnectionWindow,
	})
	if err != nil {
		return fmt.Errorf("start HTTP/2: %w", err)
	}
	return nil
}

// stream is what a codec reads and writes.
func (d *dialer) stream() net.Conn {
	if d.conn.through == net.Conn(d.conn.socket) {
		return d.conn.socket.stream()
	}
	return d.conn.through
}

// orNone is a timeout as the codec's options have it, where 0 is a default and
// less than 0 is none.
func orNone(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return -1
	}
	return timeout
}
