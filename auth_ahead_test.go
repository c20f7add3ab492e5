package catena_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// eager is a Preemptive of the application's: it answers no challenge.
type eager func(req *http.Request) error

func (e eager) Authenticate(proxy.Proxy, *http.Response) (*http.Request, error) { return nil, nil }
func (e eager) Authorize(req *http.Request) error                               { return e(req) }

// askingPeer lets in who has the value, and asks others by the challenge; /to?... redirects.
func askingPeer(t *testing.T, value, challenge string) *faultyPeer {
	t.Helper()
	return startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), func(c *peerConn) {
		for c.readRequest() {
			seen := c.peer.seen()
			r := seen[len(seen)-1]
			switch {
			case r.URL.Path == "/to":
				c.send(redirectTo(307, r.URL.RawQuery))
			case r.Header.Get("Authorization") != value:
				c.send(rawAnswer("401 Unauthorized", "who?", "WWW-Authenticate: "+challenge))
			default:
				c.send(rawAnswer("200 OK", "ok"))
			}
		}
	})
}

// credentialsSeen are the Authorizations that a peer saw.
func credentialsSeen(p *faultyPeer) (all []string) {
	for _, r := range p.seen() {
		all = append(all, r.URL.Path+" "+r.Header.Get("Authorization"))
	}
	return all
}

// TestStoreSendsAhead: after the first refusal an origin gets credentials at once, on a redirect to it too, and
// no other origin does. The decisions tell of the challenge alone.
func TestStoreSendsAhead(t *testing.T) {
	const value = "Basic bWU6cHc="
	knows, other := askingPeer(t, value, `Basic realm="r"`), askingPeer(t, "", "")
	recorder := event.NewRecorder()
	client := h1Client(t, catena.WithAuthenticator(auth.Store(auth.Basic("me", "pw"))), catena.WithEventListener(recorder))
	get := func(url string) {
		t.Helper()
		if got := outcomeOf(client.Do(bodyRequest(t, "POST", url, "body"))); got != `200 "ok"` {
			t.Error(got)
		}
	}
	get(knows.url("/a"))
	get(knows.url("/b"))
	get(other.url("/to?" + knows.url("/c")))
	get(knows.url("/to?" + other.url("/d")))
	if diff := cmp.Diff([]string{"/a ", "/a " + value, "/b " + value, "/c " + value, "/to " + value}, credentialsSeen(knows)); diff != "" {
		t.Errorf("the origin that asked saw (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/to ", "/d "}, credentialsSeen(other)); diff != "" {
		t.Errorf("the other one saw (-want +got):\n%s", diff)
	}
	for _, r := range knows.seen() {
		if r.URL.Path != "/to" && r.body != "body" {
			t.Errorf("%s came with the body %q", r.URL.Path, r.body)
		}
	}
	var reasons []string
	for _, e := range recorder.Events() {
		if e.Name == "FollowUpDecision" {
			reasons = append(reasons, string(e.Why))
		}
	}
	if diff := cmp.Diff([]string{"authenticate", "final", "final", "redirect", "final", "redirect", "final"}, reasons); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

// TestPreemptiveIsAsked: whom it is asked for, and what it may change.
func TestPreemptiveIsAsked(t *testing.T) {
	const own = "Own 1"
	for _, test := range []struct {
		name   string
		change func(req *http.Request)
		asked  int
		want   string // what the origin sees
	}{
		{"nothing set", func(*http.Request) {}, 1, own},
		{"no header", func(req *http.Request) { req.Header = nil }, 1, own},
		{"credentials of the application", func(req *http.Request) { req.Header.Set("Authorization", "mine") }, 0, "mine"},
		{"in an odd case", func(req *http.Request) { req.Header["authorization"] = []string{"mine"} }, 0, "mine"},
		{"none at the application's wish", func(req *http.Request) { req.Header["Authorization"] = nil }, 0, ""},
		{"user information", func(req *http.Request) { req.URL.User = url.UserPassword("me", "pw") }, 0, "Basic bWU6cHc="},
	} {
		t.Run(test.name, func(t *testing.T) {
			peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), rawOK)
			asked := 0
			client := h1Client(t, catena.WithAuthenticator(eager(func(req *http.Request) error {
				asked++
				req.Header.Set("Authorization", own)
				req.URL.Path = "/changed"
				return nil
			})))
			req := bodyRequest(t, "POST", peer.url("/x"), "body")
			test.change(req)
			before := req.Clone(t.Context())
			closes := countCloses(req)
			if got := outcomeOf(client.Do(req)); got != `200 "ok"` {
				t.Error(got)
			}
			if diff := cmp.Diff(before.Header, req.Header) + cmp.Diff(before.URL.Path, req.URL.Path); diff != "" {
				t.Errorf("the application's request was changed:\n%s", diff)
			}
			seen := peer.seen()
			if asked != test.asked || len(seen) != 1 || seen[0].Header.Get("Authorization") != test.want || seen[0].body != "body" {
				t.Errorf("asked %d times; the origin saw %q", asked, credentialsSeen(peer))
			}
			for i, n := range closes() {
				if n != 1 {
					t.Errorf("body %d was closed %d times", i, n)
				}
			}
		})
	}
}

