package http2

import "slices"

const (
	// fieldCost is what a field costs in the table beyond its bytes (RFC 7541 4.1).
	fieldCost = 32
	// recentFields is how many of the newest fields are looked at for one that
	// comes again, and longestRecent the longest encoding that is kept for it.
	recentFields  = 12
	longestRecent = 128
)

// tableField is a field in the table. coded is its encoding as a literal that is to
// be indexed, if that means the same at any time; "": it is not known.
type tableField struct{ name, value, coded string }

func (f *tableField) size() int { return len(f.name) + len(f.value) + fieldCost }

// fieldTable is the dynamic table of a decoder (RFC 7541 2.3.2), behind the static
// one. The zero value has the default size.
type fieldTable struct {
	fields []tableField // from the oldest; those before first are gone
	first  int
	size   int
	less   int // what the limit is below fieldTableSize
}

// at returns the field with an index.
func (t *fieldTable) at(i uint64) (tableField, bool) {
	switch n := uint64(len(t.fields) - t.first); {
	case i == 0 || i > staticFields+n:
		return tableField{}, false
	case i <= staticFields:
		return staticTable[i-1], true
	}
	return t.fields[len(t.fields)-int(i-staticFields)], true
}

// recent returns the field with an encoding, if it is one of the newest.
func (t *fieldTable) recent(coded []byte) (tableField, bool) {
	for i := len(t.fields) - 1; i >= max(t.first, len(t.fields)-recentFields); i-- {
		if t.fields[i].coded == string(coded) {
			return t.fields[i], true
		}
	}
	return tableField{}, false
}

func (t *fieldTable) add(f tableField) {
	t.size += f.size()
	t.fields = append(t.fields, f)
	t.evict()
}

func (t *fieldTable) resize(limit int) {
	t.less = fieldTableSize - limit
	t.evict()
}

// evict drops the oldest fields that are too many, the newest as well if it is too
// large by itself (RFC 7541 4.4).
func (t *fieldTable) evict() {
	for t.size > fieldTableSize-t.less {
		t.size -= t.fields[t.first].size()
		t.fields[t.first] = tableField{}
		t.first++
	}
	if t.first > len(t.fields)/2 {
		t.fields = slices.Delete(t.fields, 0, t.first)
		t.first = 0
	}
}

const staticFields = 61

// staticTable is RFC 7541 appendix A.
var staticTable = [staticFields]tableField{
	{name: ":authority"}, {name: ":method", value: "GET"}, {name: ":method", value: "POST"},
	{name: ":path", value: "/"}, {name: ":path", value: "/index.html"},
	{name: ":scheme", value: "http"}, {name: ":scheme", value: "https"},
	{name: ":status", value: "200"}, {name: ":status", value: "204"}, {name: ":status", value: "206"},
	{name: ":status", value: "304"}, {name: ":status", value: "400"}, {name: ":status", value: "404"},
	{name: ":status", value: "500"},
	{name: "accept-charset"}, {name: "accept-encoding", value: "gzip, deflate"}, {name: "accept-language"},
	{name: "accept-ranges"}, {name: "accept"}, {name: "access-control-allow-origin"}, {name: "age"},
	{name: "allow"}, {name: "authorization"}, {name: "cache-control"}, {name: "content-disposition"},
	{name: "content-encoding"}, {name: "content-language"}, {name: "content-length"}, {name: "content-location"},
	{name: "content-range"}, {name: "content-type"}, {name: "cookie"}, {name: "date"}, {name: "etag"},
	{name: "expect"}, {name: "expires"}, {name: "from"}, {name: "host"}, {name: "if-match"},
	{name: "if-modified-since"}, {name: "if-none-match"}, {name: "if-range"}, {name: "if-unmodified-since"},
	{name: "last-modified"}, {name: "link"}, {name: "location"}, {name: "max-forwards"},
	{name: "proxy-authenticate"}, {name: "proxy-authorization"}, {name: "range"}, {name: "referer"},
	{name: "refresh"}, {name: "retry-after"}, {name: "server"}, {name: "set-cookie"},
	{name: "strict-transport-security"}, {name: "transfer-encoding"}, {name: "user-agent"}, {name: "vary"},
	{name: "via"}, {name: "www-authenticate"},
}
