package redact

import (
	"net/url"
	"strings"
)

const (
	// hidden stands where a URL's password was, as in url.URL.Redacted.
	hidden = "xxxxx"
	// maxDepth is how many layers of percent-encoding are looked under.
	maxDepth = 3
)

// URL is u as text, without its password (the user stays) and with the values of
// secret parameters masked: those of the query, of a fragment that looks like
// one, of the segments of the path, and of a URL that is a parameter itself. It
// takes any URL, also one that could never be sent. A nil u is "".
func (s *Secrets) URL(u *url.URL) string {
	if u == nil {
		return ""
	}
	front := *u
	front.Host, front.Opaque = hideHost(u.Host), hideOpaque(u.Opaque)
	if _, has := u.User.Password(); has {
		front.User = url.UserPassword(u.User.Username(), hidden)
	}
	front.RawQuery, front.ForceQuery = "", false
	front.Fragment, front.RawFragment = "", ""

	path, rest := front.String(), ""
	if i := strings.IndexAny(path, "?#"); i >= 0 { // Opaque may have a query of its own
		path, rest = path[:i], path[i:]
	}
	shown := s.mask(path, '/', 0) + s.mask(rest, '&', 0)
	if u.RawQuery != "" || u.ForceQuery {
		shown += "?" + s.mask(u.RawQuery, '&', 0)
	}
	if u.Fragment != "" {
		shown += "#" + s.mask(u.EscapedFragment(), '&', 0)
	}
	return shown
}

// RawURL is URL for text that should be a URL, absolute or relative. Text that
// can't be parsed is masked as a whole.
func (s *Secrets) RawURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return Mask
	}
	return s.URL(u)
}

// hideHost serves a Host that wrongly holds user info.
func hideHost(host string) string {
	at := strings.LastIndexByte(host, '@')
	if at < 0 {
		return host
	}
	user, _, has := strings.Cut(host[:at], ":")
	if !has {
		return host
	}
	return user + ":" + hidden + host[at:]
}

// hideOpaque hides the password of "//user:password@host/path". Where there are
// no slashes, as in what remains of a "user:password@host" whose user was taken
// for a scheme, all before the @ is hidden.
func hideOpaque(opaque string) string {
	authority, slashes := strings.CutPrefix(opaque, "//")
	end := strings.IndexAny(authority, "/?#")
	if end < 0 {
		end = len(authority)
	}
	authority, rest := authority[:end], authority[end:]
	if slashes {
		return "//" + hideHost(authority) + rest
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		return hidden + authority[at:] + rest
	}
	return opaque
}

// mask replaces in text the values of secret parameters, each of which goes on
// to the next end, whatever separates parameters elsewhere. It takes time in
// proportion to the text.
func (s *Secrets) mask(text string, end byte, depth int) string {
	var shown strings.Builder
	kept := 0 // text before it is in shown
	for start := 0; start < len(text); {
		stop := len(text)
		if i := strings.IndexAny(text[start:], "&;?/#="); i >= 0 {
			stop = start + i
		}
		from := s.secretFrom(text, start, stop, depth)
		if from < 0 {
			start = stop + 1
			continue
		}
		shown.WriteString(text[kept:from])
		shown.WriteString(Mask)
		kept = len(text)
		if i := strings.IndexByte(text[from:], end); i >= 0 {
			kept = from + i
		}
		start = kept + 1
	}
	if kept == 0 {
		return text
	}
	shown.WriteString(text[kept:])
	return shown.String()
}

// secretFrom says where a secret begins by what the word text[start:stop] tells:
// after it, if it is the name of one; with it, if there is one under its escapes;
// -1 if there is none.
func (s *Secrets) secretFrom(text string, start, stop, depth int) int {
	word := text[start:stop]
	named := stop < len(text) && text[stop] == '='
	if !strings.ContainsAny(word, "%+") {
		if named && s.IsSecretParam(word) {
			return stop + 1
		}
		return -1
	}
	if depth == maxDepth {
		return -1
	}
	word = unescape(word)
	if s.mask(word, '&', depth+1) != word {
		return start
	}
	if word += "="; named && s.mask(word, '&', depth+1) != word {
		return stop + 1
	}
	return -1
}

// unescape decodes what can be decoded and keeps the rest.
func unescape(text string) string {
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '+':
			b = append(b, ' ')
		case c == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]):
			b = append(b, nibble(text[i+1])<<4|nibble(text[i+2]))
			i += 2
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func nibble(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
