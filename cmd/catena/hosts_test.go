package main

import (
	"net/url"
	"strings"
	"testing"
)

func TestHostList(t *testing.T) {
	tests := []struct {
		list string
		has  string // hosts by spaces
		not  string
	}{
		{"", "", "a.test 192.0.2.1"},
		{"*", "a.test 192.0.2.1 ::1 localhost", ""},
		{"a.test", "a.test A.Test a.test. b.a.test", "b.test xa.test a.test.b"},
		{".a.test, B.test\tc.test.", "a.test x.a.test b.test c.test", "d.test"},
		{"bücher.test", "xn--bcher-kva.test BÜCHER.test", "test"},
		{"192.0.2.1", "192.0.2.1 ::ffff:192.0.2.1", "192.0.2.10 1.192.0.2.1"},
		{"192.0.2.0/25", "192.0.2.0 192.0.2.127", "192.0.2.128"},
		{"[2001:db8::1] fe80::1%eth0", "2001:db8::1 2001:DB8:0::1 fe80::1 fe80::1%eth1", "2001:db8::2"},
		{"2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"},
		{"2.1", "", "192.0.2.1"},
		{",., ,", "", "a.test"},
	}
	for _, tt := range tests {
		l := readHosts(tt.list)
		for host := range strings.FieldsSeq(tt.has) {
			if !l.has(host) {
				t.Errorf("%q has not %s", tt.list, host)
			}
		}
		for host := range strings.FieldsSeq(tt.not) {
			if l.has(host) {
				t.Errorf("%q has %s", tt.list, host)
			}
		}
	}
}

// FuzzHostList reads any list. A name or an address in it is one of its hosts.
func FuzzHostList(f *testing.F) {
	for _, seed := range []string{"", "*", "a.test,.b.test", "192.0.2.0/24 [::1]", "::ffff:1.2.3.4/100", "é.test", "[", "....", "a%b", "fe80::1%x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		l := readHosts(list)
		for _, name := range l.names {
			if _, err := url.Parse("http://" + name + "/"); err == nil && !l.has(name) && !l.has("x."+name) {
				t.Errorf("%q has not %q", list, name)
			}
		}
		for _, r := range l.ranges {
			if !r.Addr().Is4In6() && !l.has(r.Addr().String()) {
				t.Errorf("%q has not %v", list, r)
			}
		}
	})
}
