package connection

import (
	"context"
	"time"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/proxy"
)

// passProxy settles with the proxy of the route, if there is one, that what
// follows on the socket goes to the origin; or, with one that passes requests on,
// nothing but TLS. Nothing meant for the origin is written before.
func (d *dialer) passProxy(ctx context.Context) error {
	p := d.route.Proxy
	switch p.Type {
	case proxy.SOCKS4, proxy.SOCKS4A, proxy.SOCKS5:
		return d.talk(ctx, func(bounded context.Context) error {
			return proxy.Handshake(bounded, d.socket, p, d.route.SocketAddr())
		})
	case proxy.HTTPS:
		if err := d.secureProxy(ctx); err != nil {
			return err
		}
	}
	if d.route.RequiresTunnel() {
		return d.openTunnel(ctx)
	}
	return nil
}

// talk runs a part of the talk with the proxy, which is interrupted when its time is
// up. All parts, on all sockets, have the connect timeout together: a proxy that
// answers always a little is none the better. What the application takes to answer
// a challenge lies between the parts.
func (d *dialer) talk(ctx context.Context, part func(bounded context.Context) error) error {
	d.step = event.StepProxy
	if d.terms.ConnectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = lifetime.WithTimeout(ctx, d.terms.ConnectTimeout-d.talked)
		defer cancel()
	}
	began := time.Now()
	defer func() { d.talked += time.Since(began) }()
	socket := d.socket
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	defer stop() // where part panics
	err := part(ctx)
	if !stop() {
		return ctx.Err() // what part found is of no use: the socket is closed, or about to be
	}
	return err
}
