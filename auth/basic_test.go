package auth_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// refusal is a response with the status and the challenge in the field that belongs to it.
func refusal(t *testing.T, status int, challenges ...string) *http.Response {
	t.Helper()
	name := map[int]string{401: "Www-Authenticate", 407: "Proxy-Authenticate"}[status]
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://a.test/", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Kept", "1")
	return &http.Response{StatusCode: status, Header: http.Header{name: challenges}, Request: req, Body: http.NoBody}
}

func basicValue(credentials string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
}

func TestBasic(t *testing.T) {
	tests := []struct {
		name       string
		status     int
		challenges []string
		field      string // the one for the answer, "" for giving up
	}{
		{"origin", 401, []string{`Basic realm="x"`}, "Authorization"},
		{"proxy", 407, []string{`Basic realm="x"`}, "Proxy-Authorization"},
		{"case of the scheme", 401, []string{`bASIC realm="x"`}, "Authorization"},
		{"without realm", 401, []string{"Basic"}, "Authorization"},
		{"among others", 401, []string{"Negotiate", `Digest realm="x", nonce="n", Basic realm="y"`}, "Authorization"},
		{"UTF-8 asked for", 401, []string{`Basic realm="x", charset="UTF-8"`}, "Authorization"},
		{"ahead of a proxy's refusal", 407, []string{"Catena-Preemptive"}, "Proxy-Authorization"},
		{"an origin is not asked ahead", 401, []string{"Catena-Preemptive"}, ""},
		{"other schemes", 401, []string{`Digest realm="Basic"`, "Negotiate"}, ""},
		{"no challenge", 401, nil, ""},
		{"malformed challenge", 401, []string{`Basic realm="x`}, ""},
		{"no refusal", 403, []string{`Basic realm="x"`}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := refusal(t, tt.status, tt.challenges...)
			if tt.status == 403 {
				resp.Header = http.Header{"": {"Basic"}, "Www-Authenticate": tt.challenges}
			}
			before := resp.Request.Header.Clone()
			got, err := auth.Basic("Aladdin", "open sesame").Authenticate(proxy.Proxy{}, resp)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, resp.Request.Header); diff != "" {
				t.Errorf("the refused request was changed (-before +after):\n%s", diff)
			}
			if tt.field == "" {
				if got != nil {
					t.Fatalf("answered with %v, want it to give up", got.Header)
				}
				return
			}
			if got == nil || got == resp.Request {
				t.Fatalf("got %p, want a clone of the request %p", got, resp.Request)
			}
			want := http.Header{"X-Kept": {"1"}, tt.field: {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}} // RFC 7617 section 2
			if diff := cmp.Diff(want, got.Header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			if got.Context() != resp.Request.Context() || got.Method != "POST" || got.URL.String() != "http://a.test/" {
				t.Errorf("the answer %v is not the request again", got)
			}
		})
	}
}

func TestBasicEncoding(t *testing.T) {
	tests := []struct{ user, password, want string }{
		{"test", "123\u00a3", "Basic dGVzdDoxMjPCow=="}, // RFC 7617 section 2.1
		{"", "", basicValue(":")},
		{"me", "a:b", basicValue("me:a:b")},
	}
	for _, tt := range tests {
		for _, challenge := range []string{`Basic realm="x"`, `Basic realm="x", charset="UTF-8"`} {
			got, err := auth.Basic(tt.user, tt.password).Authenticate(proxy.Proxy{}, refusal(t, 401, challenge))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Header.Get("Authorization")); diff != "" {
				t.Errorf("%q and %q for %s (-want +got):\n%s", tt.user, tt.password, challenge, diff)
			}
		}
	}
}

func TestBasicGivesUp(t *testing.T) {
	own, other := basicValue("me:pw"), basicValue("me:old")
	tests := []struct {
		name, field, value string
		status             int
		answered           bool
	}{
		{"same at the origin", "Authorization", own, 401, false},
		{"same at the proxy", "Proxy-Authorization", own, 407, false},
		{"others at the origin", "Authorization", other, 401, true},
		{"others at the proxy", "Proxy-Authorization", other, 407, true},
		{"at the origin, asked by the proxy", "Authorization", own, 407, true},
		{"at the proxy, asked by the origin", "Proxy-Authorization", own, 401, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := refusal(t, tt.status, `Basic realm="x"`)
			resp.Request.Header.Set(tt.field, tt.value)
			got, err := auth.Basic("me", "pw").Authenticate(proxy.Proxy{}, resp)
			if err != nil {
				t.Fatal(err)
			}
			if (got != nil) != tt.answered {
				t.Errorf("answered with %v, want an answer: %v", got, tt.answered)
			}
		})
	}
}

func TestBasicErrors(t *testing.T) {
	tests := []struct{ user, password, want string }{
		{"m:e", "hunter2", "user name for Basic authentication has a colon"},
		{"me\n", "hunter2", "user name for Basic authentication has a control character"},
		{"me", "hunter2\x00", "password for Basic authentication has a control character"},
		{"me", "hunter2\x7f", "password for Basic authentication has a control character"},
	}
	for _, tt := range tests {
		a := auth.Basic(tt.user, tt.password)
		got, err := a.Authenticate(proxy.Proxy{}, refusal(t, 401, "Basic"))
		if err == nil || got != nil {
			t.Errorf("%q and %q: got %v and no error", tt.user, tt.password, got)
			continue
		}
		if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
			t.Errorf("%q and %q (-want +got):\n%s", tt.user, tt.password, diff)
		}
		if got, err := a.Authenticate(proxy.Proxy{}, refusal(t, 401, "Negotiate")); got != nil || err != nil {
			t.Errorf("%q and %q: got %v, %v where nothing is to be answered", tt.user, tt.password, got, err)
		}
	}
}

func TestBasicWithBareResponses(t *testing.T) {
	resp := refusal(t, 401, "Basic")
	resp.Request = nil
	if got, err := auth.Basic("me", "pw").Authenticate(proxy.Proxy{}, resp); got != nil || err == nil {
		t.Errorf("got %v, %v for a response without request, want an error", got, err)
	}
	resp.Request = new(http.Request).WithContext(context.Background())
	got, err := auth.Basic("me", "pw").Authenticate(proxy.Proxy{}, resp)
	if err != nil || got.Header.Get("Authorization") != basicValue("me:pw") {
		t.Errorf("got %v, %v for a request without header", got, err)
	}
}
