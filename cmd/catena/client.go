package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/proxy"
)

// newClient makes the client that all URLs share, so that they share
// connections.
func (c *command) newClient() (*catena.Client, error) {
	o := c.options
	opts := []catena.Option{
		catena.WithTransparentGzip(o.compressed),
		catena.WithFollowRedirects(o.follow),
		catena.WithRetryPolicy(o.retryPolicy),
	}
	if o.userAgent != nil {
		opts = append(opts, catena.WithUserAgent(*o.userAgent))
	}
	if o.maxRedirects != nil {
		opts = append(opts, catena.WithMaxFollowUps(*o.maxRedirects))
	}
	if o.protocols != nil {
		opts = append(opts, catena.WithProtocols(o.protocols...))
	}
	if len(o.proxyHeaders) > 0 {
		opts = append(opts, catena.WithNetworkInterceptor(chain.InterceptorFunc(c.proxyHeader)),
			catena.WithProxyConnectHeader(o.connectHeader()))
	}
	if o.verbose {
		opts = append(opts, catena.WithNetworkInterceptor(chain.InterceptorFunc(c.showWire)))
	}
	entries, err := c.readNetrc()
	if err != nil {
		return nil, err
	}
	c.logins = &logins{schemes: o.schemes, netrc: entries}
	opts = append(opts, catena.WithAuthenticator(c.logins))
	config, err := tlsConfig(o.insecure, o.caFile)
	if err != nil {
		return nil, err
	}
	proxyConfig, err := tlsConfig(o.proxyInsecure, o.proxyCAFile)
	if err != nil {
		return nil, err
	}
	opts = append(opts, catena.WithTLSConfig(config), catena.WithProxyTLSConfig(proxyConfig))
	c.proxies = o.chooseProxies()
	opts = append(opts, catena.WithProxySelector(c.proxies), catena.WithProxyAuthenticator(c.proxies))
	if len(o.resolve) > 0 {
		r := &resolver{overrides: o.resolve, dns: net.DefaultResolver, selector: c.proxies}
		opts = append(opts, catena.WithProxySelector(r), catena.WithDNS(r))
	}
	client, err := catena.New(append(opts, o.timeouts()...)...)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	return client, nil
}

func (o *options) timeouts() []catena.Option {
	var opts []catena.Option
	if o.connectTimeout != nil {
		opts = append(opts, catena.WithConnectTimeout(*o.connectTimeout))
	}
	if o.readTimeout != nil {
		opts = append(opts, catena.WithReadTimeout(*o.readTimeout))
	}
	if o.writeTimeout != nil {
		opts = append(opts, catena.WithWriteTimeout(*o.writeTimeout))
	}
	if o.callTimeout != nil {
		opts = append(opts, catena.WithCallTimeout(*o.callTimeout))
	}
	return opts
}

func (o *options) chooseProxies() *proxies {
	p := &proxies{user: o.proxyUser, schemes: o.proxySchemes, keepsHeads: o.verbose}
	p.selector = proxy.FromEnvironment()
	if o.noProxy != nil { // it takes the place of NO_PROXY
		p.direct = readHosts(*o.noProxy)
		p.selector = proxy.FromVariables(func(name string) string {
			if strings.EqualFold(name, "NO_PROXY") {
				return ""
			}
			return os.Getenv(name)
		})
	}
	if o.proxy != nil {
		p.selector = proxy.Fixed(*o.proxy)
	}
	return p
}

// tlsConfig trusts the certificates in caFile, or the system's where it is "".
func tlsConfig(insecure bool, caFile string) (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: insecure}
	if caFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fail(exitCAFile, err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fail(exitCAFile, fmt.Errorf("%s: %w", caFile, errors.New("it has no certificate in PEM")))
	}
	return config, nil
}
