package redact

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// longest is how much of a URL that can't be parsed is shown, in bytes.
const longest = 64

// Unparsable is err, which parsing text gave, in a sentence about what, "the URL".
// It shows of text what can be shown, and nothing of what package url quotes: that
// may be a part of a password. An error that is not of parsing stays as it is.
func Unparsable(what, text string, err error) error {
	var u *url.Error
	if !errors.As(err, &u) {
		return err
	}
	if shown := showable(text); shown != "" {
		what = fmt.Sprintf("%s %q", what, shown)
	}
	reason, _, _ := strings.Cut(u.Err.Error(), `"`)
	return fmt.Errorf("%s can't be parsed: %s", what, strings.TrimSpace(reason))
}

// showable is the part of text ahead of its query, from the host on where there
// may be a user and a password in front; "" where what is what can't be told.
func showable(text string) string {
	front, rest := text, ""
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		front, rest = text[:i], text[i:]
	}
	if strings.ContainsRune(rest, '@') {
		return "" // the query may be a part of the password
	}
	if at := strings.LastIndexByte(front, '@'); at >= 0 {
		front = "..." + front[at:]
	}
	if len(front) > longest {
		front = front[:longest] + "..."
	}
	return front
}
