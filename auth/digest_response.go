package auth

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// errOneShotDigest is why a body that can be read once only is not protected.
var errOneShotDigest = errors.New("digest authentication with qop=auth-int reads the body twice, and this body can't be: the request has no GetBody")

// digestAnswer is all that one Digest response is made from (RFC 7616 section 3.4).
type digestAnswer struct {
	digestChallenge
	user, password string
	method, uri    string
	body           string // its hash, for auth-int
	count          uint32 // of the nonce's uses, this one included
	cnonce         string
	first          firstNonces // for "-sess"
}

// firstNonces are what the key of an algorithm with "-sess" was made from: the nonce of the challenge, and
// the cnonce of the first answer to it.
type firstNonces struct{ nonce, cnonce string }

// H is the hash of the parts, joined by colons, in hexadecimal.
func (a *digestAnswer) h(parts ...string) string {
	h := a.hash.new()
	io.WriteString(h, strings.Join(parts, ":"))
	return hex.EncodeToString(h.Sum(nil))
}

func (a *digestAnswer) nc() string { return fmt.Sprintf("%08x", a.count) }

// response is RFC 7616 section 3.4.1, and RFC 2069's where the server names no qop.
func (a *digestAnswer) response() string {
	a1 := a.h(a.user, a.realm, a.password)
	if a.session {
		a1 = a.h(a1, a.first.nonce, a.first.cnonce)
	}
	a2 := a.h(a.method, a.uri)
	switch a.qop {
	case "":
		return a.h(a1, a.nonce, a2)
	case "auth-int":
		a2 = a.h(a.method, a.uri, a.body)
	}
	return a.h(a1, a.nonce, a.nc(), a.cnonce, a.qop, a2)
}

// field is the value of Authorization or Proxy-Authorization. What is quoted in it and what is not is laid
// down (RFC 7616 section 3.4): servers insist.
func (a *digestAnswer) field() string {
	var b strings.Builder
	b.WriteString("Digest ")
	a.putUser(&b)
	put := func(name, value string) { b.WriteString(", " + name + "=" + value) }
	put("realm", quote(a.realm))
	put("uri", quote(a.uri))
	if a.algorithm != "" {
		put("algorithm", a.algorithm)
	}
	put("nonce", quote(a.nonce))
	if a.qop != "" {
		put("nc", a.nc())
	}
	if a.qop != "" || a.session {
		put("cnonce", quote(a.cnonce))
	}
	if a.qop != "" {
		put("qop", a.qop)
	}
	put("response", quote(a.response()))
	if a.hasOpaque {
		put("opaque", quote(a.opaque))
	}
	if a.userhash {
		put("userhash", "true")
	}
	return b.String()
}

// putUser writes the user's name hashed, or encoded where the server knows of UTF-8 and the name needs it,
// or as it is.
func (a *digestAnswer) putUser(b *strings.Builder) {
	switch {
	case a.userhash:
		b.WriteString("username=" + quote(a.h(a.user, a.realm)))
	case a.utf8 && !isASCII(a.user):
		b.WriteString("username*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(a.user), "+", "%20")) // RFC 8187
	default:
		b.WriteString("username=" + quote(a.user))
	}
}

// hashBody sets what auth-int needs of req.
func (a *digestAnswer) hashBody(req *http.Request) error {
	if a.qop != "auth-int" {
		return nil
	}
	h := a.hash.new()
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return errOneShotDigest
		}
		if err := copyBody(h, req); err != nil {
			return fmt.Errorf("read the body for digest authentication: %w", err)
		}
	}
	a.body = hex.EncodeToString(h.Sum(nil))
	return nil
}

// copyBody reads the body once more, unless req's context ends: that closes the body, and no more of it is
// read.
func copyBody(to io.Writer, req *http.Request) error {
	body, err := req.GetBody()
	if err != nil {
		return err
	}
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { body.Close() })
	_, err = io.Copy(to, interruptible{ctx, body})
	if !stop() {
		return context.Cause(ctx)
	}
	body.Close()
	return err
}

// interruptible is a Reader that ends with its context, between two reads.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// quote is s as a quoted string (RFC 9110 section 5.6.4).
func quote(s string) string { return `"` + quoter.Replace(s) + `"` }

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
