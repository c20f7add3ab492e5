package wire

import "strings"

// WithoutZone is host, and port, without the zone of an IPv6 literal, which means
// nothing to the peer (RFC 6874 4).
func WithoutZone(host string) string {
	if !strings.HasPrefix(host, "[") {
		return host
	}
	end := strings.LastIndexByte(host, ']')
	if end < 0 {
		return host
	}
	zone := strings.IndexByte(host[:end], '%')
	if zone < 0 {
		return host
	}
	return host[:zone] + host[end:]
}
