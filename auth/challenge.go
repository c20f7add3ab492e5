package auth

import "net/http"

// Challenge is one way a server or proxy offers to authenticate (RFC 9110 section 11.3).
type Challenge struct {
	Scheme  string            // as it was sent; compare it with strings.EqualFold
	Params  map[string]string // names in lower case, values unquoted; nil if there are none
	Token68 string            // the value that some schemes (Negotiate, NTLM) send in place of parameters
}

// Challenges returns the challenges in h's fields called name, which is "WWW-Authenticate" or
// "Proxy-Authenticate", in the order they came.
func Challenges(h http.Header, name string) []Challenge { return nil }
