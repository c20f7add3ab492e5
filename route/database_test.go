package route_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

func TestDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d route.Database
		n := &route.Network{}
		a := route.Address{Scheme: "http", Host: "a.test", Port: 80, Network: n}
		r := route.Route{Address: a, SocketHost: "192.0.2.1", SocketPort: 80}
		if d.ShouldPostpone(&r) {
			t.Error("a route nobody knows is postponed")
		}
		d.Failed(&r)

		others := map[string]route.Route{"socket": r, "port": r, "proxy": r, "address": r, "network": r}
		change := func(name string, f func(*route.Route)) {
			o := others[name]
			f(&o)
			others[name] = o
		}
		change("socket", func(r *route.Route) { r.SocketHost = "192.0.2.2" })
		change("port", func(r *route.Route) { r.SocketPort = 81 })
		change("proxy", func(r *route.Route) { r.Proxy = proxy.Proxy{Type: proxy.HTTP, Host: "192.0.2.1", Port: 80} })
		change("address", func(r *route.Route) { r.Address.Host = "b.test" })
		change("network", func(r *route.Route) { r.Address.Network = n.With(nil) })
		for name, o := range others {
			if d.ShouldPostpone(&o) {
				t.Errorf("a route that differs in %s is postponed", name)
			}
		}
		same := r
		same.Postponed = true
		if !d.ShouldPostpone(&same) || d.Len() != 1 {
			t.Error("the failed route is not postponed")
		}
		d.Connected(&same)
		if d.ShouldPostpone(&r) || d.Len() != 0 {
			t.Error("a route that connected is postponed")
		}

		d.Failed(&r)
		time.Sleep(5 * time.Minute)
		if !d.ShouldPostpone(&r) {
			t.Error("forgotten early")
		}
		time.Sleep(time.Second)
		if d.ShouldPostpone(&r) {
			t.Error("a failure is remembered for more than five minutes")
		}
	})
}

// A server that makes clients meet failing routes costs bounded memory, and the
// oldest failures go first.
func TestDatabaseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d route.Database
		make := func(i int) *route.Route {
			a := route.Address{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}
			return &route.Route{Address: a, SocketHost: "192.0.2.1", SocketPort: 80}
		}
		const limit = 1024
		for i := range limit {
			d.Failed(make(i))
			time.Sleep(time.Millisecond)
		}
		d.Failed(make(limit - 1)) // known: makes no other one go
		if !d.ShouldPostpone(make(0)) {
			t.Error("a failure that was known already pushed another one out")
		}
		time.Sleep(time.Millisecond)
		d.Failed(make(limit))
		if d.Len() != limit {
			t.Errorf("%d failures are remembered", d.Len())
		}
		if d.ShouldPostpone(make(0)) || !d.ShouldPostpone(make(1)) || !d.ShouldPostpone(make(limit)) {
			t.Error("it was not the oldest that went")
		}
	})
}

// A proxy that can't be connected to is last for all that leads through it, until
// something does connect by that address of it.
func TestUnreachableProxy(t *testing.T) {
	n := &route.Network{}
	through := func(host, dial string, n *route.Network) *route.Route {
		return &route.Route{
			Address: route.Address{Scheme: "https", Host: host, Port: 443, Network: n}, SocketHost: host, SocketPort: 443,
			Proxy: proxy.Proxy{Type: proxy.SOCKS5, Host: "p.test"}, SOCKSHost: dial,
		}
	}
	var d route.Database
	d.Unreachable(through("a.test", "192.0.2.1", n))
	if !d.ShouldPostpone(through("a.test", "192.0.2.1", n)) || !d.ShouldPostpone(through("b.test", "192.0.2.1", n)) {
		t.Error("a route through the proxy is not postponed")
	}
	if d.ShouldPostpone(through("a.test", "192.0.2.2", n)) || d.ShouldPostpone(through("a.test", "192.0.2.1", n.With(nil))) {
		t.Error("another address, or another network, is postponed")
	}
	d.Connected(through("b.test", "192.0.2.1", n))
	if d.ShouldPostpone(through("a.test", "192.0.2.1", n)) || d.Len() != 0 {
		t.Error("the proxy is not forgiven")
	}

	direct := &route.Route{Address: route.Address{Scheme: "http", Host: "a.test", Port: 80, Network: n}, SocketHost: "192.0.2.1", SocketPort: 80}
	d.Unreachable(direct)
	other := *direct
	other.Address.Host = "b.test"
	if !d.ShouldPostpone(direct) || d.ShouldPostpone(&other) {
		t.Error("without a proxy a failure is the route's alone")
	}
}
