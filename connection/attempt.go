package connection

import (
	"time"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// Attempt is one failed try of a call: to connect by a route, or to exchange a
// request for a response on a connection.
type Attempt struct {
	// Addr is what was dialed, "192.0.2.1:443"; a host without port where its
	// lookup failed; "" where no route was reached.
	Addr string
	// Proxy is the proxy on the way, without its password; zero: direct.
	Proxy proxy.Proxy
	// Step is where the try failed.
	Step event.Step
	// Reused is true where the connection had carried an exchange before.
	Reused bool
	// Written is true where the peer may have seen something of the request.
	Written bool
	// Retried is true where another try followed.
	Retried bool
	// Duration is how long the try took.
	Duration time.Duration
	// Why is the reason of Retried.
	Why event.Reason
	// Err is what the try failed with.
	Err error
}
