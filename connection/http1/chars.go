package http1

import "strings"

// Classes of bytes, as bits of charClass.
const (
	tokenByte  = 1 << iota // tchar (RFC 9110 5.6.2)
	valueByte              // of a field value or a reason phrase: VCHAR, obs-text, SP, HTAB (5.5)
	targetByte             // of a request target or a host: VCHAR, obs-text
)

var charClass = func() (class [256]uint8) {
	for ch := range 256 {
		if ch > ' ' && ch != 0x7f {
			class[ch] |= valueByte | targetByte
		}
	}
	class[' '] |= valueByte
	class['\t'] |= valueByte
	for _, ch := range "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" {
		class[ch] |= tokenByte
	}
	return class
}()

func allOf[T string | []byte](s T, class uint8) bool {
	for i := range len(s) {
		if charClass[s[i]]&class == 0 {
			return false
		}
	}
	return true
}

func isToken[T string | []byte](s T) bool { return len(s) > 0 && allOf(s, tokenByte) }

func isTarget(s string) bool { return allOf(s, targetByte) }

func isOWS(ch byte) bool { return ch == ' ' || ch == '\t' }

func trimOWS[T string | []byte](s T) T {
	for len(s) > 0 && isOWS(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isOWS(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// hasToken reports whether one of the comma-separated lists holds the token, in
// any case of letters (RFC 9110 5.6.1).
func hasToken(lists []string, token string) bool {
	for _, list := range lists {
		for more := true; more; {
			var element string
			if element, list, more = cutElement(list); sameToken(element, token) {
				return true
			}
		}
	}
	return false
}

// cutElement cuts the first element off a comma-separated list (RFC 9110 5.6.1). It
// is for loops that run once a call, where those of package strings cost a closure.
func cutElement(list string) (element, rest string, more bool) {
	element, rest, more = strings.Cut(list, ",")
	return trimOWS(element), rest, more
}

// sameToken compares tokens in any case of letters. Lengths are compared too,
// because Unicode folds letters outside ASCII, which are longer, to some in it.
func sameToken(s, token string) bool {
	return len(s) == len(token) && strings.EqualFold(s, token)
}
