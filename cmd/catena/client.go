package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

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
	if o.protocols != nil {
		opts = append(opts, catena.WithProtocols(o.protocols...))
	}
	if o.verbose {
		opts = append(opts, catena.WithNetworkInterceptor(chain.InterceptorFunc(c.showWire)))
	}
	config, err := o.tlsConfig()
	if err != nil {
		return nil, err
	}
	opts = append(opts, catena.WithTLSConfig(config))
	return catena.New(append(opts, o.reach()...)...)
}

// reach is how hosts are found: proxies and --resolve.
func (o *options) reach() []catena.Option {
	selector := proxy.FromEnvironment()
	if o.proxy != nil {
		selector = proxy.Fixed(*o.proxy)
	}
	if len(o.resolve) == 0 {
		return []catena.Option{catena.WithProxySelector(selector)}
	}
	r := &resolver{overrides: o.resolve, dns: net.DefaultResolver, selector: selector}
	return []catena.Option{catena.WithProxySelector(r), catena.WithDNS(r)}
}

func (o *options) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: o.insecure}
	if o.caFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(o.caFile)
	if err != nil {
		return nil, fail(exitCAFile, err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fail(exitCAFile, fmt.Errorf("%s: %w", o.caFile, errors.New("it has no certificate in PEM")))
	}
	return config, nil
}
