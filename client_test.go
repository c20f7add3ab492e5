package catena_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
)

// derive is from.With.
func (w *world) derive(from *catena.Client, opts ...catena.Option) *catena.Client {
	w.Helper()
	client, err := from.With(opts...)
	if err != nil {
		w.Fatal(err)
	}
	return client
}

// reaches reports how a GET by client ends.
func (w *world) reaches(client *catena.Client) error {
	w.Helper()
	_, err := finish(client.NewCall(w.request("GET", "/", nil)))
	return err
}

func TestClientsShortWays(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		var seen []string
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			seen = append(seen, strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(body)}, " "))
			answer(rw, r)
		})
		ctx := w.Context()
		resp, err := w.client.Get(ctx, w.url(origin, "/get"))
		w.slurp(resp, err)
		resp, err = w.client.Head(ctx, w.url(origin, "/head"))
		w.slurp(resp, err)
		resp, err = w.client.Post(ctx, w.url(origin, "/post"), "text/plain", strings.NewReader("Hello"))
		w.slurp(resp, err)
		resp, err = w.client.PostForm(ctx, w.url(origin, "/form"), url.Values{"a": {"1 2"}, "b": {"3"}})
		w.slurp(resp, err)
		resp, err = w.client.Do(w.request("PUT", "/do", strings.NewReader("x")))
		w.slurp(resp, err)
		want := []string{
			"GET /get  ", "HEAD /head  ", "POST /post text/plain Hello",
			"POST /form application/x-www-form-urlencoded a=1+2&b=3", "PUT /do  x",
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			w.Errorf("the server saw (-want +got):\n%s", diff)
		}
	})
}

// A URL that can't be parsed may hold a password anywhere.
func TestClientsShortWaysTellNoPassword(t *testing.T) {
	client, err := catena.New()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, target := range []string{
		"http://user:hunter2@host.test:port/", "http://user:hun%ter2@host.test/", "http://user:hunter2/@host.test/",
		"http://user:hunter2\n@host.test/", "://user:hunter2@host.test", "user:hunter2@host.test", "http://user:hunter2@ho st/",
	} {
		body := &counted{Reader: strings.NewReader("Hello")}
		_, err := client.Post(t.Context(), target, "text/plain", body)
		var ours *catena.CallError
		if !errors.As(err, &ours) {
			t.Errorf("%q: error %v, want a *CallError", target, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), "POST") || strings.Contains(err.Error(), " :") {
			t.Errorf("%q: the error is no sentence: %v", target, err)
		}
		for _, part := range []string{"hunter2", "%te", "hun"} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%q: the error tells a part of the password: %v", target, err)
			}
		}
		if n := body.closes.Load(); n != 1 {
			t.Errorf("%q: the body was closed %d times", target, n)
		}
	}
}

// What is wrong with a request that can't be made is said in the client's words.
func TestClientsShortWaysSayWhatIsWrong(t *testing.T) {
	client := newClient(t)
	for _, tc := range []struct {
		ctx          context.Context
		target, want string
	}{
		{t.Context(), "http://host.test:port/path?token=secret", `GET: the URL "http://host.test:port/path" can't be parsed: invalid port`},
		{t.Context(), "http://user:hunter2@ho st/", `GET: the URL "...@ho st/" can't be parsed: invalid character`},
		{t.Context(), "http://user:hun?ter2@host.test:port/", `GET: the URL can't be parsed: invalid port`},
		{nil, "http://host.test/", `GET: the context is nil`},
	} {
		if _, err := client.Get(tc.ctx, tc.target); err == nil || err.Error() != tc.want {
			t.Errorf("%s: error %q, want %q", tc.target, err, tc.want)
		}
	}
}

func TestClientCloseCancelsAndRefuses(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(stopHalfway)
		resp, err := w.client.Do(w.request("GET", "/", nil))
		if err != nil {
			w.Fatal(err)
		}
		if err := w.client.Close(); err != nil {
			w.Error(err)
		}
		if err := w.client.Close(); err != nil {
			w.Errorf("the second Close: %v", err)
		}
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) || !errors.Is(err, catena.ErrClosed) {
			w.Errorf("the body of a running call gave %v, want context.Canceled and ErrClosed", err)
		}
		resp.Body.Close()
		if n := w.client.Pool().ConnectionCount(); n != 0 {
			w.Errorf("%d connections are left", n)
		}
		if err := w.reaches(w.client); !errors.Is(err, catena.ErrClosed) {
			w.Errorf("error %v, want ErrClosed", err)
		}
		if late, err := w.client.With(catena.WithUserAgent("late")); late != nil || !errors.Is(err, catena.ErrClosed) {
			w.Errorf("a client derived later: %v, want ErrClosed", err)
		}
		if _, err := w.client.RoundTripper().RoundTrip(w.request("GET", "/", nil)); !errors.Is(err, catena.ErrClosed) {
			w.Errorf("the RoundTripper: %v, want ErrClosed", err)
		}
	})
}

