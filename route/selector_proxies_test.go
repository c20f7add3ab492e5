package route_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// Who looks up which name, what a SOCKS proxy is asked for and what is dialed.
func TestSelectorThroughSOCKS(t *testing.T) {
	hosts := map[string][]string{
		"a.test":    {"192.0.2.1", "2001:db8::1", "192.0.2.2"},
		"six.test":  {"2001:db8::6"},
		"p.test":    {"192.0.2.11", "2001:db8::11"},
		"q.test":    {"192.0.2.21"},
		"four.test": {"192.0.2.4"},
	}
	for name, tc := range map[string]struct {
		url     string
		proxies []string
		want    []string
		wantDNS []string
	}{
		"socks5 resolves the name": {
			"http://nowhere.test:81", []string{"socks5://p.test"},
			[]string{"nowhere.test:81 via socks5://p.test:1080 at 192.0.2.11:1080, nowhere.test:81 via socks5://p.test:1080 at [2001:db8::11]:1080"},
			[]string{"p.test"},
		},
		"socks5h too": {
			"http://nowhere.test", []string{"socks5h://q.test:99"},
			[]string{"nowhere.test:80 via socks5://q.test:99 at 192.0.2.21:99"},
			[]string{"q.test"},
		},
		"socks4a too": {
			"https://nowhere.test", []string{"socks4a://q.test"},
			[]string{"nowhere.test:443 via socks4a://q.test:1080 at 192.0.2.21:1080"},
			[]string{"q.test"},
		},
		"socks4 gets each IPv4 address by each of the proxy's": {
			"http://a.test", []string{"socks4://p.test"},
			[]string{strings.Join([]string{
				"192.0.2.1:80 via socks4://p.test:1080 at 192.0.2.11:1080",
				"192.0.2.1:80 via socks4://p.test:1080 at [2001:db8::11]:1080",
				"192.0.2.2:80 via socks4://p.test:1080 at 192.0.2.11:1080",
				"192.0.2.2:80 via socks4://p.test:1080 at [2001:db8::11]:1080",
			}, ", ")},
			[]string{"p.test", "a.test"},
		},
		"socks4 to a host without IPv4, then another proxy": {
			"http://six.test", []string{"socks4://q.test", "socks5://q.test"},
			[]string{
				"error: reach six.test through proxy socks4://q.test:1080: it has no IPv4 address, and socks4 carries no other",
				"six.test:80 via socks5://q.test:1080 at 192.0.2.21:1080",
			},
			[]string{"q.test", "six.test", "q.test"},
		},
		"socks4 to a host that is not known": {
			"http://nowhere.test", []string{"socks4://me@q.test"},
			[]string{"error: reach nowhere.test through proxy socks4://me@q.test:1080: no such host"},
			[]string{"q.test", "nowhere.test"},
		},
		"a proxy that is not known": {
			"http://four.test", []string{"socks4://nowhere.test"},
			[]string{"error: look up proxy nowhere.test: no such host"},
			[]string{"nowhere.test"},
		},
		"socks4 to an IPv6 address": {
			"http://[2001:db8::1]", []string{"socks4://q.test"},
			[]string{"error: reach 2001:db8::1 through proxy socks4://q.test:1080: socks4 carries no IPv6 address"},
			nil,
		},
		"socks4a to an IPv6 address": {
			"http://[2001:db8::1]", []string{"socks4a://q.test"},
			[]string{"error: reach 2001:db8::1 through proxy socks4a://q.test:1080: socks4a carries no IPv6 address"},
			nil,
		},
		"socks4 to an IPv4 address": {
			"http://192.0.2.9", []string{"socks4://192.0.2.11"},
			[]string{"192.0.2.9:80 via socks4://192.0.2.11:1080 at 192.0.2.11:1080"},
			nil,
		},
		"an IPv4 address in an IPv6 one": {
			"http://[::ffff:192.0.2.9]", []string{"socks4a://[::ffff:192.0.2.11]:81"},
			[]string{"192.0.2.9:80 via socks4a://[::ffff:192.0.2.11]:81 at 192.0.2.11:81"},
			nil,
		},
		"socks5 to an IPv6 address": {
			"http://[2001:db8::1]:8080", []string{"socks5://[2001:db8::11]"},
			[]string{"[2001:db8::1]:8080 via socks5://[2001:db8::11]:1080 at [2001:db8::11]:1080"},
			nil,
		},
		"a zone": {
			"http://[fe80::1%25lo]", []string{"socks5://q.test"},
			[]string{"error: reach fe80::1%lo through proxy socks5://q.test:1080: a zone means nothing to a proxy"},
			nil,
		},
		"a proxy at an address with a zone": {
			"http://nowhere.test", []string{"socks5://[fe80::1%25lo]"},
			[]string{"nowhere.test:80 via socks5://[fe80::1%25lo]:1080 at [fe80::1%lo]:1080"},
			nil,
		},
		"one proxy in several spellings, and direct, twice": {
			"http://four.test", []string{"http://q.test", "direct", "http://q.test:80", "http://me@q.test", "direct"},
			[]string{"192.0.2.21:80 via http://q.test:80", "192.0.2.4:80", "192.0.2.21:80 via http://me@q.test:80"},
			[]string{"q.test", "four.test", "q.test"},
		},
		"an http proxy resolves, an address is its own": {
			"https://nowhere.test", []string{"https://192.0.2.31"},
			[]string{"192.0.2.31:443 via https://192.0.2.31:443"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{hosts: hosts, proxies: tc.proxies}
			s := route.NewSelector(address(t, tc.url, w.network()), &route.Database{}, testCall{}, event.NopListener{})
			if diff := cmp.Diff(tc.want, walk(t.Context(), s)); diff != "" {
				t.Errorf("routes (-want +got)\n%s", diff)
			}
			var looked []string
			for _, line := range w.log {
				if host, ok := strings.CutPrefix(line, "dns "); ok {
					looked = append(looked, host)
				}
			}
			if diff := cmp.Diff(tc.wantDNS, looked); diff != "" {
				t.Errorf("looked up (-want +got)\n%s", diff)
			}
		})
	}
}

