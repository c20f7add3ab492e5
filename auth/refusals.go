package auth

import "net/http"

// refusals is how many times the one who refused by resp has refused, this time included, with nothing but
// refusals in between: an origin and the proxy before it may take turns.
func refusals(resp *http.Response) int {
	n := 0
	for ; resp != nil; resp = priorRefusal(resp) {
		n++
	}
	return n
}

// priorRefusal is the refusal before resp, with nothing between the two but those of another status; nil if
// there is none.
func priorRefusal(resp *http.Response) *http.Response {
	for r := resp; r.Request != nil && r.Request.Response != nil; {
		r = r.Request.Response
		if r.StatusCode == resp.StatusCode {
			return r
		}
		if challenge, _ := fieldsOf(r); challenge == "" {
			return nil
		}
	}
	return nil
}

// refusedTwice reports whether the response just before resp was a refusal by the same one.
func refusedTwice(resp *http.Response) bool {
	before := resp.Request.Response
	return before != nil && before.StatusCode == resp.StatusCode
}