// TestPreemptiveFails: its error is the call's, names the step, and nothing is sent.
func TestPreemptiveFails(t *testing.T) {
	broken := errors.New("the vault is closed")
	for _, test := range []struct {
		name string
		a    eager
		want string
		is   error
	}{
		{"error", func(*http.Request) error { return broken }, "authorize the request ahead of a challenge: the vault is closed", broken},
		{"what can't be sent", func(req *http.Request) error { req.Header.Set("Authorization", "a\nb"); return nil }, "Authorization", nil},
	} {
		peer := startFaultyPeer(t, listenLoopback(t, "127.0.0.1"), rawOK)
		req := bodyRequest(t, "POST", peer.url("/"), "body")
		closes := countCloses(req)
		resp, err := h1Client(t, catena.WithAuthenticator(test.a)).Do(req)
		var call *catena.CallError
		if resp != nil || !errors.As(err, &call) || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) || strings.Contains(fmt.Sprintf("%+v", err), "a\nb") {
			t.Errorf("%s: got %v, %+v", test.name, resp, err)
		}
		if n := peer.accepted(); n != 0 {
			t.Errorf("%s: %d connections were made", test.name, n)
		}
		for i, n := range closes() {
			if n != 1 {
				t.Errorf("%s: body %d was closed %d times", test.name, i, n)
			}
		}
	}
}

// TestRoundTripperAuthorizesNothing: a RoundTripper sends the request as it is given.
func TestRoundTripperAuthorizesNothing(t *testing.T) {
	peer := askingPeer(t, "x", "Basic")
	asked := false
	client := h1Client(t, catena.WithAuthenticator(eager(func(*http.Request) error { asked = true; return nil })))
	resp, err := client.RoundTripper().RoundTrip(bodyRequest(t, "GET", peer.url("/"), ""))
	if got := outcomeOf(resp, err); got != `401 "who?"` || asked {
		t.Errorf("%s; asked: %v", got, asked)
	}
}

// TestBearerRefreshesOnce: 64 calls are refused by the same token, and one new one is fetched.
func TestBearerRefreshesOnce(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		var refused sync.WaitGroup
		refused.Add(64)
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			switch r.Header.Get("Authorization") {
			case "Bearer t2":
			case "Bearer t1":
				if r.URL.Path == "/first" {
					return
				}
				refused.Done()
				refused.Wait() // until all have been sent with the old token
				rw.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
				rw.WriteHeader(401)
			default:
				rw.Header().Set("WWW-Authenticate", "Bearer")
				rw.WriteHeader(401)
			}
		})
		var fetched atomic.Int32
		w.client = w.derive(w.root, catena.WithAuthenticator(auth.Store(auth.Bearer(func(context.Context) (string, error) {
			return fmt.Sprint("t", fetched.Add(1)), nil
		}))))
		w.get("/first", "")
		var calls sync.WaitGroup
		for range 64 {
			calls.Go(func() { w.get("/", "") })
		}
		calls.Wait()
		if n := fetched.Load(); n != 2 {
			w.Errorf("%d tokens were fetched, want 2", n)
		}
	})
}

// TestTokenSourceIsInterrupted: a call does not wait for a source that hangs longer than it may.
func TestTokenSourceIsInterrupted(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		t.Run(fmt.Sprint("ahead ", ahead), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, h1)
				w.serve(func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("WWW-Authenticate", "Bearer")
					rw.WriteHeader(401)
				})
				hang := func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				}
				var a auth.Authenticator = auth.Bearer(func(ctx context.Context) (string, error) { return "", hang(ctx) })
				if ahead {
					a = eager(func(req *http.Request) error { return hang(req.Context()) })
				}
				w.client = w.derive(w.root, catena.WithAuthenticator(a))
				start := time.Now()
				err := w.fail(w.request("GET", "/", nil), catena.WithCallTimeout(time.Second))
				var timeout *catena.TimeoutError
				if !errors.As(err, &timeout) || timeout.Step != event.StepCall || time.Since(start) > 1100*time.Millisecond {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
				call := w.client.NewCall(w.request("GET", "/", nil))
				time.AfterFunc(time.Second, call.Cancel)
				if _, err := call.Execute(); !errors.Is(err, context.Canceled) {
					t.Errorf("canceled: %v", err)
				}
				w.close()
			})
		})
	}
}
