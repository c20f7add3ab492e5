package auth

import (
	"net/http"
	"slices"

	"github.com/catena-http/catena/proxy"
)

// How strong a challenge is, compared with others that the same response offers.
const (
	strengthBasic = iota + 1
	strengthMD5
	strengthSHA256
	strengthSHA512
	strengthBearer
)

// ranked is an Authenticator of ours that says what it could answer.
type ranked interface {
	Authenticator

	// strength is that of the strongest of the challenges that it can answer, 0 if it can answer none.
	strength(status int, challenges []Challenge) int
}

// Strongest returns an Authenticator that answers the strongest challenge for which one of the given can:
// Bearer before Digest (SHA-512-256, SHA-256, MD5) before Basic, wherever they stand in the response; of
// equals the first given. When that one gives up, so does Strongest: a password that Digest protected is
// not sent in the clear because it was refused. For the same reason Basic does not answer
// [PreemptiveScheme] where others of this package are given: the proxy may want one of them.
//
// Authenticators that are not this package's, of which nobody knows what they can, are asked before all
// others, in the order given; nil means that they can't.
func Strongest(authenticators ...Authenticator) Authenticator {
	return &strongest{slices.Clone(authenticators)}
}

type strongest struct{ all []Authenticator }

func (s *strongest) Authenticate(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
	challenge, _ := fieldsOf(resp)
	if challenge == "" {
		return nil, nil
	}
	challenges := Challenges(resp.Header, challenge)
	tooEarly := isPreemptive(resp) && slices.ContainsFunc(s.all, strongerThanBasic)
	var best ranked
	most := 0
	for _, a := range s.all {
		r, ok := a.(ranked)
		if !ok {
			if next, err := a.Authenticate(via, resp); next != nil || err != nil {
				return next, err
			}
			continue
		}
		if tooEarly {
			continue
		}
		if can := r.strength(resp.StatusCode, challenges); can > most {
			best, most = r, can
		}
	}
	if best == nil {
		return nil, nil
	}
	return best.Authenticate(via, resp)
}

// strongerThanBasic reports whether a is ours and answers more than Basic.
func strongerThanBasic(a Authenticator) bool {
	switch a := a.(type) {
	case *basic:
		return false
	case *strongest:
		return slices.ContainsFunc(a.all, strongerThanBasic)
	default:
		_, ok := a.(ranked)
		return ok
	}
}

func (s *strongest) strength(status int, challenges []Challenge) int {
	most := 0
	for _, a := range s.all {
		if r, ok := a.(ranked); ok {
			most = max(most, r.strength(status, challenges))
		}
	}
	return most
}

func (s *strongest) ahead(to target, req *http.Request) (string, error) {
	for _, a := range s.all {
		f, ok := a.(sender)
		if !ok {
			continue
		}
		if value, err := f.ahead(to, req); value != "" || err != nil {
			return value, err
		}
	}
	return "", nil
}

// Observe lets all see the response.
func (s *strongest) Observe(via proxy.Proxy, resp *http.Response) {
	for _, a := range s.all {
		if o, ok := a.(Observer); ok {
			o.Observe(via, resp)
		}
	}
}
