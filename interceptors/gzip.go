package interceptors

import (
	"net/http"
	"strings"

	"github.com/catena-http/catena/connection"
)

// isGzip reports whether resp has content in gzip and in no other coding on top
// (RFC 9110 8.4.1.3).
func isGzip(resp *http.Response) bool {
	coding := resp.Header["Content-Encoding"]
	if len(coding) != 1 || !strings.EqualFold(coding[0], "gzip") && !strings.EqualFold(coding[0], "x-gzip") {
		return false
	}
	switch {
	case resp.Body == nil, resp.Body == http.NoBody:
		return false
	case resp.StatusCode < 200, resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusNotModified:
		return false
	}
	return true
}

// gunzip is resp decoded. resp itself stays as it is, for network interceptors
// that kept it, but for its body, which is read through the result's.
func gunzip(resp *http.Response, call *connection.StreamAllocation) *http.Response {
	g := &gzipResponse{Response: *resp}
	g.Header = make(http.Header, len(resp.Header))
	for name, values := range resp.Header {
		if name != "Content-Encoding" && name != "Content-Length" {
			g.Header[name] = values[:len(values):len(values)]
		}
	}
	g.ContentLength, g.Uncompressed = -1, true
	g.body = gzipBody{network: resp, decoded: &g.Response, call: call}
	g.Body = &g.body
	return &g.Response
}

// gzipResponse is a decoded response together with the memory of its body.
type gzipResponse struct {
	http.Response
	body gzipBody
}
