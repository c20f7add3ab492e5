package catena_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/chain"
)

// cookiesOf are the cookies of a request, in order of name.
func cookiesOf(r *http.Request) string {
	var pairs []string
	for _, c := range r.Cookies() {
		pairs = append(pairs, c.Name+"="+c.Value)
	}
	sort.Strings(pairs)
	return strings.Join(pairs, " ")
}

func TestCookiesFollowACallThroughEveryHop(t *testing.T) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	overProtocols(t, allProtocols, func(w *world) {
		var seen []string
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.URL.Path+" "+cookiesOf(r))
			set := func(c http.Cookie) { http.SetCookie(rw, &c) }
			switch r.URL.Path {
			case "/one":
				set(http.Cookie{Name: "a", Value: "1", Path: "/"})
				set(http.Cookie{Name: "narrow", Value: "x", Path: "/two"})
				http.Redirect(rw, r, "/two", http.StatusFound)
			case "/two":
				set(http.Cookie{Name: "a", Value: "2", Path: "/"})
				if _, _, ok := r.BasicAuth(); !ok {
					rw.Header().Set("WWW-Authenticate", "Basic realm=x")
					rw.WriteHeader(http.StatusUnauthorized)
					return
				}
				set(http.Cookie{Name: "b", Value: "3", Path: "/"})
				http.Redirect(rw, r, w.url(other, "/three"), http.StatusFound)
			case "/three":
				set(http.Cookie{Name: "a", Value: "of other", Path: "/"})
				http.Redirect(rw, r, w.url(origin, "/four"), http.StatusFound)
			}
		})
		fresh, _ := cookiejar.New(nil)
		client := w.derive(w.client, catena.WithCookieJar(fresh), catena.WithAuthenticator(auth.Basic("user", "secret")))
		req := w.request("GET", "/one", nil)
		req.Header.Set("Cookie", "own=0")
		if _, err := finish(client.NewCall(req)); err != nil {
			w.Error(err)
		}
		want := []string{
			"/one own=0",
			"/two a=1 narrow=x own=0",
			"/two a=2 narrow=x own=0",
			"/three ", // the request's own cookie is a credential of origin's
			"/four a=2 b=3",
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			w.Errorf("cookies (-want +got):\n%s", diff)
		}
		if got := req.Header.Get("Cookie"); got != "own=0" {
			w.Errorf("the request's own Cookie became %q", got)
		}
		if n := len(jar.Cookies(&url.URL{Scheme: "http", Host: origin})); n != 0 {
			w.Errorf("the parent's jar has %d cookies", n)
		}
	}, catena.WithCookieJar(jar))
}

// An interceptor sees the application's request without the jar's cookies, a
// network interceptor the one on the wire.
func TestCookiesAsInterceptorsSeeThem(t *testing.T) {
	var application, network []string
	look := func(at *[]string) chain.InterceptorFunc {
		return func(c chain.Chain) (*http.Response, error) {
			*at = append(*at, cookiesOf(c.Request()))
			resp, err := c.Proceed(c.Request())
			if err == nil && len(resp.Header["Set-Cookie"]) != 1 {
				t.Errorf("Set-Cookie %q", resp.Header["Set-Cookie"])
			}
			return resp, err
		}
	}
	overProtocols(t, []string{h1, h2}, func(w *world) {
		application, network = nil, nil
		w.serve(func(rw http.ResponseWriter, _ *http.Request) {
			http.SetCookie(rw, &http.Cookie{Name: "a", Value: "1"})
		})
		jar, _ := cookiejar.New(nil)
		client := w.derive(w.client, catena.WithCookieJar(jar), catena.WithInterceptor(look(&application)), catena.WithNetworkInterceptor(look(&network)))
		for range 2 {
			if err := w.reaches(client); err != nil {
				w.Error(err)
			}
		}
		if diff := cmp.Diff([]string{"", ""}, application); diff != "" {
			w.Errorf("application interceptor (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"", "a=1"}, network); diff != "" {
			w.Errorf("network interceptor (-want +got):\n%s", diff)
		}
	})
}
