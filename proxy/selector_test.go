package proxy_test

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/proxy"
)

func TestFixed(t *testing.T) {
	u := &url.URL{Scheme: "http", Host: "localhost"}
	a := proxy.Proxy{Type: proxy.HTTP, Host: "a.test", Port: 1}
	b := proxy.Proxy{Type: proxy.SOCKS5, Host: "b.test", Port: 2}
	tests := []struct {
		name        string
		given, want []proxy.Proxy
	}{
		{"none", nil, []proxy.Proxy{{}}},
		{"one", []proxy.Proxy{a}, []proxy.Proxy{a}},
		{"in order", []proxy.Proxy{b, a, {}}, []proxy.Proxy{b, a, {}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := proxy.Fixed(tt.given...)
			for range 2 {
				got, err := s.Select(t.Context(), u)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				got[0] = proxy.Proxy{Type: proxy.HTTPS} // must not reach the selector
				s.ConnectFailed(u, a, errors.New("refused"))
			}
		})
	}
}

func TestFixedCopiesItsArguments(t *testing.T) {
	a := proxy.Proxy{Type: proxy.HTTP, Host: "a.test", Port: 1}
	given := []proxy.Proxy{a}
	s := proxy.Fixed(given...)
	given[0] = proxy.Proxy{}
	if got, err := s.Select(t.Context(), &url.URL{}); err != nil || got[0] != a {
		t.Errorf("got %v, %v after the caller changed its slice", got, err)
	}
}

func TestSelectorFunc(t *testing.T) {
	failure := errors.New("no proxy today")
	u := &url.URL{Scheme: "http", Host: "a.test"}
	var s proxy.Selector = proxy.SelectorFunc(func(ctx context.Context, got *url.URL) ([]proxy.Proxy, error) {
		if got != u {
			t.Errorf("asked for %v, want %v", got, u)
		}
		return nil, context.Cause(ctx)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(failure)
	if _, err := s.Select(ctx, u); !errors.Is(err, failure) {
		t.Errorf("got error %v, want the function's", err)
	}
	s.ConnectFailed(u, proxy.Proxy{}, failure)
}

func TestNilSelectorFunc(t *testing.T) {
	list, err := proxy.SelectorFunc(nil).Select(t.Context(), &url.URL{})
	if err == nil || len(list) > 0 {
		t.Errorf("got %v, %v; want an error", list, err)
	}
}