// tattler is a selector that remembers what it was told.
type tattler struct {
	proxies []proxy.Proxy
	told    []string
}

func (s *tattler) Select(context.Context, *url.URL) ([]proxy.Proxy, error) { return s.proxies, nil }

func (s *tattler) ConnectFailed(u *url.URL, p proxy.Proxy, err error) {
	password, _ := p.User.Password()
	s.told = append(s.told, fmt.Sprintf("%s %s %s %v", u, p, password, err))
}

// A proxy that has no address could not be reached: its selector is told. An
// origin without one is not the proxy's fault, nor is the end of the call.
func TestSelectorIsToldOfLookups(t *testing.T) {
	w := &world{hosts: map[string][]string{"p.test": {"192.0.2.11"}}}
	n := w.network()
	sel := &tattler{proxies: []proxy.Proxy{
		{Type: proxy.SOCKS5, Host: "nowhere.test", User: url.UserPassword("me", "hunter2")},
		{Type: proxy.HTTP, Host: "no host"},
		{Type: proxy.SOCKS4, Host: "p.test"},
	}}
	n.ProxySelector = sel
	a := address(t, "http://origin.test", n)
	got := walk(t.Context(), route.NewSelector(a, &route.Database{}, testCall{}, event.NopListener{}))
	want := []string{
		"error: look up proxy nowhere.test: no such host",
		`error: look up proxy no host: host "no host" has a character no host name has`,
		"error: reach origin.test through proxy socks4://p.test:1080: no such host",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	wantTold := []string{
		"http://origin.test:80/ socks5://me:xxxxx@nowhere.test:1080 hunter2 look up proxy nowhere.test: no such host",
		`http://origin.test:80/ http://no%20host:80  look up proxy no host: host "no host" has a character no host name has`,
	}
	if diff := cmp.Diff(wantTold, sel.told); diff != "" {
		t.Errorf("told (-want +got)\n%s", diff)
	}

	sel.proxies, sel.told = sel.proxies[:1], nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	walk(ctx, route.NewSelector(a, &route.Database{}, testCall{}, event.NopListener{}))
	if len(sel.told) > 0 {
		t.Errorf("told of the call's own end: %q", sel.told)
	}
}

func TestSelectorErrorSaysWhoseNameItWas(t *testing.T) {
	for name, tc := range map[string]struct {
		via  string
		want route.Error
	}{
		"the proxy's":              {"socks5://me:hunter2@p.test", route.Error{Host: "p.test", OfProxy: true}},
		"the origin's":             {"direct", route.Error{Host: "a.test"}},
		"the origin's, for socks4": {"socks4://192.0.2.11", route.Error{Host: "a.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{proxies: []string{tc.via}}
			_, err := route.NewSelector(address(t, "http://a.test", w.network()), &route.Database{}, testCall{}, event.NopListener{}).Next(t.Context())
			var re *route.Error
			if !errors.As(err, &re) || re.Step != event.StepDNS || re.Host != tc.want.Host || re.OfProxy != tc.want.OfProxy {
				t.Fatalf("got %#v", err)
			}
			p, _ := proxy.Parse(tc.via)
			if re.Proxy.Type != p.Type || re.Proxy.Host != p.Host {
				t.Errorf("the proxy on the way is %s", re.Proxy)
			}
			if _, has := re.Proxy.User.Password(); has {
				t.Error("the error has a password")
			}
		})
	}
}

// A proxy that can't be used is an error that names it, and nothing is tried.
func TestSelectorListsAProxyThatCannotBeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		p    proxy.Proxy
		says string
	}{
		"no such type": {proxy.Proxy{Type: 42, Host: "p.test"}, "type 42 is unknown"},
		"no host":      {proxy.Proxy{Type: proxy.HTTP}, "no host"},
		"port":         {proxy.Proxy{Type: proxy.HTTP, Host: "p.test", Port: 65536}, "p.test:65536, which can't be used: proxy port 65536 is outside 1 to 65535"},
		"password": {
			proxy.Proxy{Type: proxy.SOCKS5, Host: "p.test", User: url.UserPassword("me", strings.Repeat("hunter2", 40))},
			"socks5://me:xxxxx@p.test:1080, which can't be used",
		},
		"a direct proxy with a host": {proxy.Proxy{Host: "p.test"}, "its type is direct"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			n := w.network()
			n.ProxySelector = &tattler{proxies: []proxy.Proxy{{}, tc.p}}
			r := event.NewRecorder()
			s := route.NewSelector(address(t, "http://a.test", n), &route.Database{}, testCall{}, r)
			_, err := s.Next(t.Context())
			var re *route.Error
			if !errors.As(err, &re) || re.Step != event.StepProxySelect || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Error("the error has a password")
			}
			if s.HasNext() {
				t.Error("something is left to try")
			}
			events := r.Events()
			if len(events) != 2 || events[1].Err == nil {
				t.Errorf("events: %v", events)
			}
		})
	}
}

