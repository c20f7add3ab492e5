package route_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// world is what a Selector finds: hosts and their addresses, and the proxies that
// are chosen. It logs what it is asked.
type world struct {
	hosts     map[string][]string
	proxies   []string
	selectErr error
	log       []string
}

var errNoHost = errors.New("no such host")

func (w *world) network() *route.Network {
	return &route.Network{
		DNS: route.DNSFunc(func(_ context.Context, _, host string) ([]netip.Addr, error) {
			w.log = append(w.log, "dns "+host)
			addrs, ok := w.hosts[host]
			if !ok {
				return nil, errNoHost
			}
			var out []netip.Addr
			for _, a := range addrs {
				out = append(out, netip.MustParseAddr(a))
			}
			return out, nil
		}),
		ProxySelector: proxy.SelectorFunc(func(_ context.Context, u *url.URL) ([]proxy.Proxy, error) {
			w.log = append(w.log, "select "+u.String())
			var out []proxy.Proxy
			for _, s := range w.proxies {
				p, err := proxy.Parse(s)
				if err != nil {
					panic(err)
				}
				out = append(out, p)
			}
			return out, w.selectErr
		}),
	}
}

func address(t *testing.T, rawURL string, n *route.Network) route.Address {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	a, err := route.NewAddress(u, n)
	if err == nil {
		err = n.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// walk takes every route there is and shows them, a line a selection.
func walk(ctx context.Context, s *route.Selector) (lines []string) {
	for s.HasNext() {
		selection, err := s.Next(ctx)
		if err != nil {
			lines = append(lines, "error: "+err.Error())
			continue
		}
		var routes []string
		for selection.HasNext() {
			r := selection.Next()
			show := r.SocketAddr()
			if !r.Proxy.IsDirect() {
				show += " via " + r.Shown.String()
			}
			if r.DialAddr() != r.SocketAddr() {
				show += " at " + r.DialAddr()
			}
			if r.Postponed {
				show += " (postponed)"
			}
			routes = append(routes, show)
		}
		lines = append(lines, strings.Join(routes, ", "))
	}
	return lines
}

func TestSelectorOrder(t *testing.T) {
	hosts := map[string][]string{
		"a.test": {"192.0.2.1", "2001:db8::1"},
		"p.test": {"192.0.2.11", "192.0.2.12"},
		"q.test": {"192.0.2.21"},
	}
	for name, tc := range map[string]struct {
		url     string
		world   world
		failed  []string // socket addresses to remember as failed
		want    []string
		wantLog []string
	}{
		"direct": {
			url:     "http://a.test/x",
			want:    []string{"192.0.2.1:80, [2001:db8::1]:80"},
			wantLog: []string{"select http://a.test:80/", "dns a.test"},
		},
		"an empty list means direct": {
			url:   "https://a.test",
			world: world{proxies: []string{}},
			want:  []string{"192.0.2.1:443, [2001:db8::1]:443"},
		},
		"an address needs no lookup": {
			url:     "http://127.0.0.1:8080",
			want:    []string{"127.0.0.1:8080"},
			wantLog: []string{"select http://127.0.0.1:8080/"},
		},
		"an address with a zone": {
			url:  "http://[fe80::1%25lo]:8080",
			want: []string{"[fe80::1%lo]:8080"},
		},
		"proxies in the selector's order": {
			url:     "http://a.test",
			world:   world{proxies: []string{"http://p.test:3128", "http://q.test:3128", "direct"}},
			want:    []string{"192.0.2.11:3128 via http://p.test:3128, 192.0.2.12:3128 via http://p.test:3128", "192.0.2.21:3128 via http://q.test:3128", "192.0.2.1:80, [2001:db8::1]:80"},
			wantLog: []string{"select http://a.test:80/", "dns p.test", "dns q.test", "dns a.test"},
		},
		"direct only where it is listed": {
			url:   "http://a.test",
			world: world{proxies: []string{"http://nowhere.test:3128"}},
			want:  []string{"error: look up proxy nowhere.test: no such host"},
		},
		"a lookup that fails does not end the search": {
			url:   "http://a.test",
			world: world{proxies: []string{"http://nowhere.test:3128", "http://q.test:3128"}},
			want:  []string{"error: look up proxy nowhere.test: no such host", "192.0.2.21:3128 via http://q.test:3128"},
		},
		"an origin that is not known": {
			url:  "http://nowhere.test",
			want: []string{"error: no such host"},
		},
		"a proxy's name is canonical": {
			url:     "http://a.test",
			world:   world{proxies: []string{"http://Q.TEST:3128"}, hosts: map[string][]string{"q.test": {"192.0.2.21"}}},
			wantLog: []string{"select http://a.test:80/", "dns q.test"},
		},
		"the selector fails": {
			url:   "http://a.test",
			world: world{proxies: []string{"direct"}, selectErr: errors.New("no idea")},
			want:  []string{"error: select a proxy: no idea"},
		},
		"failed routes come last": {
			url:    "http://a.test",
			world:  world{proxies: []string{"http://p.test:3128", "direct"}},
			failed: []string{"192.0.2.11:3128 p.test", "192.0.2.1:80"},
			want:   []string{"192.0.2.12:3128 via http://p.test:3128", "[2001:db8::1]:80", "192.0.2.11:3128 via http://p.test:3128 (postponed), 192.0.2.1:80 (postponed)"},
		},
		"all routes failed before": {
			url:    "http://a.test",
			failed: []string{"192.0.2.1:80", "[2001:db8::1]:80"},
			want:   []string{"192.0.2.1:80 (postponed), [2001:db8::1]:80 (postponed)"},
		},
		"a password is not shown": {
			url:   "http://a.test",
			world: world{proxies: []string{"http://me:hunter2@q.test:3128"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.world
			if w.hosts == nil {
				w.hosts = hosts
			}
			a := address(t, tc.url, w.network())
			var d route.Database
			for _, f := range tc.failed {
				socket, via, _ := strings.Cut(f, " ")
				at := netip.MustParseAddrPort(socket)
				r := route.Route{Address: a, SocketHost: at.Addr().String(), SocketPort: int(at.Port())}
				if via != "" {
					r.Proxy = proxy.Proxy{Type: proxy.HTTP, Host: via, Port: 3128}
				}
				d.Failed(&r)
			}
			s := route.NewSelector(a, &d, testCall{}, event.NopListener{})
			if len(w.log) > 0 {
				t.Error("somebody was asked before a route was wanted")
			}
			got := walk(t.Context(), s)
			if diff := cmp.Diff(tc.want, got); tc.want != nil && diff != "" {
				t.Errorf("routes (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantLog, w.log); tc.wantLog != nil && diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
			if s := strings.Join(got, " "); strings.Contains(s, "hunter2") {
				t.Errorf("a password is shown: %s", s)
			}
			if _, err := s.Next(t.Context()); err == nil {
				t.Error("a Selector that is exhausted has another selection")
			}
		})
	}
}

// A host is looked up when the routes before it are used up, and not before.
func TestSelectorIsLazy(t *testing.T) {
	w := &world{hosts: map[string][]string{"p.test": {"192.0.2.11"}, "a.test": {"192.0.2.1"}}, proxies: []string{"http://p.test:3128", "direct"}}
	s := route.NewSelector(address(t, "http://a.test", w.network()), &route.Database{}, testCall{}, event.NopListener{})
	selection, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(selection.All()); n != 1 {
		t.Errorf("%d routes", n)
	}
	if diff := cmp.Diff([]string{"select http://a.test:80/", "dns p.test"}, w.log); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
}

func TestSelectorEvents(t *testing.T) {
	w := &world{hosts: map[string][]string{"a.test": {"192.0.2.1"}}, proxies: []string{"http://me:hunter2@nowhere.test:3128", "direct"}}
	a := address(t, "http://a.test", w.network())
	var d route.Database
	d.Failed(&route.Route{Address: a, SocketHost: "192.0.2.1", SocketPort: 80})
	r := event.NewRecorder()
	walk(t.Context(), route.NewSelector(a, &d, testCall{}, r))
	var got []string
	for _, e := range r.Events() {
		line := fmt.Sprint(e.Name, " ", e.Host, e.URL, e.Addr, e.Addrs)
		for _, p := range e.Proxies {
			line += " " + p.String()
			if _, has := p.User.Password(); has {
				t.Error("an event has a password")
			}
		}
		if e.Err != nil {
			line += " " + e.Err.Error()
		}
		got = append(got, line)
	}
	want := []string{
		"ProxySelectStart http://a.test:80/[]",
		"ProxySelectEnd http://a.test:80/[] http://me@nowhere.test:3128 direct",
		"DNSStart nowhere.test[]",
		"DNSEnd nowhere.test[] no such host",
		"DNSStart a.test[]",
		"DNSEnd a.test[192.0.2.1]",
		"RouteDecision 192.0.2.1:80[]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSelectorError(t *testing.T) {
	w := &world{proxies: []string{"http://p.test:3128"}}
	s := route.NewSelector(address(t, "http://a.test", w.network()), &route.Database{}, testCall{}, event.NopListener{})
	_, err := s.Next(t.Context())
	var re *route.Error
	if !errors.As(err, &re) || re.Step != event.StepDNS || re.Host != "p.test" || re.Proxy.Host != "p.test" || !errors.Is(err, errNoHost) {
		t.Errorf("got %#v", err)
	}
	if _, err := s.Next(t.Context()); err != route.ErrExhausted {
		t.Errorf("then %v", err)
	}
}
