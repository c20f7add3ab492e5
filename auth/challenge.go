package auth

import (
	"net/http"
	"strings"
)

// Challenge is one way a server or proxy offers to authenticate (RFC 9110 section 11.3).
type Challenge struct {
	Scheme  string            // as it was sent; compare it with strings.EqualFold
	Params  map[string]string // names in lower case, values unquoted; nil if there are none
	Token68 string            // the value that some schemes (Negotiate, NTLM) send in place of parameters
}

// Is reports whether c is of the scheme, whose case does not matter.
func (c Challenge) Is(scheme string) bool { return strings.EqualFold(c.Scheme, scheme) }

// Challenges returns the challenges in h's fields called name, which is "WWW-Authenticate" or
// "Proxy-Authenticate", in the order they came (RFC 9110 section 11.6.1).
//
// It reads what servers send rather than the grammar alone: a value need not be quoted to hold any
// character but white space, comma and quote, and stray commas are passed over. Parameters without a
// scheme before them, or after a token68, are dropped. A challenge that repeats a parameter or has
// something unreadable in it is left out; the others stay, up to a quote that is never closed, which
// ends its field.
func Challenges(h http.Header, name string) []Challenge {
	var all []Challenge
	for _, value := range h.Values(name) {
		all = append(all, parseChallenges(value)...)
	}
	return all
}

// challengeParser walks over the elements of one field value. An element is a scheme with or without
// something behind it, or one more parameter of the challenge before it.
type challengeParser struct {
	rest string
	done []Challenge
	cur  Challenge
	bad  bool // cur is left out of done
}

func parseChallenges(value string) []Challenge {
	p := challengeParser{rest: value}
	for p.skip(" \t,"); p.rest != ""; p.skip(" \t,") {
		if p.element() && p.atEnd() {
			continue
		}
		p.bad = true
		if !p.skipElement() {
			break
		}
	}
	p.finish()
	return p.done
}

// finish ends the current challenge. There is none before the first scheme.
func (p *challengeParser) finish() {
	if p.cur.Scheme != "" && !p.bad {
		p.done = append(p.done, p.cur)
	}
	p.cur, p.bad = Challenge{}, false
}

// element reads one element as far as it understands it, and reports whether it did.
func (p *challengeParser) element() bool {
	before := p.rest
	word := p.take(isTokenChar)
	if word == "" {
		return false
	}
	p.skip(" \t")
	if strings.HasPrefix(p.rest, "=") {
		p.rest = before
		return p.param()
	}
	p.finish()
	p.cur.Scheme = word
	return p.atEnd() || p.token68() || p.param()
}

// token68 reads a value that has the element for itself: "abc==" is one and "abc=x" is none.
func (p *challengeParser) token68() bool {
	before := p.rest
	value := p.take(isToken68Char) + p.take(func(c byte) bool { return c == '=' })
	if !p.atEnd() {
		p.rest = before
		return false
	}
	p.cur.Token68 = value
	return true
}

// param reads a name, "=" and a value.
func (p *challengeParser) param() bool {
	name := strings.ToLower(p.take(isTokenChar))
	p.skip(" \t")
	if name == "" || !strings.HasPrefix(p.rest, "=") {
		return false
	}
	p.rest = p.rest[1:]
	p.skip(" \t")
	value, ok := p.value()
	if !ok {
		return false
	}
	if p.cur.Scheme == "" || p.cur.Token68 != "" {
		return true
	}
	if _, repeated := p.cur.Params[name]; repeated {
		p.bad = true
	}
	if p.cur.Params == nil {
		p.cur.Params = make(map[string]string)
	}
	p.cur.Params[name] = value
	return true
}

func (p *challengeParser) value() (string, bool) {
	if !strings.HasPrefix(p.rest, `"`) {
		return p.take(func(c byte) bool { return strings.IndexByte(" \t,\"", c) < 0 }), true
	}
	return p.quoted()
}

// quoted reads a quoted string (RFC 9110 section 5.6.4). It fails, and reads nothing, if that has no end.
func (p *challengeParser) quoted() (string, bool) {
	var text strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return text.String(), true
		case c == '\\' && i+1 < len(p.rest):
			i++
			text.WriteByte(p.rest[i])
		default:
			text.WriteByte(c)
		}
	}
	return "", false
}

// skipElement skips to the next comma outside of quotes. It reports false if a quote is never closed,
// since nobody can tell what is inside of it then.
func (p *challengeParser) skipElement() bool {
	for p.rest != "" && p.rest[0] != ',' {
		if p.rest[0] != '"' {
			p.rest = p.rest[1:]
		} else if _, ok := p.quoted(); !ok {
			return false
		}
	}
	return true
}

// atEnd reports whether nothing more of the element follows.
func (p *challengeParser) atEnd() bool {
	p.skip(" \t")
	return p.rest == "" || p.rest[0] == ','
}

func (p *challengeParser) skip(chars string) { p.rest = strings.TrimLeft(p.rest, chars) }

// take returns the longest prefix of which every byte is wanted.
func (p *challengeParser) take(wanted func(c byte) bool) string {
	n := 0
	for n < len(p.rest) && wanted(p.rest[n]) {
		n++
	}
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	return taken
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// isTokenChar is tchar of RFC 9110 section 5.6.2.
func isTokenChar(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// isToken68Char tells the characters of a token68 before the "=" at its end (RFC 9110 section 11.2).
func isToken68Char(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("-._~+/", c) >= 0
}