// A selector that panics ends its event and nothing else: the panic is the caller's.
func TestSelectorPanics(t *testing.T) {
	r := event.NewRecorder()
	n := &route.Network{ProxySelector: proxy.SelectorFunc(func(context.Context, *url.URL) ([]proxy.Proxy, error) { panic("mine") })}
	s := route.NewSelector(address(t, "http://a.test", n), &route.Database{}, testCall{}, r)
	defer func() {
		if recover() != "mine" {
			t.Error("the panic is lost")
		}
		events := r.Events()
		if len(events) != 2 || events[1].Err == nil || events[1].Name != "ProxySelectEnd" {
			t.Errorf("events: %v", events)
		}
	}()
	s.Next(t.Context())
}

// A selector that waits is given the call's context.
func TestSelectorWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &route.Network{ProxySelector: proxy.SelectorFunc(func(ctx context.Context, _ *url.URL) ([]proxy.Proxy, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})}
		s := route.NewSelector(address(t, "http://a.test", n), &route.Database{}, testCall{}, event.NopListener{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := s.Next(ctx)
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// A failure is remembered of one way through a SOCKS proxy, and of one user of it.
func TestDatabaseTellsProxiedRoutesApart(t *testing.T) {
	a := address(t, "http://a.test", &route.Network{DNS: route.DNSFunc(
		func(context.Context, string, string) ([]netip.Addr, error) { return nil, errNoHost })})
	made := func(user *url.Userinfo, target, dial string) *route.Route {
		return &route.Route{
			Address: a, Proxy: proxy.Proxy{Type: proxy.SOCKS4, Host: "p.test", User: user},
			SocketHost: target, SocketPort: 80, SOCKSHost: dial,
		}
	}
	var d route.Database
	d.Failed(made(url.UserPassword("me", "a"), "192.0.2.1", "192.0.2.11"))
	for name, tc := range map[string]struct {
		r    *route.Route
		want bool
	}{
		"the same":          {made(url.UserPassword("me", "a"), "192.0.2.1", "192.0.2.11"), true},
		"another password":  {made(url.UserPassword("me", "b"), "192.0.2.1", "192.0.2.11"), false},
		"nobody":            {made(nil, "192.0.2.1", "192.0.2.11"), false},
		"another target":    {made(url.UserPassword("me", "a"), "192.0.2.2", "192.0.2.11"), false},
		"another way to it": {made(url.UserPassword("me", "a"), "192.0.2.1", "192.0.2.12"), false},
	} {
		if got := d.ShouldPostpone(tc.r); got != tc.want {
			t.Errorf("%s: postponed is %t", name, got)
		}
	}
}
