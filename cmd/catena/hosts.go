package main

import (
	"net/netip"
	"strings"
)

// hostList is --noproxy: names, which stand for their subdomains too, addresses and
// ranges of addresses.
type hostList struct {
	all    bool
	names  []string
	ranges []netip.Prefix
}

// readHosts reads a list by commas or white space. "*" is everything. An entry that
// is no range counts as a name, and a dot before or after a name means nothing.
func readHosts(v string) hostList {
	var l hostList
	for entry := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		bare := strings.TrimSuffix(strings.TrimPrefix(entry, "["), "]")
		if addr, err := netip.ParseAddr(bare); err == nil {
			addr = addr.Unmap().WithZone("")
			l.ranges = append(l.ranges, netip.PrefixFrom(addr, addr.BitLen()))
		} else if r, err := netip.ParsePrefix(entry); err == nil {
			l.ranges = append(l.ranges, r)
		} else if entry == "*" {
			l.all = true
		} else if name := canonicalHost(strings.Trim(entry, ".")); name != "" {
			l.names = append(l.names, name)
		}
	}
	return l
}

func (l hostList) has(host string) bool {
	if l.all {
		return true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap().WithZone("")
		for _, r := range l.ranges {
			if r.Contains(addr) {
				return true
			}
		}
		return false
	}
	host = strings.TrimSuffix(canonicalHost(host), ".")
	for _, name := range l.names {
		if host == name || strings.HasSuffix(host, "."+name) {
			return true
		}
	}
	return false
}
