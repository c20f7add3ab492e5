package redact_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/catena-http/catena/internal/redact"
)

func TestUnparsable(t *testing.T) {
	for text, want := range map[string]string{
		"http://host.test:port/path":          `the URL "http://host.test:port/path" can't be parsed: invalid port`,
		"http://ho st/?token=secret":          `the URL "http://ho st/" can't be parsed: invalid character`,
		"http://ho st/#token=secret":          `the URL "http://ho st/" can't be parsed: invalid character`,
		"http://user:secret@host.test:port/":  `the URL "...@host.test:port/" can't be parsed: invalid port`,
		"http://user:sec@ret@host.test:port/": `the URL "...@host.test:port/" can't be parsed: invalid port`,
		"http://user:sec/ret@host.test/":      `the URL "...@host.test/" can't be parsed: invalid port`,
		"http://user:sec?ret@host.test:port/": `the URL can't be parsed: invalid port`,
		"http://user:sec#ret@host.test:port/": `the URL can't be parsed: invalid port`,
		"http://h t/" + strings.Repeat("a", 99): fmt.Sprintf(`the URL "http://h t/%s..." can't be parsed: invalid character`,
			strings.Repeat("a", 53)),
	} {
		_, err := url.Parse(text)
		if err == nil {
			t.Fatalf("%q can be parsed", text)
		}
		if got := redact.Unparsable("the URL", text, err).Error(); got != want {
			t.Errorf("%q: %s; want %s", text, got, want)
		}
	}
	if other := errors.New("other"); redact.Unparsable("the URL", "x", other) != other {
		t.Error("another error did not stay as it is")
	}
}