// A pooled connection is closed with the client, and what is not the client's
// stays open.
func TestClientCloseEndsWhatItMade(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(answer)
		w.get("/", "abc")
		if n := w.client.Pool().IdleCount(); n != 1 {
			w.Fatalf("%d idle connections, want 1", n)
		}
		w.client.Close()
		if n := w.client.Pool().ConnectionCount(); n != 0 {
			w.Errorf("%d connections are left", n)
		}
	})
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(answer)
		pool := connection.NewPool(connection.PoolOptions{})
		borrower := w.derive(w.client, catena.WithPool(pool))
		if err := w.reaches(borrower); err != nil {
			w.Error(err)
		}
		borrower.Close()
		if n := pool.IdleCount(); n != 1 {
			w.Errorf("the giver's pool has %d idle connections, want 1", n)
		}
		pool.Close()
	})
}

// A Close beside another one that is held up, by a listener, does it all itself.
func TestClientCloseBesideAnother(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hold" {
				hang(rw, r)
			}
			answer(rw, r)
		})
		release := make(chan struct{})
		held := enqueue(w.client.NewCall(w.request("GET", "/hold", nil), catena.WithEventListener(holdCancel{release: release})))
		w.get("/", "abc")
		go w.client.Close()
		synctest.Wait()
		w.client.Close()
		if n := w.client.Pool().IdleCount(); n != 0 {
			w.Errorf("%d idle connections are left", n)
		}
		close(release)
		<-held
	})
}

// holdCancel holds the one up who cancels.
type holdCancel struct {
	event.NopListener
	release chan struct{}
}

func (h holdCancel) Canceled(event.Call) { <-h.release }

// The connections of a derived client that reaches servers in a way of its own
// are of use to nobody after its end: none stays in the pool it shares, of its
// own ones and of those derived from it, in use or not; the others do.
func TestClientCloseLeavesNothingInASharedPool(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hold" {
				hang(rw, r)
			}
			answer(rw, r)
		})
		pool := w.client.Pool()
		apart := w.derive(w.client, catena.WithPingInterval(0))
		below := w.derive(apart, catena.WithPingInterval(0))
		near := w.derive(apart, catena.WithUserAgent("near"))
		for _, client := range []*catena.Client{w.client, apart, below, near} {
			if err := w.reaches(client); err != nil {
				w.Fatal(err)
			}
		}
		held := enqueue(apart.NewCall(w.request("GET", "/hold", nil)))
		time.Sleep(time.Second)
		near.Close()
		if n := pool.ConnectionCount(); n != 3 {
			w.Errorf("%d connections after the end of a client with its parent's Network, want 3", n)
		}
		apart.Close()
		if o := <-held; !errors.Is(o.err, catena.ErrClosed) {
			w.Errorf("the running call: %v, want ErrClosed", o.err)
		}
		synctest.Wait()
		if n := pool.ConnectionCount(); n != 1 || pool.IdleCount() != 1 {
			w.Errorf("%d connections, %d of them idle: want the parent's alone", n, pool.IdleCount())
		}
		w.get("/", "abc")
		if n := pool.Stats().Connected; n != 3 {
			w.Errorf("%d connections were opened, want 3", n)
		}
	})
}

func TestClientCloseIsForItselfAndThoseBelow(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(answer)
		parent := w.client
		child := w.derive(parent, catena.WithUserAgent("child"))
		grandchild := w.derive(child, catena.WithUserAgent("grandchild"))
		sibling := w.derive(parent, catena.WithUserAgent("sibling"))
		check := func(when string, want map[*catena.Client]error) {
			w.Helper()
			for client, want := range want {
				if err := w.reaches(client); !errors.Is(err, want) {
					w.Errorf("%s: error %v, want %v", when, err, want)
				}
			}
		}
		check("before", map[*catena.Client]error{parent: nil, child: nil, grandchild: nil, sibling: nil})
		idle := parent.Pool().IdleCount()
		child.Close()
		check("the child is closed", map[*catena.Client]error{
			parent: nil, sibling: nil, child: catena.ErrClosed, grandchild: catena.ErrClosed,
		})
		if n := parent.Pool().IdleCount(); n != idle {
			w.Errorf("%d idle connections after the child's end, %d before", n, idle)
		}
		parent.Close()
		check("the parent is closed", map[*catena.Client]error{parent: catena.ErrClosed, sibling: catena.ErrClosed})
	})
}

