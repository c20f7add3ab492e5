package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// tokens is a source of tokens that counts.
type tokens struct{ n atomic.Int32 }

func (s *tokens) token(context.Context) (string, error) { return fmt.Sprint("t", s.n.Add(1)), nil }

// bearerServer accepts one token and refuses others with a challenge.
func bearerServer(accepts, challenge string, log *[]string) func(*http.Request) *http.Response {
	return func(req *http.Request) *http.Response {
		*log = append(*log, req.Header.Get("Authorization"))
		resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}
		if req.Header.Get("Authorization") != "Bearer "+accepts {
			resp.StatusCode = 401
			if challenge != "" {
				resp.Header.Set("WWW-Authenticate", challenge)
			}
		}
		return resp
	}
}

func TestBearer(t *testing.T) {
	const invalid = `Bearer realm="r", error="invalid_token", error_description="a, b"`
	tests := []struct {
		name, accepts, challenge string
		want                     []string
	}{
		{"accepted", "t1", "Bearer", []string{"", "Bearer t1", "", "Bearer t1"}},
		{"refreshed once", "t2", invalid, []string{"", "Bearer t1", "Bearer t2", "", "Bearer t2"}},
		{"refused after a refresh", "t9", invalid, []string{"", "Bearer t1", "Bearer t2", "", "Bearer t3", "Bearer t4"}},
		{"refused without a word, asked for anew in the next call", "t2", "Bearer", []string{"", "Bearer t1", "", "Bearer t2"}},
		{"no challenge", "t1", "", []string{"", "Bearer t1", "", "Bearer t1"}},
		{"refreshed without a challenge", "t2", "", []string{"", "Bearer t1", "Bearer t2", "", "Bearer t2"}},
		{"refused without a challenge", "t9", "", []string{"", "Bearer t1", "Bearer t2", "", "Bearer t3", "Bearer t4"}},
		{"not enough", "t9", `bearer error=insufficient_scope`, []string{"", "Bearer t1", "", "Bearer t2"}},
		{"something unreadable", "t9", `Basic realm="unclosed`, []string{"", ""}},
		{"not asked for", "t9", `Basic realm="Bearer"`, []string{"", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log []string
			a := auth.Bearer((&tokens{}).token)
			for range 2 {
				call(t, a, proxy.Proxy{}, newRequest(t, "GET", "https://a.test/", ""), bearerServer(tt.accepts, tt.challenge, &log))
			}
			if diff := cmp.Diff(tt.want, log); diff != "" {
				t.Errorf("the server saw (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBearerAtAProxy(t *testing.T) {
	next, err := auth.Bearer((&tokens{}).token).Authenticate(proxy.Proxy{Type: proxy.HTTP, Host: "p.test"}, refusal(t, 407, "Bearer"))
	if err != nil || next.Header.Get("Proxy-Authorization") != "Bearer t1" || next.Header.Get("Authorization") != "" {
		t.Errorf("got %v, %v", next, err)
	}
}

// A proxy's 407 without a challenge asks for nothing.
func TestBearerAtAProxyThatAsksForNothing(t *testing.T) {
	if next, err := auth.Bearer((&tokens{}).token).Authenticate(proxy.Proxy{Type: proxy.HTTP, Host: "p.test"}, refusal(t, 407, "")); err != nil || next != nil {
		t.Errorf("got %v, %v", next, err)
	}
}

// TestBearerSameToken: a source that has no other token is not tried again.
func TestBearerSameToken(t *testing.T) {
	var log []string
	a := auth.Bearer(func(context.Context) (string, error) { return "same", nil })
	call(t, a, proxy.Proxy{}, newRequest(t, "GET", "https://a.test/", ""), bearerServer("other", `Bearer error="invalid_token"`, &log))
	if diff := cmp.Diff([]string{"", "Bearer same"}, log); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBearerErrors(t *testing.T) {
	sealed := errors.New("the vault is sealed")
	for _, tt := range []struct {
		name   string
		source func(context.Context) (string, error)
		want   string
	}{
		{"error", func(context.Context) (string, error) { return "", sealed }, "token source of Bearer: the vault is sealed"},
		{"error with a token", func(context.Context) (string, error) { return "x", sealed }, "token source of Bearer: the vault is sealed"},
		{"empty", func(context.Context) (string, error) { return "", nil }, "token source of Bearer: the token is empty"},
		{"line break", func(context.Context) (string, error) { return "s3cret\n", nil }, "token source of Bearer: the token has a space or a control character"},
		{"space", func(context.Context) (string, error) { return "Bearer s3cret", nil }, "token source of Bearer: the token has a space or a control character"},
		{"panic", func(context.Context) (string, error) { panic("boom") }, "token source of Bearer: panic: boom"},
		{"Goexit", func(context.Context) (string, error) { runtime.Goexit(); return "", nil }, "token source of Bearer: it ended its goroutine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := auth.Bearer(tt.source)
			for range 2 { // an error is not kept, nor does it break anything
				next, err := a.Authenticate(proxy.Proxy{}, refusal(t, 401, "Bearer"))
				if next != nil || err == nil || err.Error() != tt.want {
					t.Errorf("got %v, %v, want %q", next, err, tt.want)
				}
				if strings.Contains(tt.want, sealed.Error()) && !errors.Is(err, sealed) {
					t.Errorf("%v does not wrap the source's error", err)
				}
			}
		})
	}
	if next, err := auth.Bearer((&tokens{}).token).Authenticate(proxy.Proxy{}, &http.Response{StatusCode: 401, Header: http.Header{"Www-Authenticate": {"Bearer"}}}); next != nil || err == nil {
		t.Errorf("no request: got %v, %v", next, err)
	}
}

// TestBearerSharesRefreshes: calls that are refused at a time refresh once, and a call that was canceled takes
// nothing from the others.
func TestBearerSharesRefreshes(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var fetched atomic.Int32
		a := auth.Bearer(func(ctx context.Context) (string, error) {
			n := fetched.Add(1)
			if ctx.Value(key{}) != "first" && n == 2 {
				t.Errorf("the context has not the values of the first caller")
			}
			select {
			case <-time.After(time.Second):
				return fmt.Sprint("t", n), nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		if _, err := a.Authenticate(proxy.Proxy{}, refusal(t, 401, "Bearer")); err != nil {
			t.Fatal(err)
		}
		refused := func(ctx context.Context) *http.Response {
			resp := refusal(t, 401, `Bearer error="invalid_token"`)
			resp.Request = resp.Request.WithContext(ctx)
			resp.Request.Header.Set("Authorization", "Bearer t1")
			return resp
		}
		first, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "first"))
		var wg sync.WaitGroup
		wg.Go(func() {
			if next, err := a.Authenticate(proxy.Proxy{}, refused(first)); next != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("the one that was canceled got %v, %v", next, err)
			}
		})
		synctest.Wait()
		for range 63 {
			wg.Go(func() {
				next, err := a.Authenticate(proxy.Proxy{}, refused(t.Context()))
				if err != nil || next.Header.Get("Authorization") != "Bearer t2" {
					t.Errorf("got %v, %v", next, err)
				}
			})
		}
		synctest.Wait()
		cancel() // the one that began the refresh
		wg.Wait()
		// One that was sent before the refresh and is refused after it has the new token at once.
		if next, err := a.Authenticate(proxy.Proxy{}, refused(t.Context())); err != nil || next.Header.Get("Authorization") != "Bearer t2" {
			t.Errorf("the late one got %v, %v", next, err)
		}
		if n := fetched.Load(); n != 2 {
			t.Errorf("%d tokens were fetched, want 2", n)
		}
	})
}

// TestBearerAbandoned: a flight that nobody waits for is canceled, and its answer is not the next caller's.
func TestBearerAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetched atomic.Int32
		ended := make(chan struct{})
		a := auth.Bearer(func(ctx context.Context) (string, error) {
			if fetched.Add(1) == 1 {
				<-ctx.Done()
				close(ended)
				time.Sleep(time.Minute) // it does not obey at once
				return "old", nil
			}
			return "new", nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		resp := refusal(t, 401, "Bearer")
		resp.Request = resp.Request.WithContext(ctx)
		if _, err := a.Authenticate(proxy.Proxy{}, resp); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		<-ended
		for range 2 {
			next, err := a.Authenticate(proxy.Proxy{}, refusal(t, 401, "Bearer"))
			if err != nil || next.Header.Get("Authorization") != "Bearer new" {
				t.Errorf("got %v, %v", next, err)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}

// A server that never says what it wants gets a token: ahead of its 401 from a Store,
// and from Bearer among others.
func TestBearerWithoutAChallenge(t *testing.T) {
	var log []string
	server := bearerServer("t1", "", &log)
	store := auth.Store(auth.Strongest(auth.Basic("me", "x"), auth.Bearer((&tokens{}).token)))
	call(t, store, proxy.Proxy{}, newRequest(t, "GET", "https://a.test/", ""), server)
	ahead := newRequest(t, "GET", "https://a.test/", "")
	if err := store.Authorize(ahead); err != nil {
		t.Fatal(err)
	}
	call(t, store, proxy.Proxy{}, ahead, server)
	if diff := cmp.Diff([]string{"", "Bearer t1", "Bearer t1"}, log); diff != "" {
		t.Errorf("the server saw (-want +got):\n%s", diff)
	}
}
