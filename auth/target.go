package auth

import "net/http"

// target is what credentials can be sent ahead to: a realm that asked for them before.
type target struct {
	space  space
	realm  string
	scheme string // of the credentials that answered
	status int    // by which it asked: 401, 407
}

// sender is an Authenticator of ours that makes credentials without a challenge.
type sender interface {
	// ahead is the value of the field for credentials in req, "" where it has none for to.
	ahead(to target, req *http.Request) (string, error)
}
