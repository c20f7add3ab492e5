package interceptors

import (
	"net/http"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/route"
)

// Connect asks the call's StreamAllocation for an exchange and lets the links
// below run on it.
type Connect struct{}

// Intercept finds the connection of c.Request().
func (Connect) Intercept(c chain.Chain) (*http.Response, error) {
	link := c.(*chain.RealInterceptorChain)
	config, req := c.Config(), c.Request()
	address, err := route.NewAddress(req.URL, config.Network)
	if err != nil {
		return nil, err
	}
	x, err := link.Run().Allocation.NewExchange(address, config.Pool, req, terms(config))
	if err != nil {
		return nil, err
	}
	return link.ProceedOn(x, req)
}

func terms(c *chain.Config) connection.Terms {
	return connection.Terms{
		ConnectTimeout: c.ConnectTimeout,
		MaxInterim:     c.MaxInterimResponses,
		UserAgent:      c.UserAgent,
		Exchange: wire.Exchange{
			ReadTimeout:     c.ReadTimeout,
			WriteTimeout:    c.WriteTimeout,
			MaxHeaderBytes:  c.MaxResponseHeaderBytes,
			MaxHeaderFields: c.MaxResponseHeaderFields,
		},
	}
}
