package catena_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// answering sets fields in each answer, with the answer's number for "%d".
func answering(fields ...string) auth.Authenticator {
	n := 0
	return auth.AuthenticatorFunc(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
		next := resp.Request.Clone(resp.Request.Context())
		for i := 0; i < len(fields); i += 2 {
			next.Header.Set(fields[i], strings.ReplaceAll(fields[i+1], "%d", strconv.Itoa(n)))
		}
		n++
		return next, nil
	})
}

// TestRefusedCredentialsAreNotRepeated: what was just refused is not sent again, whoever answers.
func TestRefusedCredentialsAreNotRepeated(t *testing.T) {
	const basicMe = "Basic bWU6cHc="
	for _, test := range []struct {
		name   string
		status int
		a      auth.Authenticator
		change func(req *http.Request)
		sent   int
		why    event.Reason
	}{
		{"the same again", 401, answering("Authorization", "Code"), nil, 2, event.ReasonRepeated},
		{"the same request", 401, auth.AuthenticatorFunc(func(_ proxy.Proxy, resp *http.Response) (*http.Request, error) {
			resp.Request.Header.Set("Authorization", "x")
			return resp.Request, nil
		}), nil, 1, event.ReasonRepeated},
		{"a second factor that stays", 401, answering("Authorization", "Code", "X-Otp", "1"), nil, 2, event.ReasonRepeated},
		{"the application's own", 401, answering("Authorization", "Code"), func(req *http.Request) { req.Header.Set("Authorization", "Code") }, 1, event.ReasonRepeated},
		{"the URL's own", 401, answering("Authorization", basicMe+""), func(req *http.Request) { req.URL.User = url.UserPassword("me", "pw") }, 1, event.ReasonRepeated},
		{"others than the URL's", 401, auth.Basic("you", "pw"), func(req *http.Request) { req.URL.User = url.UserPassword("me", "pw") }, 2, event.ReasonAuthenticatorDone},
		{"new ones each time", 401, answering("Authorization", "Code %d"), nil, 21, event.ReasonTooManyFollowUps},
		{"a second factor that changes", 401, answering("Authorization", "Code", "X-Otp", "%d"), nil, 21, event.ReasonTooManyFollowUps},
		{"Basic", 401, auth.Basic("me", "pw"), nil, 2, event.ReasonAuthenticatorDone},
		{"Digest", 401, auth.Digest("me", "pw"), nil, 3, event.ReasonAuthenticatorDone}, // always stale
		{"the same at a proxy", 407, answering("Proxy-Authorization", "Code"), nil, 2, event.ReasonRepeated},
		{"Digest at a proxy", 407, auth.Digest("me", "pw"), nil, 3, event.ReasonAuthenticatorDone},
	} {
		t.Run(test.name, func(t *testing.T) {
			peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
				for c.readRequest() {
					challenge := fmt.Sprintf(`Digest realm="r", nonce="%d", qop="auth", stale=true, Basic realm="r", Code`, len(c.peer.seen()))
					c.send(rawAnswer(fmt.Sprint(test.status, " No"), "who?", "WWW-Authenticate: "+challenge, "Proxy-Authenticate: "+challenge))
				}
			})
			recorder := event.NewRecorder()
			opts := []catena.Option{catena.WithEventListener(recorder), catena.WithAuthenticator(test.a)}
			if test.status == 407 {
				via, err := proxy.Parse(peer.url(""))
				if err != nil {
					t.Fatal(err)
				}
				opts = append(opts, catena.WithProxy(via), catena.WithProxyAuthenticator(test.a))
			}
			req := bodyRequest(t, "POST", peer.url("/"), "body")
			if test.change != nil {
				test.change(req)
			}
			want := fmt.Sprintf(`%d "who?"`, test.status)
			if test.why == event.ReasonTooManyFollowUps {
				want = "error: protocol"
			}
			if got := outcomeOf(h1Client(t, opts...).Do(req)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if n := len(peer.seen()); n != test.sent {
				t.Errorf("%d requests, want %d", n, test.sent)
			}
			last := lastDecision(recorder)
			if diff := cmp.Diff(test.why, last); diff != "" {
				t.Errorf("the last decision (-want +got):\n%s", diff)
			}
		})
	}
}

// lastDecision is the reason of the last FollowUpDecision.
func lastDecision(r *event.Recorder) (last event.Reason) {
	for _, e := range r.Events() {
		if e.Name == "FollowUpDecision" {
			last = e.Why
		}
	}
	return last
}

// TestProxysOwnCredentialsAreNotRepeated: a plain proxy that refuses those of its URL does not get them again.
func TestProxysOwnCredentialsAreNotRepeated(t *testing.T) {
	peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
		for c.readRequest() {
			c.send(rawAnswer("407 No", "who?", "Proxy-Authenticate: Basic"))
		}
	})
	via, err := proxy.Parse("http://me:pw@" + peer.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for user, sent := range map[string]int{"me": 1, "you": 2} {
		before := len(peer.seen())
		client := h1Client(t, catena.WithProxy(via), catena.WithProxyAuthenticator(auth.Basic(user, "pw")))
		if got := outcomeOf(client.Do(bodyRequest(t, "GET", "http://a.test/", ""))); got != `407 "who?"` {
			t.Error(got)
		}
		if n := len(peer.seen()) - before; n != sent {
			t.Errorf("%s: %d requests, want %d", user, n, sent)
		}
	}
}
