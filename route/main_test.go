package route_test

import (
	"net/http"
	"net/url"
	"testing"

	"go.uber.org/goleak"

	"github.com/catena-http/catena/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testCall is the call that selectors report as.
type testCall struct{}

var _ event.Call = testCall{}

func (testCall) ID() uint64                               { return 1 }
func (testCall) Request() *http.Request                   { return nil }
func (testCall) RedactedHeader(h http.Header) http.Header { return h }
func (testCall) RedactedURL(u *url.URL) string            { return u.Redacted() }
