package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/connection/http2"
)

// secureOrigin begins TLS with the origin, over whatever leads there: a socket, a
// tunnel, or a tunnel in the TLS connection of an HTTPS proxy.
func (d *dialer) secureOrigin(ctx context.Context) error {
	bounded, cancel := d.within(ctx)
	defer cancel()
	address := d.route.Address
	state, err := d.handshake(ctx, bounded, address.Network.TLSConfigFor(address), func(state *tls.ConnectionState) {
		address.Network.CompleteState(state)
	})
	d.conn.state = state
	return err
}

// secureProxy begins TLS with an HTTPS proxy, by settings of its own.
func (d *dialer) secureProxy(ctx context.Context) error {
	return d.talk(ctx, func(bounded context.Context) error {
		config := d.route.Address.Network.ProxyTLSConfigFor(d.route.Proxy)
		if _, err := d.handshake(ctx, bounded, config, func(*tls.ConnectionState) {}); err != nil {
			return fmt.Errorf("TLS with proxy %s: %w", d.route.Shown, err)
		}
		return nil
	})
}

// handshake wraps the connection in TLS. bounded is ctx with the time that the step
// has; complete makes the state what is shown of it.
func (d *dialer) handshake(ctx, bounded context.Context, config *tls.Config, complete func(*tls.ConnectionState)) (*tls.ConnectionState, error) {
	d.shaking = true
	d.listener.SecureConnectStart(d.call)
	conn := tls.Client(http1.NoteEnd(http2.Gather(d.conn.through)), config)
	err := conn.HandshakeContext(bounded)
	if err != nil {
		err = d.explain(ctx, plainTLS(err))
		d.shaking = false
		d.listener.SecureConnectEnd(d.call, nil, err)
		return nil, err
	}
	state := conn.ConnectionState()
	complete(&state)
	d.conn.through, d.secure = conn, true
	d.shaking = false
	d.listener.SecureConnectEnd(d.call, &state, nil)
	return &state, nil
}

// plainTLS recognises a server that does not speak TLS.
func plainTLS(err error) error {
	var header tls.RecordHeaderError
	if errors.As(err, &header) && string(header.RecordHeader[:5]) == "HTTP/" {
		return fmt.Errorf("the server speaks HTTP without TLS on this port: %w", err)
	}
	return err
}
