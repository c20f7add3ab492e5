package auth

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxDigestChallenge bounds what a challenge can make us send and keep, in bytes.
const maxDigestChallenge = 8 << 10

// digestChallenge is a Digest challenge that can be answered (RFC 7616 section 3.3).
type digestChallenge struct {
	realm, nonce string
	opaque       string
	hasOpaque    bool
	algorithm    string // as it was sent; "" where it was not
	hash         digestAlgorithm
	session      bool   // the algorithm is one with "-sess"
	qop          string // the one to use: "auth", "auth-int", or "" for none (RFC 2069)
	stale        bool   // only the nonce was refused
	utf8         bool   // the server asked for UTF-8
	userhash     bool
}

// digestAlgorithm is a hash function and how strong it is compared with others.
type digestAlgorithm struct {
	new      func() hash.Hash
	strength int
}

// digestAlgorithms are those that are answered, by their name in upper case and without "-SESS".
var digestAlgorithms = map[string]digestAlgorithm{
	"MD5":         {md5.New, strengthMD5},
	"SHA-256":     {sha256.New, strengthSHA256},
	"SHA-512-256": {sha512.New512_256, strengthSHA512},
}

// strongestDigest is the strongest of the Digest challenges that can be answered, the first of equal ones.
func strongestDigest(challenges []Challenge) (best digestChallenge, ok bool) {
	for _, c := range challenges {
		d, can := parseDigest(c)
		if can && d.hash.strength > best.hash.strength {
			best, ok = d, true
		}
	}
	return best, ok
}

// parseDigest reports false for a challenge that is none of Digest, or that asks for what is unknown:
// such are to be passed over (RFC 7616 section 3.3, algorithm and qop).
func parseDigest(c Challenge) (digestChallenge, bool) {
	p := c.Params
	d := digestChallenge{
		realm:     p["realm"],
		nonce:     p["nonce"],
		opaque:    p["opaque"],
		algorithm: p["algorithm"],
		stale:     strings.EqualFold(p["stale"], "true"),
		utf8:      strings.EqualFold(p["charset"], "UTF-8"),
		userhash:  strings.EqualFold(p["userhash"], "true"),
	}
	_, d.hasOpaque = p["opaque"]
	if !c.Is("Digest") || d.nonce == "" || !d.sendable() {
		return d, false
	}
	name := strings.ToUpper(d.algorithm)
	if name == "" {
		name = "MD5"
	}
	name, d.session = strings.CutSuffix(name, "-SESS")
	var known bool
	d.hash, known = digestAlgorithms[name]
	return d, d.chooseQOP(p["qop"]) && known
}

// sendable reports whether what has to be sent back can be.
func (d *digestChallenge) sendable() bool {
	size := 0
	for _, s := range []string{d.realm, d.nonce, d.opaque, d.algorithm} {
		if !httpguts.ValidHeaderFieldValue(s) {
			return false
		}
		size += len(s)
	}
	return size <= maxDigestChallenge
}

// chooseQOP takes "auth" where it is offered: "auth-int" costs a second reading of the body, and not all
// who offer it can do it. It reports false where neither is.
func (d *digestChallenge) chooseQOP(offered string) bool {
	names := strings.FieldsFunc(strings.ToLower(offered), func(r rune) bool { return strings.ContainsRune(", \t", r) })
	for _, name := range names {
		if name == "auth" || name == "auth-int" && d.qop == "" {
			d.qop = name
		}
	}
	return d.qop != "" || len(names) == 0
}
