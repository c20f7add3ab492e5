package catena_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// plainProxy is an HTTP proxy that answers plain requests itself.
func plainProxy(t *testing.T, h http.HandlerFunc) proxy.Proxy {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	p, err := proxy.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// send is a call, or the error it ends with, as "status body".
func sendThrough(client *catena.Client, req *http.Request) string {
	resp, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}

// A Store sends credentials to a plain proxy that has asked once, each call and each
// hop anew, and to no other proxy.
func TestStoreSendsAheadToAPlainProxy(t *testing.T) {
	guard := proxyGuard()
	p := plainProxy(t, guard.handle(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "http://b.test/to", http.StatusFound)
			return
		}
		echoBody(w, r)
	}))
	var other []string
	q := plainProxy(t, func(w http.ResponseWriter, r *http.Request) {
		other = append(other, r.Header.Get("Proxy-Authorization"))
	})
	store := auth.Store(auth.Digest("me", "pw"))
	client := newClient(t, catena.WithProxy(p), catena.WithProxyAuthenticator(store))
	do := func(client *catena.Client, method, target string, body io.Reader) string {
		req, err := http.NewRequestWithContext(t.Context(), method, target, body)
		if err != nil {
			t.Fatal(err)
		}
		return sendThrough(client, req)
	}
	got := []string{
		do(client, "GET", "http://a.test/1", nil),
		do(client, "GET", "http://a.test/2", nil),
		do(client, "POST", "http://b.test/3", struct{ io.Reader }{strings.NewReader("once")}), // can't be sent twice
		do(client, "GET", "http://a.test/from", nil),
	}
	if diff := cmp.Diff([]string{"200 ", "200 ", "200 once", "200 "}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	want := []string{
		"GET http://a.test/1 none", "GET http://a.test/1 ok first 1", "GET http://a.test/2 ok first 2",
		"POST http://b.test/3 ok first 3", "GET http://a.test/from ok first 4", "GET http://b.test/to ok first 5",
	}
	if diff := cmp.Diff(want, guard.saw()); diff != "" {
		t.Errorf("the proxy saw (-want +got):\n%s", diff)
	}
	elsewhere, err := client.With(catena.WithProxy(q))
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	do(elsewhere, "GET", "http://a.test/", nil)
	if diff := cmp.Diff([]string{""}, other); diff != "" {
		t.Errorf("another proxy saw (-want +got):\n%s", diff)
	}
}

// What was sent ahead and is refused counts as refused: it is not sent again, and the
// Store forgets it.
func TestRefusedAheadByAPlainProxy(t *testing.T) {
	password := "old"
	var saw []string
	p := plainProxy(t, func(w http.ResponseWriter, r *http.Request) {
		user, pw, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
		saw = append(saw, user+":"+pw)
		if pw != password {
			w.Header().Set("Proxy-Authenticate", `Basic realm="p"`)
			w.WriteHeader(http.StatusProxyAuthRequired)
		}
	})
	client := newClient(t, catena.WithProxy(p), catena.WithProxyAuthenticator(auth.Store(auth.Basic("me", "old"))))
	get := func() string {
		return sendThrough(client, &http.Request{URL: &url.URL{Scheme: "http", Host: "a.test"}})
	}
	first := get()
	password = "new"
	if diff := cmp.Diff([]string{"200 ", "407 ", "407 "}, []string{first, get(), get()}); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"me:old", "me:old", "me:old"}, saw); diff != "" {
		t.Errorf("the proxy saw (-want +got):\n%s", diff)
	}
}

// A RoundTripper answers no plain proxy's 407, and so sends nothing ahead of it.
func TestRoundTripperSendsAPlainProxyNothingAhead(t *testing.T) {
	var saw []string
	p := plainProxy(t, func(w http.ResponseWriter, r *http.Request) { saw = append(saw, r.Header.Get("Proxy-Authorization")) })
	client := newClient(t, catena.WithProxy(p), catena.WithProxyAuthenticator(auth.Store(auth.Basic("me", "pw"))))
	req := httptest.NewRequest(http.MethodGet, "http://a.test/", nil)
	req.RequestURI = ""
	resp, err := client.RoundTripper().RoundTrip(req.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if diff := cmp.Diff([]string{""}, saw); diff != "" {
		t.Errorf("the proxy saw (-want +got):\n%s", diff)
	}
}
