package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// flags are all options, in the order of the help.
var flags = []flag{
	{long: "request", short: 'X', value: "METHOD", help: "method of the request",
		set: func(o *options, v string) error { o.method = v; return nonEmpty(v) }},
	{long: "data", short: 'd', value: "DATA", help: "POST DATA as a form; @FILE and @- (standard input) are read, without line ends; several are joined by &",
		set: func(o *options, v string) error { return o.addData(v, true) }},
	{long: "data-binary", value: "DATA", help: "as -d, but files are sent as they are",
		set: func(o *options, v string) error { return o.addData(v, false) }},
	{long: "data-raw", value: "DATA", help: "as -d, but @ has no meaning",
		set: func(o *options, v string) error { o.data = append(o.data, data{text: v}); return nil }},
	{long: "get", short: 'G', help: "GET, with the data in the URL's query",
		turn: func(o *options, on bool) { o.asQuery = on }},
	{long: "upload-file", short: 'T', value: "FILE", help: "PUT FILE, - is standard input; a URL that ends in / gets its name",
		set: func(o *options, v string) error { o.upload = v; return nonEmpty(v) }},
	{long: "header", short: 'H', value: "FIELD", help: `"Name: value"; "Name:" leaves a field out, "Name;" sends it empty`,
		set: func(o *options, v string) error { return addField(&o.headers, v) }},
	{long: "user-agent", short: 'A', value: "NAME", help: `User-Agent; "" sends none`,
		set: func(o *options, v string) error { o.userAgent = &v; return nil }},
	{long: "referer", short: 'e', value: "URL", help: "Referer",
		set: func(o *options, v string) error { o.referer = v; return nil }},
	{long: "user", short: 'u', value: "USER:PASSWORD", help: "credentials for the URL's own host, and no other",
		set: func(o *options, v string) error { o.user = v; return nonEmpty(v) }},
	{long: "basic", help: "authenticate by Basic: the default, and sent at once where it is the only one",
		turn: func(o *options, on bool) { o.schemes.basic = on }},
	{long: "digest", help: "authenticate by Digest, when the server asks",
		turn: func(o *options, on bool) { o.schemes.digest = on }},
	{long: "anyauth", help: "authenticate by the stronger of Digest and Basic that the server offers",
		turn: func(o *options, on bool) { o.schemes = schemes{on, on} }},
	{long: "netrc", short: 'n', help: "credentials from ~/.netrc, for hosts without others",
		turn: func(o *options, on bool) { o.netrc = on }},
	{long: "netrc-optional", help: "the same, if there is such a file",
		turn: func(o *options, on bool) { o.netrcOptional = on }},
	{long: "netrc-file", value: "FILE", help: "the same, from FILE",
		set: func(o *options, v string) error { o.netrcFile = v; return nonEmpty(v) }},
	{long: "head", short: 'I', help: "HEAD, and print the heads of the responses",
		turn: func(o *options, on bool) { o.head = on }},

	{long: "include", short: 'i', help: "print the heads of the responses too, of every hop",
		turn: func(o *options, on bool) { o.include = on }},
	{long: "output", short: 'o', value: "FILE", help: "write the body to FILE, - is standard output; the nth is the nth URL's",
		set: func(o *options, v string) error { o.outputs = append(o.outputs, output{name: v}); return nonEmpty(v) }},
	{long: "remote-name", short: 'O', help: "write the body to a file in this folder, named by the URL's last segment",
		turn: func(o *options, on bool) {
			if on {
				o.outputs = append(o.outputs, output{remote: true})
			}
		}},
	{long: "fail", short: 'f', help: "a status of 400 and above is an error without output",
		turn: func(o *options, on bool) { o.fail = on }},
	{long: "compressed", help: "ask for gzip and decode it",
		turn: func(o *options, on bool) { o.compressed = on }},
	{long: "silent", short: 's', help: "no progress, no errors",
		turn: func(o *options, on bool) { o.silent = on }},
	{long: "show-error", short: 'S', help: "errors, even with -s",
		turn: func(o *options, on bool) { o.showError = on }},
	{long: "verbose", short: 'v', help: "print all heads on the wire, secrets masked; of a failure, its tree of attempts",
		turn: func(o *options, on bool) { o.verbose = on }},
	{long: "trace", help: "print the timeline of each call: its events, with durations and reasons",
		turn: func(o *options, on bool) { o.trace = on }},

	{long: "location", short: 'L', help: "follow redirects: the default here, unlike curl's",
		turn: func(o *options, on bool) { o.follow = on }},
	{long: "follow", help: "the same; --no-follow turns it off",
		turn: func(o *options, on bool) { o.follow = on }},
	{long: "max-redirs", value: "N", help: "follow N redirects at most, -1 is no limit; default 20",
		set: setMaxRedirects},
	{long: "retry-policy", value: "POLICY", help: "safe (default): send again what can't be acted on twice; okhttp: a POST like a GET",
		set: setRetryPolicy},
	{long: "connect-timeout", value: "TIME", help: "bound each step of connecting; default 10",
		set: func(o *options, v string) (err error) { o.connectTimeout, err = seconds(v); return err }},
	{long: "read-timeout", value: "TIME", help: "bound each wait for data from the server; default 10",
		set: func(o *options, v string) (err error) { o.readTimeout, err = seconds(v); return err }},
	{long: "write-timeout", value: "TIME", help: "bound each wait of a write; default 10",
		set: func(o *options, v string) (err error) { o.writeTimeout, err = seconds(v); return err }},
	{long: "call-timeout", value: "TIME", help: "bound the call as a whole; default none",
		set: setCallTimeout},
	{long: "max-time", short: 'm', value: "TIME", help: "the same", set: setCallTimeout},

	{long: "http1.1", help: "HTTP/1.1 only",
		turn: protocols(route.HTTP1)},
	{long: "http2", help: "HTTP/2 where the server offers it by TLS: the default",
		turn: protocols(route.HTTP2, route.HTTP1)},
	{long: "http2-prior-knowledge", help: "HTTP/2 without asking, for http URLs only",
		turn: protocols(route.H2C)},
	{long: "insecure", short: 'k', help: "trust any certificate",
		turn: func(o *options, on bool) { o.insecure = on }},
	{long: "cacert", value: "FILE", help: "trust the certificates in FILE (PEM) instead of the system's",
		set: func(o *options, v string) error { o.caFile = v; return nonEmpty(v) }},
	{long: "resolve", value: "HOST:PORT:ADDR[,ADDR]", help: "addresses to use for a host and port, IPv6 ones in brackets; * is any host",
		set: func(o *options, v string) error { return o.resolve.add(v) }},
	{long: "proxy", short: 'x', value: "[SCHEME://][USER:PASSWORD@]HOST[:PORT]", help: `proxy: http (without a scheme), https, socks4, socks4a, socks5, socks5h; "" is none; default: the environment's`,
		set: setProxy},
	{long: "proxy-user", short: 'U', value: "USER:PASSWORD", help: "credentials for the proxy, percent-encoded, instead of those in its address",
		set: func(o *options, v string) (err error) {
			if o.proxyUser, err = proxyUser(v); err == nil {
				err = nonEmpty(v)
			}
			return err
		}},
	{long: "proxy-basic", help: "authenticate by Basic with the proxy: the default",
		turn: func(o *options, on bool) { o.proxySchemes.basic = on }},
	{long: "proxy-digest", help: "authenticate by Digest with an http or https proxy, when it asks",
		turn: func(o *options, on bool) { o.proxySchemes.digest = on }},
	{long: "proxy-anyauth", help: "authenticate by the stronger of Digest and Basic that the proxy offers",
		turn: func(o *options, on bool) { o.proxySchemes = schemes{on, on} }},
	{long: "proxy-header", value: "FIELD", help: "as -H, for an http or https proxy only",
		set: func(o *options, v string) error { return addField(&o.proxyHeaders, v) }},
	{long: "proxy-insecure", help: "trust any certificate of an https proxy",
		turn: func(o *options, on bool) { o.proxyInsecure = on }},
	{long: "proxy-cacert", value: "FILE", help: "trust the certificates in FILE (PEM) for an https proxy, instead of the system's",
		set: func(o *options, v string) error { o.proxyCAFile = v; return nonEmpty(v) }},
	{long: "noproxy", value: "LIST", help: "hosts, by commas, that are reached without a proxy, * is any; instead of NO_PROXY",
		set: func(o *options, v string) error { o.noProxy = &v; return nil }},

	{long: "help", short: 'h', help: "print this",
		turn: func(o *options, on bool) { o.help = on }},
	{long: "version", short: 'V', help: "print the version",
		turn: func(o *options, on bool) { o.version = on }},
}

func nonEmpty(v string) error {
	if v == "" {
		return errors.New("the value is empty")
	}
	return nil
}

func protocols(names ...string) func(*options, bool) {
	return func(o *options, on bool) {
		o.protocols = nil
		if on {
			o.protocols = names
		}
	}
}

func setCallTimeout(o *options, v string) (err error) {
	o.callTimeout, err = seconds(v)
	return err
}

func setMaxRedirects(o *options, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < -1 {
		return fmt.Errorf("%q is no number of redirects", v)
	}
	if n == -1 {
		n = math.MaxInt
	}
	o.maxRedirects = &n
	return nil
}

func setRetryPolicy(o *options, v string) error {
	for _, p := range []chain.RetryPolicy{chain.RetrySafe, chain.RetryLikeOkHttp} {
		if v == p.String() {
			o.retryPolicy = p
			return nil
		}
	}
	return fmt.Errorf("%q is none of safe and okhttp", v)
}

func setProxy(o *options, v string) error {
	o.proxy = &proxy.Proxy{}
	if v == "" {
		return nil
	}
	p, err := proxy.Parse(v)
	o.proxy = &p
	return err
}
