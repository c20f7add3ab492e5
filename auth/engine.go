package auth

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/catena-http/catena/proxy"
)

// Repeats reports whether next is the request that resp refuses once more: with the same credentials, and
// different in no field or part of the URL. A request without credentials repeats none. It is for 401 and
// 407.
//
// Engine part, no promise.
func Repeats(resp *http.Response, next *http.Request) bool {
	_, answer := fieldsOf(resp)
	refused := resp.Request
	if answer == "" || refused == nil || refused.Header.Get(answer) == "" {
		return false
	}
	return sameURL(refused.URL, next.URL) && refused.Method == next.Method && maps.EqualFunc(refused.Header, next.Header, slices.Equal)
}

// sameURL reports whether a and b are equal, though one be a deep copy of the other.
func sameURL(a, b *url.URL) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.User, y.User = nil, nil
	sameUser := a.User == b.User || a.User != nil && b.User != nil && *a.User == *b.User
	return x == y && sameUser
}

// Renew is req without credentials that were for an earlier request only. Those of Digest in req's field for
// status, 401 or 407, it replaces by new ones that a makes, or takes out where a has none to make. It
// changes nothing in req itself, which it returns where there is nothing to do.
//
// Engine part, no promise.
func Renew(a Authenticator, via proxy.Proxy, req *http.Request, status int) (*http.Request, error) {
	_, answer := fieldsOf(&http.Response{StatusCode: status})
	if !isForOneRequest(req.Header.Get(answer)) {
		return req, nil
	}
	value := ""
	if s, ok := a.(sender); ok {
		sent, _ := parseCredentials(req.Header.Get(answer))
		var err error
		value, err = s.ahead(target{spaceFor(via, status, req), sent.Params["realm"], sent.Scheme, status}, req)
		if err != nil {
			return nil, err
		}
	}
	own := *req
	own.Header = req.Header.Clone()
	if value == "" {
		own.Header.Del(answer)
	} else {
		own.Header.Set(answer, value)
	}
	return &own, nil
}

// isForOneRequest reports whether credentials are bound to the request that they are in.
func isForOneRequest(credentials string) bool {
	scheme, _, _ := strings.Cut(credentials, " ")
	return strings.EqualFold(scheme, "Digest")
}
