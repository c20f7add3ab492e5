package chain

import (
	"net/http"

	"github.com/catena-http/catena/proxy"
)

// ProxyAuthorization is a value of the field of that name that was made for one
// proxy. The next try or the next hop may lead through another one, which must not
// see it. It is an engine part without a promise to users.
type ProxyAuthorization struct {
	Value string
	Via   proxy.Proxy
	// Ahead says that no refusal asked for it: the last link adds it to the request,
	// once the proxy is known.
	Ahead bool
}

// Strays reports whether by way of via the value in h would come to another proxy
// than the one it was made for. Of nil, none was made, nothing does.
func (p *ProxyAuthorization) Strays(h http.Header, via proxy.Proxy) bool {
	return p != nil && h.Get("Proxy-Authorization") == p.Value && !via.Equal(p.Via)
}
