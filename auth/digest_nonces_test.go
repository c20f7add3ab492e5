package auth_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// TestDigestConcurrently: of each nonce every count is used once, whoever asks.
func TestDigestConcurrently(t *testing.T) {
	for _, tt := range []struct {
		name     string
		lifetime int
		next     bool
	}{{"one nonce", 0, false}, {"short nonces", 10, false}, {"next nonces", 0, true}} {
		t.Run(tt.name, func(t *testing.T) {
			const calls, each = 64, 8
			s := &digestServer{user: "me", password: "pw", realm: "r", algorithm: "SHA-256", qop: "auth", target: "/", lifetime: tt.lifetime, next: tt.next}
			a := auth.Store(auth.Digest("me", "pw"))
			var wg sync.WaitGroup
			for range calls {
				wg.Go(func() {
					for range each {
						call(t, a, proxy.Proxy{}, newRequest(t, "GET", "http://a.test/", ""), s.answer)
					}
				})
			}
			wg.Wait()
			accepted := 0
			for _, verdict := range s.log {
				switch verdict {
				case "ok":
					accepted++
				case "none", "stale":
				default:
					t.Fatalf("the server says %s", verdict)
				}
			}
			if tt.lifetime == 0 && accepted != calls*each {
				t.Errorf("%d calls were answered, want %d", accepted, calls*each)
			}
			for nonce, counts := range s.uses {
				for n := 1; n <= len(counts) && tt.lifetime == 0; n++ {
					if !counts[fmt.Sprintf("%08x", n)] {
						t.Errorf("nonce %s was used %d times, but not for the time %d", nonce, len(counts), n)
					}
				}
			}
		})
	}
}

// TestDigestCountsPerNonce: servers behind one name have nonces of their own.
func TestDigestCountsPerNonce(t *testing.T) {
	a := auth.Digest("me", "pw")
	var got []string
	for _, nonce := range []string{"x", "y", "x", "y", "x"} {
		next, err := a.Authenticate(proxy.Proxy{}, refusal(t, 401, `Digest realm="a", qop="auth", nonce="`+nonce+`"`))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, nonce+" "+paramsOf(next.Header.Get("Authorization"))["nc"])
	}
	if diff := cmp.Diff([]string{"x 00000001", "y 00000001", "x 00000002", "y 00000002", "x 00000003"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDigestExpiresInSilence: a nonce that was used before may be too old, though the server does not say
// that this is why it refuses.
func TestDigestExpiresInSilence(t *testing.T) {
	s := &digestServer{user: "me", password: "pw", realm: "r", qop: "auth", target: "/", lifetime: 2, silent: true}
	a := auth.Store(auth.Digest("me", "pw"))
	for range 4 {
		call(t, a, proxy.Proxy{}, newRequest(t, "GET", "http://a.test/", ""), s.answer)
	}
	if diff := cmp.Diff([]string{"none", "ok", "ok", "stale", "ok", "ok"}, s.log); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// TestDigestAheadRefused: what was sent ahead, with nonces that were used before, and is refused.
func TestDigestAheadRefused(t *testing.T) {
	tests := []struct {
		name   string
		nonces []string // of the refusals
		sent   int
	}{
		{"the nonce may have been too old", []string{"b"}, 2},
		{"both nonces may have been", []string{"b", "a"}, 2}, // but the second was fresh a moment ago
		{"the same nonce is offered again", []string{"a"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := auth.Store(auth.Digest("me", "pw"))
			for _, nonce := range []string{"b", "a"} {
				if _, err := a.Authenticate(proxy.Proxy{}, refusal(t, 401, `Digest realm="r", qop="auth", nonce="`+nonce+`"`)); err != nil {
					t.Fatal(err)
				}
			}
			sent := 0
			call(t, a, proxy.Proxy{}, newRequest(t, "GET", "http://a.test/", ""), func(req *http.Request) *http.Response {
				nonce := tt.nonces[min(sent, len(tt.nonces)-1)]
				sent++
				return &http.Response{StatusCode: 401, Header: http.Header{"Www-Authenticate": {`Digest realm="r", qop="auth", nonce="` + nonce + `"`}}, Request: req}
			})
			if sent != tt.sent {
				t.Errorf("%d requests, want %d", sent, tt.sent)
			}
		})
	}
}

// TestDigestSessionKeys: servers that make the key of "-sess" anew for each request get along with us, too.
func TestDigestSessionKeys(t *testing.T) {
	s := &digestServer{user: "me", password: "pw", realm: "r", qop: "auth", algorithm: "MD5-sess", target: "/", newKeys: true}
	a := auth.Store(auth.Digest("me", "pw"))
	for range 3 {
		call(t, a, proxy.Proxy{}, newRequest(t, "GET", "http://a.test/", ""), s.answer)
	}
	if diff := cmp.Diff([]string{"none", "ok", "ok", "ok"}, s.log); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// TestDigestOneShotAhead: a body that can't be read twice goes without credentials.
func TestDigestOneShotAhead(t *testing.T) {
	a := auth.Store(auth.Digest("me", "pw"))
	if _, err := a.Authenticate(proxy.Proxy{}, refusal(t, 401, `Digest realm="r", qop="auth-int", nonce="n"`)); err != nil {
		t.Fatal(err)
	}
	req := newRequest(t, "PUT", "http://a.test/", "body")
	req.GetBody = nil
	if err := a.Authorize(req); err != nil || len(req.Header) > 0 {
		t.Errorf("got %v and the fields %v", err, req.Header)
	}
}

// TestDigestNextNonce: the news of a next nonce counts if it follows the newest one.
func TestDigestNextNonce(t *testing.T) {
	a := auth.Store(auth.Digest("me", "pw"))
	first, err := a.Authenticate(proxy.Proxy{}, refusal(t, 401, `Digest realm="r", qop="auth", nonce="1"`))
	if err != nil {
		t.Fatal(err)
	}
	ahead := func() *http.Request {
		req := newRequest(t, "GET", "http://a.test/", "")
		if err := a.Authorize(req); err != nil {
			t.Fatal(err)
		}
		return req
	}
	old := func() *http.Request { return first }
	var got []string
	for _, step := range []struct {
		answers func() *http.Request
		info    string
	}{
		{old, `nextnonce="2"`},
		{old, `nextnonce="late"`},
		{old, `nextnonce="1"`},
		{ahead, `nc=00000001`},
		{ahead, ``},
		{ahead, `nextnonce=""`},
		{ahead, `nextnonce="3`},
		{ahead, `qop=auth, nextnonce=4`},
		{func() *http.Request { return newRequest(t, "GET", "http://a.test/", "") }, `nextnonce="of others"`},
	} {
		a.(auth.Observer).Observe(proxy.Proxy{}, &http.Response{StatusCode: 200, Header: http.Header{"Authentication-Info": {step.info}}, Request: step.answers()})
		p := paramsOf(ahead().Header.Get("Authorization"))
		got = append(got, p["nonce"]+" "+p["nc"][6:])
	}
	want := []string{"2 01", "2 02", "2 03", "2 05", "2 07", "2 09", "2 0b", "4 01", "4 02"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDigestMemoryIsBounded(t *testing.T) {
	a := auth.Digest("me", "pw")
	for i := range 1000 {
		if _, err := a.Authenticate(proxy.Proxy{}, refusal(t, 401, fmt.Sprintf(`Digest realm="%d", nonce="n"`, i))); err != nil {
			t.Fatal(err)
		}
	}
	if n := auth.DigestRealms(a); n > 256 {
		t.Errorf("%d realms are remembered", n)
	}
}
