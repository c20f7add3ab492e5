// Package redact knows which names of a request carry secrets, and masks their
// values in what is shown: logs, errors, events, exports.
package redact

import (
	"maps"
	"net/http"
	"strings"
)

// Mask stands where a secret was.
const Mask = "██"

// headers are the fields that always carry secrets. They are query parameters
// too, for those who put them there.
var headers = []string{
	"Authorization", "Proxy-Authorization", "X-Forwarded-Authorization", "X-Original-Authorization",
	"Cookie", "Cookie2", "Set-Cookie", "Set-Cookie2",
	"Api-Key", "X-Api-Key", "X-Api-Token", "X-Api-Secret", "X-Auth-Key", "X-Auth-Token", "X-Access-Token",
	"X-Csrf-Token", "X-Xsrf-Token", "X-Session-Token", "X-Client-Secret",
	"X-Amz-Security-Token", "X-Goog-Api-Key", "X-Goog-Iam-Authorization-Token",
	"Ocp-Apim-Subscription-Key", "X-Functions-Key", "Private-Token", "Job-Token",
	"X-Gitlab-Token", "X-Vault-Token", "X-Consul-Token", "X-Shopify-Access-Token",
}

// parameters are the query parameters that always carry secrets. As names of
// header fields they are too common to count.
var parameters = []string{
	"access_token", "refresh_token", "id_token", "auth_token", "session_token", "security_token",
	"api_key", "api_token", "private_token", "private_key", "subscription_key", "key", "token", "jwt", "auth",
	"password", "passwd", "passphrase", "pass", "pwd",
	"secret", "client_secret", "client_assertion", "assertion",
	"signature", "sig", "X-Amz-Signature", "X-Amz-Credential", "X-Goog-Signature", "X-Goog-Credential",
	"session", "session_id", "jsessionid", "phpsessid",
}

// Secrets is a list of secret names. Letter case, hyphens and underscores do not
// count: access_token is also Access-Token and accessToken. It never changes, so
// any number of goroutines may use it.
type Secrets struct {
	header map[string]struct{} // usual header fields, and the names given
	query  map[string]struct{} // the same and the usual parameters
}

// New is the list of the usual names and those given, each of which is a header
// field, a query parameter and a cookie.
func New(names ...string) *Secrets {
	s := &Secrets{header: map[string]struct{}{}, query: map[string]struct{}{}}
	add(s.header, headers)
	add(s.query, headers)
	add(s.query, parameters)
	return s.With(names...)
}

// With is s and the names given; s stays as it is. Empty names are ignored.
func (s *Secrets) With(names ...string) *Secrets {
	if len(names) == 0 {
		return s
	}
	t := &Secrets{header: maps.Clone(s.header), query: maps.Clone(s.query)}
	add(t.header, names)
	add(t.query, names)
	return t
}

func add(set map[string]struct{}, names []string) {
	for _, name := range names {
		if folded := fold(nil, name); len(folded) > 0 {
			set[string(folded)] = struct{}{}
		}
	}
}

// IsSecret reports whether name is that of a secret header field or cookie. The
// parameters that are secret in a query only do not count.
func (s *Secrets) IsSecret(name string) bool { return has(s.header, name) }

// IsSecretParam reports whether name, without escapes, is that of a secret query
// or form parameter.
func (s *Secrets) IsSecretParam(name string) bool {
	if has(s.query, name) {
		return true
	}
	if !strings.Contains(name, "[") {
		return false
	}
	for part := range strings.FieldsFuncSeq(name, isBracket) { // user[password]
		if has(s.query, part) {
			return true
		}
	}
	return false
}

func isBracket(r rune) bool { return r == '[' || r == ']' }

// Header is a copy of h with every value of a secret field masked. Cookie and
// Set-Cookie are masked as a whole, whatever cookies they carry. URLs in
// Location, Content-Location and Referer are masked as by URL. nil stays nil.
func (s *Secrets) Header(h http.Header) http.Header {
	if h == nil {
		return nil
	}
	shown := make(http.Header, len(h))
	for name, values := range h {
		shown[name] = s.values(name, values)
	}
	return shown
}

func (s *Secrets) values(name string, values []string) []string {
	var mask func(string) string
	switch {
	case s.IsSecret(name):
		mask = func(string) string { return Mask }
	case holdsURL(name):
		mask = s.RawURL
	default:
		return append([]string(nil), values...)
	}
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = mask(v)
	}
	return shown
}

func holdsURL(name string) bool {
	return strings.EqualFold(name, "Location") || strings.EqualFold(name, "Content-Location") ||
		strings.EqualFold(name, "Referer")
}

func has(set map[string]struct{}, name string) bool {
	var room [48]byte
	_, found := set[string(fold(room[:0], name))]
	return found
}

// fold appends to b what of name counts in a comparison.
func fold(b []byte, name string) []byte {
	for i := range len(name) {
		switch c := name[i]; {
		case c == '-', c == '_', c == ' ':
		case 'A' <= c && c <= 'Z':
			b = append(b, c+'a'-'A')
		default:
			b = append(b, c)
		}
	}
	return b
}
