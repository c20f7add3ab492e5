//go:build unix

package main

import (
	"context"
	"net/url"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/proxy"
)

// listed is a list of proxies that keeps what failed.
type listed struct {
	proxies []proxy.Proxy

	mu     sync.Mutex // guards failed
	failed []int      // ports
}

func (l *listed) Select(context.Context, *url.URL) ([]proxy.Proxy, error) { return l.proxies, nil }

func (l *listed) ConnectFailed(_ *url.URL, p proxy.Proxy, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, p.Port)
}

// failures returns what failed since it was last asked.
func (l *listed) failures() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := l.failed
	l.failed = nil
	return failed
}

// TestFailover lets squid and tinyproxy die and come back under a client that may
// use either.
func TestFailover(t *testing.T) {
	all := startProxied(t)
	for _, o := range all.all[:3] {
		t.Run(o.name, func(t *testing.T) { failsOver(t, all, o) })
	}
}

func failsOver(t *testing.T, all *proxied, o *origin) {
	first, second := startSquid(t), startTinyproxy(t, false)
	list := &listed{proxies: []proxy.Proxy{first.open(t), second.proxy(t)}}
	squid, tiny := list.proxies[0].Port, list.proxies[1].Port
	c := newPeerCaller(t, all.roots, catena.WithProxySelector(list), catena.WithProtocols(o.protocols...))
	alive := func(p *realPeer, ports, args []string) {
		t.Helper()
		if err := p.run(t, ports, args); err != nil {
			t.Fatal(err)
		}
	}
	// again calls; tried are the proxies that were connected to, or not, in order.
	again := func(what string, failed []int, tried ...int) {
		t.Helper()
		c.events.Reset()
		a := c.must("GET", o.url+"/", nil, o.protocol, "small\n")
		var ports []int
		for _, e := range c.events.Events() {
			if e.Name == "ConnectStart" {
				ports = append(ports, e.Proxy.Port)
			}
		}
		if diff := cmp.Diff(tried, ports); diff != "" {
			t.Errorf("%s: proxies tried (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(failed, list.failures()); diff != "" {
			t.Errorf("%s: proxies that failed (-want +got):\n%s", what, diff)
		}
		if info, _ := catena.InfoOf(a.Response); info.Connection.Proxy().Port != tried[len(tried)-1] {
			t.Errorf("%s: by proxy %s", what, info.Connection.Proxy())
		}
	}
	call := func(what string, failed []int, tried ...int) { // without a pooled connection
		t.Helper()
		c.client.CloseIdleConnections()
		again(what, failed, tried...)
	}
	call("both live", nil, squid)
	first.kill()
	call("the first died", []int{squid}, squid, tiny)
	call("it is remembered", nil, tiny)
	ports, args := first.command(t)
	alive(first.realPeer, ports, args)
	call("it is back, and still tried last", nil, tiny)
	second.stop()
	call("the second died", []int{tiny}, tiny, squid)
	call("the first is forgiven", nil, squid)
	ports, args = second.command(t)
	alive(second.realPeer, ports, args)

	call("both live again", nil, squid)
	first.kill()
	again("its pooled connection died too", []int{squid}, squid, tiny)
	second.stop()
	if _, err := c.do(t.Context(), "GET", o.url+"/", nil); err == nil {
		t.Error("a call gets through although both proxies are dead")
	}
	if diff := cmp.Diff([]int{tiny, squid}, list.failures()); diff != "" {
		t.Errorf("proxies that failed, both being dead (-want +got):\n%s", diff)
	}
}
