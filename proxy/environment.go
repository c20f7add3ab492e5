package proxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// FromEnvironment returns the Selector that the environment asks for. The variables are read once, by
// this call. Each may be written in lower case, which comes first if both are set; an empty one counts
// as not set.
//
//   - HTTP_PROXY and HTTPS_PROXY are the proxies for http and https URLs, as [Parse] reads them.
//   - ALL_PROXY is the proxy for a scheme whose own variable is not set.
//   - NO_PROXY lists, separated by commas or white space, what is reached directly.
//
// An entry of NO_PROXY is a host name, which stands for its subdomains too; ".example.com" or
// "*.example.com" for the subdomains only; an IP address, brackets around IPv6 optional; an IP range
// such as "10.0.0.0/8"; or "*" for everything. All but the last two may end in ":port". Case and a
// trailing dot don't matter, IP addresses are compared as numbers and zones are dropped. A name never
// matches an address, nor an address a name that resolves to it: nothing is looked up. An entry that is
// none of these is ignored. "localhost" and loopback addresses are always reached directly.
//
// In a CGI program, which has REQUEST_METHOD in its environment, HTTP_PROXY is ignored, for there it is
// what the client sent as the header field Proxy; http_proxy stays, except on Windows, where the two
// are one.
//
// A variable that can't be parsed makes Select fail, with an error that names it, for the URLs that it
// is for; URLs in NO_PROXY are not.
func FromEnvironment() Selector { return FromVariables(os.Getenv) }

// FromVariables is FromEnvironment with variables from elsewhere: get returns the value of the one with
// that name, "" where it is not set. It is called before FromVariables returns, and not kept.
func FromVariables(get func(name string) string) Selector {
	v := variables(get)
	all := v.setting("all_proxy", "ALL_PROXY")
	return &environment{
		http:   v.setting(v.forHTTP()...).or(all),
		https:  v.setting("https_proxy", "HTTPS_PROXY").or(all),
		bypass: bypasses(get(v.firstSet("no_proxy", "NO_PROXY"))),
	}
}

// variables is where values come from.
type variables func(name string) string

// environment never changes after FromVariables made it.
type environment struct {
	http, https setting
	bypass      func(u *url.URL) bool
}

// setting is what a variable says; the zero value is one that is not set.
type setting struct {
	list []Proxy
	err  error
}

func (s setting) given() bool { return s.list != nil || s.err != nil }

func (s setting) or(other setting) setting {
	if s.given() {
		return s
	}
	return other
}

func (e *environment) Select(_ context.Context, u *url.URL) ([]Proxy, error) {
	var s setting
	switch strings.ToLower(u.Scheme) {
	case "http":
		s = e.http
	case "https":
		s = e.https
	}
	if !s.given() || e.bypass(u) {
		return []Proxy{{}}, nil
	}
	return slices.Clone(s.list), s.err
}

func (e *environment) ConnectFailed(*url.URL, Proxy, error) {}

// forHTTP names the variables for http URLs that can be trusted.
func (v variables) forHTTP() []string {
	switch {
	case v("REQUEST_METHOD") == "":
		return []string{"http_proxy", "HTTP_PROXY"}
	case runtime.GOOS == "windows":
		return nil
	}
	return []string{"http_proxy"}
}

func (v variables) setting(names ...string) setting {
	name := v.firstSet(names...)
	if name == "" {
		return setting{}
	}
	p, err := Parse(v(name))
	if err != nil {
		return setting{err: fmt.Errorf("environment variable %s can't be used: %w", name, err)}
	}
	return setting{list: []Proxy{p}}
}

// firstSet returns the first of names that is set to something, or "".
func (v variables) firstSet(names ...string) string {
	for _, name := range names {
		if v(name) != "" {
			return name
		}
	}
	return ""
}

// bypasses returns what decides whether NO_PROXY, or the rule for loopback, sends a URL direct. The
// rules are httpproxy's, which is given a made-up proxy and watched for whether it uses it. So that it
// knows more spellings than its own, entries and hosts are brought into one first.
func bypasses(noProxy string) func(u *url.URL) bool {
	entries := strings.FieldsFunc(noProxy, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	for i, entry := range entries {
		entries[i] = normalEntry(entry)
	}
	const some = "http://proxy.invalid"
	config := httpproxy.Config{HTTPProxy: some, HTTPSProxy: some, NoProxy: strings.Join(entries, ",")}
	choose := config.ProxyFunc()
	return func(u *url.URL) bool {
		// The zone goes first: ".example.com" is a zone too, and not a domain.
		host, _, _ := strings.Cut(u.Hostname(), "%")
		host = strings.ToLower(strings.TrimSuffix(host, "."))
		chosen, err := choose(&url.URL{
			Scheme: strings.ToLower(u.Scheme),
			Host:   net.JoinHostPort(host, u.Port()),
		})
		return err == nil && chosen == nil
	}
}

// normalEntry takes from an entry of NO_PROXY what httpproxy stumbles over: brackets without a port, a
// zone and a trailing dot.
func normalEntry(entry string) string {
	host, port := entry, ""
	if h, p, err := net.SplitHostPort(entry); err == nil {
		host, port = h, p
	}
	if rest, found := strings.CutPrefix(host, "["); found {
		addr, bits, _ := strings.Cut(rest, "]")
		host = addr + bits
	}
	if host == "*" && entry != "*" {
		return "" // no spelling of it, either
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.WithZone("").String()
	} else if host != "*." { // which is no spelling of "*", the end of all proxying
		host = strings.TrimSuffix(host, ".")
	}
	if port == "" {
		return host
	}
	return net.JoinHostPort(host, port)
}