// Close ends calls that interceptors hold up, when those return.
func TestClientCloseDoesNotWait(t *testing.T) {
	holdUp := catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		time.Sleep(time.Hour)
		return c.Proceed(c.Request())
	}))
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(answer)
		got := enqueue(w.client.NewCall(w.request("GET", "/", nil)))
		synctest.Wait()
		began := time.Now()
		w.client.Close()
		if took := time.Since(began); took > 0 {
			w.Errorf("Close took %v", took)
		}
		if o := <-got; !errors.Is(o.err, context.Canceled) {
			w.Errorf("error %v, want context.Canceled", o.err)
		}
		if n := w.net.Dials(originAddr); n != 0 {
			w.Errorf("a canceled call dialed %d times", n)
		}
	}, holdUp)
}

func TestWithSharesWhatItMust(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(answer)
		w.get("/", "abc")
		near := w.derive(w.client, catena.WithUserAgent("near"), catena.WithReadTimeout(time.Second))
		if near.Pool() != w.client.Pool() || near.Dispatcher() != w.client.Dispatcher() || near.Network() != w.client.Network() {
			t.Error("a derived client has a pool, dispatcher or Network of its own")
		}
		if err := w.reaches(near); err != nil {
			w.Error(err)
		}
		if n := w.net.Dials(originAddr); n != 1 {
			w.Errorf("%d connections for both, want 1", n)
		}
		far := w.derive(w.client, catena.WithDNS(w.net))
		if far.Pool() != w.client.Pool() || far.Dispatcher() != w.client.Dispatcher() || far.Network() == w.client.Network() {
			t.Error("a client derived with a network option shares the wrong things")
		}
		if err := w.reaches(far); err != nil {
			w.Error(err)
		}
		if n := w.net.Dials(originAddr); n != 2 {
			w.Errorf("%d connections for both, want 2", n)
		}
	})
}

func TestCallRunsOnce(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		var served atomic.Int64
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			served.Add(1)
			answer(rw, r)
		})
		call := w.client.NewCall(w.request("POST", "/", strings.NewReader("Hello")))
		if body, err := finish(call); body != "abc" || err != nil {
			w.Errorf("body %q, %v", body, err)
		}
		if _, err := call.Execute(); !errors.Is(err, catena.ErrAlreadyExecuted) {
			w.Errorf("error %v, want ErrAlreadyExecuted", err)
		}
		clone := call.Clone()
		if clone.ID() == call.ID() {
			w.Error("a clone has its original's ID")
		}
		if body, err := finish(clone); body != "abc" || err != nil {
			w.Errorf("the clone: body %q, %v", body, err)
		}
		if served.Load() != 2 {
			w.Errorf("%d requests were served, want 2", served.Load())
		}
		oneShot := w.client.NewCall(w.request("POST", "/", bodyOf("Hello")))
		finish(oneShot)
		if _, err := oneShot.Clone().Execute(); err == nil {
			w.Error("a clone of a call with a one-shot body was sent")
		}
		if served.Load() != 3 {
			w.Errorf("%d requests were served, want 3", served.Load())
		}
	})
}

// cancelingJar cancels a call while its request is made ready for the wire: after
// the call began, before it looks for a connection.
type cancelingJar struct{ cancel context.CancelFunc }

func (j cancelingJar) SetCookies(*url.URL, []*http.Cookie) {}
func (j cancelingJar) Cookies(*url.URL) []*http.Cookie {
	j.cancel()
	return nil
}

func TestCallCanceledBeforeItLooksForAConnection(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(answer)
		ctx, cancel := context.WithCancel(w.Context())
		client := w.derive(w.client, catena.WithCookieJar(cancelingJar{cancel}))
		_, err := client.Do(w.request("GET", "/", nil).WithContext(ctx))
		var ours *catena.CallError
		if !errors.Is(err, context.Canceled) || !errors.As(err, &ours) || len(ours.Attempts) > 0 {
			w.Errorf("error %+v, want context.Canceled without an attempt", err)
		}
		if n := w.net.Dials(originAddr); n != 0 {
			w.Errorf("the call dialed %d times", n)
		}
	})
}

func TestInfoOfCallsResponses(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/from" {
				http.Redirect(rw, r, "/to", http.StatusFound)
			}
		})
		resp, err := w.client.Do(w.request("GET", "/from", nil))
		w.slurp(resp, err)
		for r := resp; r != nil; r = r.Request.Response {
			info, ok := catena.InfoOf(r)
			if !ok || info.Connection == nil || info.Protocol != info.Connection.Protocol() || !info.ReceivedAt.After(info.SentAt) {
				w.Errorf("InfoOf(%s) = %+v, %v", r.Status, info, ok)
			}
		}
	})
}
