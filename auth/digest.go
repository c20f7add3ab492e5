package auth

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	"github.com/catena-http/catena/proxy"
)

// maxDigestRefusals is how many refusals by one server are looked at: the last ends it, although the server
// may say that the nonce alone was stale.
const maxDigestRefusals = 3

// Digest returns an Authenticator that answers Digest challenges with user and password (RFC 7616, and
// RFC 2617 and 2069 for older servers): an origin's 401 in Authorization, a proxy's 407, to a CONNECT or to
// a forwarded request, in Proxy-Authorization. To all else it answers nil.
//
// Of several challenges the strongest is answered, wherever it stands: SHA-512-256, SHA-256, then MD5,
// each with "-sess" too. Of the qualities of protection "auth" is taken where it is offered. "auth-int"
// alone makes it read the body by GetBody once more, to hash it; it is an error for a body without GetBody.
// Hashed and non-ASCII user names are sent as the server asks for (userhash, charset). Both strings count
// as UTF-8 and should be in Unicode's normalization form C. The server's domain parameter and its proof
// of knowing the password too (rspauth) are not looked at.
//
// It gives up when the credentials were refused and not for a stale nonce, and at the third refusal in a
// row whatever the reason. It counts the uses of nonces and learns the next one from
// Authentication-Info: use one Digest for many calls. Whoever asks is answered, as with [Basic].
func Digest(user, password string) Authenticator {
	d := &digest{user: user, password: password, cnonce: rand.Text}
	if strings.ContainsFunc(user, isControl) {
		d.err = errors.New("user name for Digest authentication has a control character")
	}
	return d
}

type digest struct {
	user, password string
	err            error         // why the user can't be sent, or nil
	cnonce         func() string // makes a new one
	nonces         digestNonces
}

func (d *digest) Authenticate(via proxy.Proxy, resp *http.Response) (*http.Request, error) {
	challenge, answer := fieldsOf(resp)
	if challenge == "" {
		return nil, nil
	}
	c, ok := strongestDigest(Challenges(resp.Header, challenge))
	switch {
	case !ok:
		return nil, nil
	case d.err != nil:
		return nil, d.err
	case resp.Request == nil:
		return nil, errNoRequest
	case d.isFinal(c, resp, answer):
		return nil, nil
	}
	cnonce := d.cnonce()
	use := d.nonces.answer(spaceOf(via, resp), c, cnonce)
	value, err := d.field(use, cnonce, resp.Request, resp.StatusCode)
	if err != nil {
		return nil, err
	}
	return withField(resp.Request, answer, value), nil
}

// isFinal reports whether another answer to c would be refused too: the request that resp refuses had our
// credentials for the realm, and they answered a challenge of a moment ago. Those that were sent ahead may
// have been refused for an old nonce, whether the server says so or not, unless it offers that nonce again.
func (d *digest) isFinal(c digestChallenge, resp *http.Response, answer string) bool {
	if refusals(resp) >= maxDigestRefusals {
		return true
	}
	sent, ok := parseCredentials(resp.Request.Header.Get(answer))
	if !ok || !sent.Is("Digest") || sent.Params["realm"] != c.realm || c.stale {
		return false
	}
	return refusedTwice(resp) || sent.Params["nonce"] == c.nonce
}

// field makes the answer with a nonce of which one use was taken.
func (d *digest) field(use digestNonce, cnonce string, req *http.Request, status int) (string, error) {
	a := digestAnswer{
		digestChallenge: use.challenge,
		user:            d.user,
		password:        d.password,
		method:          req.Method,
		uri:             requestTarget(req, status),
		count:           use.count,
		cnonce:          cnonce,
		first:           use.first,
	}
	if a.method == "" {
		a.method = http.MethodGet
	}
	if a.session {
		a.cnonce = use.first.cnonce // servers differ in which one the key is made from
	}
	if err := a.hashBody(req); err != nil {
		return "", err
	}
	return a.field(), nil
}

// ahead makes credentials for req with what is known of the realm; "" where nothing is.
func (d *digest) ahead(to target, req *http.Request) (string, error) {
	if !strings.EqualFold(to.scheme, "Digest") {
		return "", nil
	}
	use, ok := d.nonces.again(to.space, to.realm)
	if !ok {
		return "", nil
	}
	value, err := d.field(use, d.cnonce(), req, to.status)
	if errors.Is(err, errOneShotDigest) {
		return "", nil // the server may not ask for it here
	}
	return value, err
}

func (d *digest) strength(_ int, challenges []Challenge) int {
	c, _ := strongestDigest(challenges)
	return c.hash.strength
}

// Observe learns the next nonce (RFC 7616 section 3.5).
func (d *digest) Observe(via proxy.Proxy, resp *http.Response) {
	d.observe(via, resp, http.StatusUnauthorized, "Authentication-Info", "Authorization")
	d.observe(via, resp, http.StatusProxyAuthRequired, "Proxy-Authentication-Info", "Proxy-Authorization")
}

func (d *digest) observe(via proxy.Proxy, resp *http.Response, status int, info, answer string) {
	if resp.Request == nil || len(resp.Header.Values(info)) == 0 {
		return
	}
	sent, ok := parseCredentials(resp.Request.Header.Get(answer))
	if !ok || !sent.Is("Digest") {
		return
	}
	// Its parameters have no scheme before them; with one they read like credentials.
	said, ok := parseCredentials("Digest " + strings.Join(resp.Header.Values(info), ", "))
	if next := said.Params["nextnonce"]; ok && next != "" {
		d.nonces.replace(spaceFor(via, status, resp.Request), sent.Params["realm"], sent.Params["nonce"], next)
	}
}

// parseCredentials reads the value of Authorization or Proxy-Authorization (RFC 9110 section 11.4).
func parseCredentials(value string) (Challenge, bool) {
	all := parseChallenges(value)
	if len(all) != 1 {
		return Challenge{}, false
	}
	return all[0], true
}
