package proxy

import (
	"context"
	"errors"
	"net/url"
	"slices"
)

// Selector chooses the proxies of a URL. It is used by many calls at once.
type Selector interface {
	// Select lists the proxies to try for u, in order. Direct is tried only where it is listed; an empty
	// list is Direct alone. An error ends the call, and so does a proxy in the list that [Proxy.Validate]
	// refuses. A proxy that is listed twice is tried once.
	//
	// u's scheme, host and port decide; it carries no user info, its path is "/", and it is read-only.
	// ctx is the call's; a Select that waits should return when it ends, for the call waits with it. Select is
	// asked for new connections only: a pooled one is taken without it.
	Select(ctx context.Context, u *url.URL) ([]Proxy, error)

	// ConnectFailed tells that p, selected for u, could not be reached or would not serve us, and why: its
	// name has no address, it does not answer, it refuses. It is called on the goroutine of the call, so it
	// should be quick; p carries its password.
	ConnectFailed(u *url.URL, p Proxy, err error)
}

// SelectorFunc is a function that is a Selector and pays no heed to failures. A nil one fails every call:
// nobody said that it may go straight to the origin.
type SelectorFunc func(ctx context.Context, u *url.URL) ([]Proxy, error)

// Select calls f.
func (f SelectorFunc) Select(ctx context.Context, u *url.URL) ([]Proxy, error) {
	if f == nil {
		return nil, errors.New("the proxy selector is a nil SelectorFunc")
	}
	return f(ctx, u)
}

// ConnectFailed does nothing.
func (f SelectorFunc) ConnectFailed(*url.URL, Proxy, error) {}

// Fixed returns a Selector that lists the same proxies for every URL; without any it lists Direct.
// There is no exception for loopback or NO_PROXY.
func Fixed(proxies ...Proxy) Selector {
	if len(proxies) == 0 {
		proxies = []Proxy{{}}
	}
	return fixed(slices.Clone(proxies))
}

type fixed []Proxy

// Select returns a copy, since the list goes to code that may keep or sort it.
func (f fixed) Select(context.Context, *url.URL) ([]Proxy, error) { return slices.Clone(f), nil }

func (f fixed) ConnectFailed(*url.URL, Proxy, error) {}
