package catena

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// wroteFields calls hook for each field of a network request's head: those that
// the codec writes of its own, then those of the header, by name.
func wroteFields(req *http.Request, multiplexed bool, hook func(key string, values []string)) {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	size := bodySizeOf(req)
	if multiplexed {
		hook(":authority", []string{host})
		hook(":method", []string{method})
		hook(":path", []string{req.URL.RequestURI()})
		hook(":scheme", []string{req.URL.Scheme})
	} else {
		hook("Host", []string{host})
		if size < 0 {
			hook("Transfer-Encoding", []string{"chunked"})
		}
		if size == 0 && (method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch) {
			hook("Content-Length", []string{"0"})
		}
	}
	name := func(s string) string { return s }
	if multiplexed {
		name = strings.ToLower
	}
	if size > 0 {
		hook(name("Content-Length"), []string{strconv.FormatInt(size, 10)})
	}
	for _, key := range slices.Sorted(maps.Keys(req.Header)) {
		values := req.Header[key]
		if len(values) > 0 && !byCodec(key) && !(multiplexed && ofHTTP1(key)) {
			hook(name(key), slices.Clone(values))
		}
	}
}

// bodySizeOf is what a network request's head says of its body: 0 none, -1 an
// unknown number of bytes.
func bodySizeOf(req *http.Request) int64 {
	if req.Body == nil || req.Body == http.NoBody {
		return 0
	}
	return req.ContentLength
}

func expectsContinue(req *http.Request) bool {
	return httpguts.HeaderValuesContainsToken(req.Header["Expect"], "100-continue")
}

// byCodec reports whether a field of the header is ignored because the codec
// writes its own.
func byCodec(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
		return true
	}
	return false
}

// ofHTTP1 reports whether a field means nothing in HTTP/2 (RFC 9113 8.2.2).
func ofHTTP1(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}
