package client

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// catenaClient is Catena with its defaults, timeouts included, but for the pool's
// size and the proxy, which is none.
type catenaClient struct {
	client *catena.Client
	pool   *connection.Pool
}

// variant is what hangs on the chain: pass-through application and network
// interceptors and a listener that does nothing.
type variant struct {
	interceptors, network int
	listener              bool
}

func newCatena(v variant) func(Config) (Client, error) {
	return func(cfg Config) (Client, error) {
		pool := connection.NewPool(connection.PoolOptions{
			MaxIdle:           cfg.Conns,
			MaxIdlePerAddress: cfg.Conns,
			KeepAlive:         time.Hour,
		})
		pass := chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) { return c.Proceed(c.Request()) })
		opts := []catena.Option{
			catena.WithPool(pool),
			catena.WithProxy(proxy.Proxy{}),
			catena.WithTLSConfig(cfg.TLS),
			catena.WithInterceptor(slices.Repeat([]chain.Interceptor{pass}, v.interceptors)...),
			catena.WithNetworkInterceptor(slices.Repeat([]chain.Interceptor{pass}, v.network)...),
		}
		switch cfg.Proto {
		case H2C:
			opts = append(opts, catena.WithProtocols("h2c"))
		case H1, H1TLS:
			opts = append(opts, catena.WithProtocols("http/1.1"))
		}
		if v.listener {
			opts = append(opts, catena.WithEventListener(event.NopListener{}))
		}
		if cfg.Addr != "" {
			opts = append(opts, catena.WithDNS(everyHostAt(cfg.Addr)))
		}
		client, err := catena.New(opts...)
		if err != nil {
			pool.Close()
			return nil, err
		}
		return &catenaClient{client, pool}, nil
	}
}

// everyHostAt resolves every name to addr's address; the port is the URL's.
func everyHostAt(addr string) route.DNS {
	ip := netip.MustParseAddrPort(addr).Addr()
	return route.DNSFunc(func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{ip}, nil
	})
}

func (c *catenaClient) Caller(op Op) (Do, error)          { return send(c.client.Do).caller(op) }
func (c *catenaClient) Open(op Op) (io.ReadCloser, error) { return send(c.client.Do).open(op) }

func (c *catenaClient) Close() {
	c.client.Close()
	c.pool.Close()
}
