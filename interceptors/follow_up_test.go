package interceptors

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/redact"
	"github.com/catena-http/catena/proxy"
)

// respondedTo is a response with status, and the settings of a client that
// follows; change makes it another one.
func respondedTo(status int, change func(f *follower)) follower {
	u := &url.URL{Scheme: "https", Host: "example.com", Path: "/a"}
	f := follower{
		config: &chain.Config{
			FollowUps: true, FollowRedirects: true, FollowSSLRedirects: true, RetryOnConnectionFailure: true,
		},
		secrets: redact.New(),
		resp: &http.Response{
			StatusCode: status, Header: http.Header{}, Body: http.NoBody,
			Request: &http.Request{Method: "GET", URL: u, Header: http.Header{}},
		},
	}
	change(&f)
	return f
}

func header(name, value string) func(f *follower) {
	return func(f *follower) { f.resp.Header.Set(name, value) }
}

// prior puts a response with the same status before.
func prior(f *follower) { f.resp.Request.Response = &http.Response{StatusCode: f.resp.StatusCode} }

func all(changes ...func(f *follower)) func(f *follower) {
	return func(f *follower) {
		for _, change := range changes {
			change(f)
		}
	}
}

var answers = auth.AuthenticatorFunc(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) { return resp.Request, nil })

// followUpTable has a response for each line of the page.
var followUpTable = []struct {
	statuses, and string
	change        func(f *follower)
	what          string // follows
}{
	{"300, 301, 302, 303, 307, 308", "a usable `Location`", header("Location", "/b"), "the redirect"},
	{"300, 301, 302, 303, 307, 308", "no, an empty, an unusable or an ambiguous `Location`", header("Location", "mailto:x"), "nothing"},
	{"300, 301, 302, 303, 307, 308", "`WithFollowRedirects(false)`",
		all(header("Location", "/b"), func(f *follower) { f.config.FollowRedirects = false }), "nothing"},
	{"300, 301, 302, 303, 307, 308", "another scheme and `WithFollowSSLRedirects(false)`",
		all(header("Location", "http://example.com/"), func(f *follower) { f.config.FollowSSLRedirects = false }), "nothing"},
	{"401", "an authenticator that answers", func(f *follower) { f.config.Authenticator = answers }, "its request"},
	{"401", "no authenticator, or one that gives up", func(*follower) {}, "nothing"},
	{"401", "an authenticator that answers with what was refused", func(f *follower) {
		f.config.Authenticator = answers
		f.resp.Request.Header.Set("Authorization", "Basic bWU6eA==")
	}, "nothing"},
	{"407", "from an origin", func(*follower) {}, "an error"},
	{"408", "the first one", func(*follower) {}, "the same request"},
	{"408", "the response before was a 408", prior, "nothing"},
	{"408", "a `Retry-After` other than 0", header("Retry-After", "5"), "nothing"},
	{"408", "`WithRetryOnConnectionFailure(false)`", func(f *follower) { f.config.RetryOnConnectionFailure = false }, "nothing"},
	{"417", "a request with `Expect`", func(f *follower) { f.resp.Request.Header.Set("Expect", "100-continue") }, "the same request without `Expect`"},
	{"417", "a request without `Expect`", func(*follower) {}, "nothing"},
	{"503", "`Retry-After: 0`", header("Retry-After", "0"), "the same request"},
	{"503", "`Retry-After: 0`, and the response before was a 503", all(header("Retry-After", "0"), prior), "nothing"},
	{"503", "no `Retry-After`, or another one", header("Retry-After", "1"), "nothing"},
	{"any other", "", func(*follower) {}, "nothing"},
}

func TestFollowUpTable(t *testing.T) {
	var got [][]string
	for _, row := range followUpTable {
		reasons := map[event.Reason]bool{}
		statuses := strings.Split(row.statuses, ", ")
		if row.statuses == "any other" {
			statuses = []string{"200", "204", "206", "304", "305", "306", "400", "403", "404", "410", "413", "425", "429", "500", "502", "504", "599"}
		}
		for _, status := range statuses {
			code, _ := strconv.Atoi(status)
			next, why, err := respondedTo(code, row.change).next()
			reasons[why] = true
			if follows := !strings.HasPrefix(row.what, "nothing") && row.what != "an error"; follows != (next != nil) {
				t.Errorf("%s, %s: next is %v", status, row.and, next)
			}
			if (err != nil) != (row.what == "an error") {
				t.Errorf("%s, %s: error %v", status, row.and, err)
			}
		}
		for why := range reasons {
			got = append(got, []string{row.statuses, strings.Trim(row.and, " `"), strings.Trim(row.what, " `"), string(why)})
		}
	}
	if diff := cmp.Diff(documented(t, "follow-ups"), got); diff != "" {
		t.Errorf("docs/connections.md and the code (-page +code):\n%s", diff)
	}
}

// TestRetryAfter: only exactly 0, once, means at once.
func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		values []string
		after  bool // a 503 is followed
	}{
		{nil, false}, {[]string{"0"}, true}, {[]string{"-1"}, false}, {[]string{"abc"}, false}, {[]string{""}, false},
		{[]string{"0", "0"}, false}, {[]string{"Thu, 01 Jan 1970 00:00:00 GMT"}, false}, {[]string{"00"}, false}, {[]string{"5"}, false},
	} {
		next, _, _ := respondedTo(503, func(f *follower) { f.resp.Header["Retry-After"] = test.values }).next()
		if (next != nil) != test.after {
			t.Errorf("Retry-After %q: followed %v, want %v", test.values, next != nil, test.after)
		}
	}
}

func TestRoundTripperFollowsNothing(t *testing.T) {
	for _, status := range []int{301, 303, 308, 401, 407, 408, 417, 421, 503} {
		f := respondedTo(status, all(header("Location", "/b"), header("Retry-After", "0"), func(f *follower) {
			f.config.FollowUps, f.config.Authenticator = false, answers
		}))
		if next, why, err := f.next(); next != nil || err != nil {
			t.Errorf("%d: next %v, %s, %v", status, next, why, err)
		}
	}
}
