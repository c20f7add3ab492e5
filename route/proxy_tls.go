package route

import (
	"crypto/tls"

	"github.com/catena-http/catena/proxy"
)

// completeProxyTLS is the configuration shared by all HTTPS proxies of n. Sessions
// are cached apart from those of origins: a proxy and an origin of one name are two
// servers.
func (n *Network) completeProxyTLS() *tls.Config {
	c := n.ProxyTLSConfig.Clone()
	if c == nil {
		c = &tls.Config{}
		if n.TLSConfig != nil {
			c.RootCAs, c.Time, c.KeyLogWriter = n.TLSConfig.RootCAs, n.TLSConfig.Time, n.TLSConfig.KeyLogWriter
		}
	}
	c.NextProtos = []string{HTTP1}
	if c.ClientSessionCache == nil {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(sessionCacheSize)
	}
	return c
}

// ProxyTLSConfigFor is the configuration of a handshake with the HTTPS proxy p.
// Valid after Validate.
func (n *Network) ProxyTLSConfigFor(p proxy.Proxy) *tls.Config {
	c := n.proxyTLS.Clone()
	if c.ServerName == "" {
		// A host that is no name was refused before anything was dialed.
		host, _ := CanonicalHost(p.Host)
		c.ServerName = Address{Host: host}.ServerName()
	}
	return c
}
