package main

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzParse reads any command line, its arguments separated by line ends. What
// parse accepts has URLs, or asks for nothing to be called.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "-", "--", "---", "-sSL\nhttp://a.test", "-XPUT\n-d@f\na.test", "--no-no-follow\na", "--data=\n=", "-\xff",
		"--resolve\n[::1%eth0]:80:[fe80::1%eth0]\na", "-H\n:\na", "-m\n1e9\na", "-x\nsocks5://u:p@[::1]\na",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		o, err := parse(strings.Split(line, "\n"))
		if err != nil {
			return
		}
		if len(o.urls) == 0 && !o.help && !o.version {
			t.Errorf("there is nothing to do, and no error")
		}
	})
}

// FuzzResolve reads any --resolve. What it accepts can be looked up.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{
		"a.test:80:192.0.2.1", "+*:1:[2001:db8::1],192.0.2.1", "[::1]:65535:::1", "a:0:1", "::", ":::", "[:80:1.1.1.1", "a:80:[[::1]]", "é.test:80:::1%x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, v string) {
		var r overrides
		if r.add(v) != nil {
			if len(r) > 0 {
				t.Errorf("%q is an error and has an effect: %v", v, r)
			}
			return
		}
		for e := range r {
			addrs, ok := r.find(e)
			if !ok || len(addrs) == 0 || e.port < 1 || e.port > 65535 || addrs[0] == (netip.Addr{}) {
				t.Errorf("%q gives %v", v, r)
			}
		}
	})
}
