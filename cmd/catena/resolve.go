package main

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// overrides are the addresses that --resolve gives for hosts and ports.
type overrides map[endpoint][]netip.Addr

type endpoint struct {
	host string // in its canonical form; "*" is any
	port int
}

var errResolve = errors.New("want HOST:PORT:ADDRESS[,ADDRESS...], IPv6 addresses in brackets")

// add reads one --resolve. Of two for the same host and port the later counts.
func (r *overrides) add(v string) error {
	v = strings.TrimPrefix(v, "+") // curl's mark of an entry that expires
	host, rest, ok := cutHost(v)
	portText, list, ok2 := strings.Cut(rest, ":")
	port, err := strconv.ParseUint(portText, 10, 16)
	if !ok || !ok2 || err != nil || port == 0 {
		return errResolve
	}
	if host != "*" {
		if host, err = route.CanonicalHost(host); err != nil {
			return err
		}
	}
	var addrs []netip.Addr
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return errResolve
		}
		addrs = append(addrs, addr)
	}
	if *r == nil {
		*r = overrides{}
	}
	(*r)[endpoint{host, int(port)}] = addrs
	return nil
}

// cutHost takes the host and the colon after it off v; an IPv6 host may be in
// brackets.
func cutHost(v string) (host, rest string, ok bool) {
	if inner, is := strings.CutPrefix(v, "["); is {
		host, rest, ok = strings.Cut(inner, "]:")
	} else {
		host, rest, ok = strings.Cut(v, ":")
	}
	return host, rest, ok && host != ""
}

func (r overrides) find(e endpoint) ([]netip.Addr, bool) {
	addrs, ok := r[e]
	if !ok {
		addrs, ok = r[endpoint{"*", e.port}]
	}
	return addrs, ok
}

// resolver applies overrides. A lookup is told a host only; the port it is for
// is known from the choice of a proxy, which comes before it. That holds as long
// as calls run one after the other, as they do here.
type resolver struct {
	overrides overrides
	dns       route.DNS
	selector  proxy.Selector

	mu    sync.Mutex     // guards ports
	ports map[string]int // of the hosts that may be looked up next
}

// LookupNetIP answers with the addresses given for the host, or asks the DNS.
func (r *resolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	port := r.ports[host]
	r.mu.Unlock()
	if addrs, ok := r.overrides.find(endpoint{host, port}); ok {
		return addrs, nil
	}
	return r.dns.LookupNetIP(ctx, network, host)
}

// Select is the selector's choice.
func (r *resolver) Select(ctx context.Context, u *url.URL) ([]proxy.Proxy, error) {
	proxies, err := r.selector.Select(ctx, u)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ports = map[string]int{u.Hostname(): portOf(u)}
	for _, p := range proxies {
		if !p.IsDirect() {
			r.ports[p.Host] = p.EffectivePort()
		}
	}
	return proxies, err
}

// ConnectFailed tells the selector.
func (r *resolver) ConnectFailed(u *url.URL, p proxy.Proxy, err error) {
	r.selector.ConnectFailed(u, p, err)
}

func portOf(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}
