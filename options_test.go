package catena_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

func TestEverySettingSurvivesTheCopy(t *testing.T) {
	if lost := catena.SettingsLostByClone(); lost != nil {
		t.Errorf("lost or shared by settings.clone: %v", lost)
	}
}

// seen is what an application interceptor knows of a call's settings.
type seen struct{ chain.Config }

// configOf is the settings that the links of a call of client see.
func configOf(t *testing.T, client *catena.Client, opts ...catena.CallOption) seen {
	t.Helper()
	var got *chain.Config
	looker, err := client.With(catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		got = c.Config()
		return &http.Response{StatusCode: 200, Request: c.Request()}, nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://origin.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := looker.NewCall(req, opts...).Execute()
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return seen{*got}
}

// plain compares settings without what is compared by identity.
func plain(want, got chain.Config) string {
	return cmp.Diff(want, got, cmpopts.IgnoreFields(chain.Config{}, "Network", "Pool", "CookieJar", "Authenticator"))
}

func newClient(t *testing.T, opts ...catena.Option) *catena.Client {
	t.Helper()
	client, err := catena.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestDefaultsAreThePromisedOnes(t *testing.T) {
	client := newClient(t)
	want := chain.Config{
		ConnectTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		FollowRedirects: true, FollowSSLRedirects: true, RetryOnConnectionFailure: true, TransparentGzip: true,
		MaxFollowUps: 20, RetryPolicy: chain.RetrySafe, UserAgent: "catena/" + catena.Version,
		MaxResponseHeaderBytes: 256 << 10, MaxResponseHeaderFields: 1000, MaxInterimResponses: 100,
		ExpectContinueTimeout: time.Second, FollowUps: true,
	}
	got := configOf(t, client)
	if diff := plain(want, got.Config); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if got.CookieJar != nil || got.Pool != client.Pool() || got.Network != client.Network() {
		t.Error("the jar, pool or Network is another one")
	}
	n := client.Network()
	if n.DNS == nil || n.DialContext == nil || n.ProxySelector == nil {
		t.Error("DNS, DialContext or ProxySelector of the client's Network is not filled in")
	}
	if n.PingInterval != 0 || !slices.Equal(n.Protocols, []string{"h2", "http/1.1"}) {
		t.Errorf("ping interval %v, protocols %v", n.PingInterval, n.Protocols)
	}
}

// Every option of a call, given to New, With, NewCall and as a part of Options.
func TestCallOptionsSetWhatTheySay(t *testing.T) {
	tests := map[string]struct {
		opt catena.CallOption
		set func(*chain.Config)
	}{
		"WithUserAgent":                {catena.WithUserAgent("mine"), func(c *chain.Config) { c.UserAgent = "mine" }},
		"WithUserAgent none":           {catena.WithUserAgent(""), func(c *chain.Config) { c.UserAgent = "" }},
		"WithTransparentGzip":          {catena.WithTransparentGzip(false), func(c *chain.Config) { c.TransparentGzip = false }},
		"WithFollowRedirects":          {catena.WithFollowRedirects(false), func(c *chain.Config) { c.FollowRedirects = false }},
		"WithFollowSSLRedirects":       {catena.WithFollowSSLRedirects(false), func(c *chain.Config) { c.FollowSSLRedirects = false }},
		"WithRetryOnConnectionFailure": {catena.WithRetryOnConnectionFailure(false), func(c *chain.Config) { c.RetryOnConnectionFailure = false }},
		"WithMaxFollowUps":             {catena.WithMaxFollowUps(0), func(c *chain.Config) { c.MaxFollowUps = 0 }},
		"WithRetryPolicy":              {catena.WithRetryPolicy(chain.RetryLikeOkHttp), func(c *chain.Config) { c.RetryPolicy = chain.RetryLikeOkHttp }},
		"WithConnectTimeout":           {catena.WithConnectTimeout(0), func(c *chain.Config) { c.ConnectTimeout = 0 }},
		"WithReadTimeout":              {catena.WithReadTimeout(time.Hour), func(c *chain.Config) { c.ReadTimeout = time.Hour }},
		"WithWriteTimeout":             {catena.WithWriteTimeout(time.Minute), func(c *chain.Config) { c.WriteTimeout = time.Minute }},
		"WithExpectContinueTimeout":    {catena.WithExpectContinueTimeout(0), func(c *chain.Config) { c.ExpectContinueTimeout = 0 }},
		"WithResponseLimits": {catena.WithResponseLimits(1, 2, 3), func(c *chain.Config) {
			c.MaxResponseHeaderBytes, c.MaxResponseHeaderFields, c.MaxInterimResponses = 1, 2, 3
		}},
		"WithCallTimeout":   {catena.WithCallTimeout(time.Hour), func(*chain.Config) {}},
		"WithEventListener": {catena.WithEventListener(event.NopListener{}), func(*chain.Config) {}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			base := newClient(t)
			before := configOf(t, base)
			want := before.Config
			test.set(&want)
			derived, err := base.With(catena.Options(test.opt))
			if err != nil {
				t.Fatal(err)
			}
			for way, got := range map[string]seen{
				"New":                configOf(t, newClient(t, test.opt)),
				"With":               configOf(t, derived),
				"NewCall":            configOf(t, base, test.opt),
				"NewCall over With":  configOf(t, derived, test.opt),
				"Options in Options": configOf(t, newClient(t, catena.Options(test.opt))),
			} {
				if diff := plain(want, got.Config); diff != "" {
					t.Errorf("%s (-want +got):\n%s", way, diff)
				}
			}
			if diff := plain(before.Config, configOf(t, base).Config); diff != "" {
				t.Errorf("the base client changed (-before +after):\n%s", diff)
			}
		})
	}
}

// Every option that makes no sense is named, a nil one by its place.
func TestOptionsThatMakeNoSenseAreAllNamed(t *testing.T) {
	wrong := []catena.CallOption{catena.WithReadTimeout(-1), catena.WithWriteTimeout(1), nil, catena.WithMaxFollowUps(-1)}
	const want = "WithReadTimeout: -1ns is negative\nopts[2] is nil\nWithMaxFollowUps: -1 is negative"
	if _, err := catena.New(wrong[0], wrong[1], nil, wrong[3]); err == nil || err.Error() != want {
		t.Errorf("New: %v", err)
	}
	if _, err := catena.New(catena.WithPool(nil), catena.Options(wrong...)); err == nil || err.Error() != "WithPool: the pool is nil\nOptions: "+want {
		t.Errorf("Options: %v", err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://origin.test/", nil)
	if _, err := newClient(t).NewCall(req, wrong...).Execute(); err == nil || err.Error() != "GET http://origin.test/: "+want {
		t.Errorf("NewCall: %v", err)
	}
}

func TestOptionsThatMakeNoSenseAreNamed(t *testing.T) {
	verifier := func(string, *tls.ConnectionState) error { return nil }
	peers := &tls.Config{VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { return nil }}
	for name, opts := range map[string][]catena.Option{
		"WithInterceptor":           {catena.WithInterceptor(nil)},
		"WithNetworkInterceptor":    {catena.WithNetworkInterceptor(nil)},
		"WithInterceptor func":      {catena.WithInterceptor(chain.InterceptorFunc(nil))},
		"WithNetworkInterceptor f":  {catena.WithNetworkInterceptor(chain.InterceptorFunc(nil))},
		"WithEventListener":         {catena.WithEventListener(nil)},
		"WithPool":                  {catena.WithPool(nil)},
		"WithDispatcher":            {catena.WithDispatcher(nil)},
		"WithMaxFollowUps":          {catena.WithMaxFollowUps(-1)},
		"WithRetryPolicy":           {catena.WithRetryPolicy(chain.RetryPolicy(7))},
		"WithConnectTimeout":        {catena.WithConnectTimeout(-1)},
		"WithReadTimeout":           {catena.WithReadTimeout(-1)},
		"WithWriteTimeout":          {catena.WithWriteTimeout(-time.Hour)},
		"WithCallTimeout":           {catena.WithCallTimeout(-1)},
		"WithExpectContinueTimeout": {catena.WithExpectContinueTimeout(-1)},
		"WithPingInterval":          {catena.WithPingInterval(-1)},
		"WithHTTP2Windows":          {catena.WithHTTP2Windows(-1, 0)},
		"WithHTTP2Windows whole":    {catena.WithHTTP2Windows(0, -1)},
		"WithHTTP2Windows tiny":     {catena.WithHTTP2Windows(1000, 0)},
		"WithHTTP2Windows swapped":  {catena.WithHTTP2Windows(8<<20, 1<<20)},
		"WithResponseLimits":        {catena.WithResponseLimits(0, 1, 1)},
		"WithUserAgent":             {catena.WithUserAgent("two\r\nlines: 1")},
		"WithProxy":                 {catena.WithProxy(proxy.Proxy{Type: proxy.HTTP})},
		"WithProtocols":             {catena.WithProtocols("h3")},
		"WithProtocols none":        {catena.WithProtocols()},
		"WithProtocols mixed":       {catena.WithProtocols("h2c", "http/1.1")},
		"WithProtocols h2":          {catena.WithProtocols("h2")},
		"HostnameVerifier":          {catena.WithHostnameVerifier(verifier), catena.WithTLSConfig(peers)},
		"nil":                       {nil},
		"Options":                   {catena.Options(catena.WithReadTimeout(1), nil)},
	} {
		t.Run(name, func(t *testing.T) {
			word, _, _ := strings.Cut(name, " ")
			if word == "Options" {
				word = "nil"
			}
			if client, err := catena.New(opts...); err == nil || client != nil || !strings.Contains(err.Error(), word) {
				t.Errorf("New: client %v, error %v: want one that names %s", client != nil, err, word)
			}
			base := newClient(t)
			if client, err := base.With(opts...); err == nil || client != nil || !strings.Contains(err.Error(), word) {
				t.Errorf("With: client %v, error %v: want one that names %s", client != nil, err, word)
			}
			var forCall []catena.CallOption
			for _, o := range opts {
				if o, ok := o.(catena.CallOption); ok {
					forCall = append(forCall, o)
				}
			}
			if forCall == nil {
				return
			}
			req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://origin.test/", nil)
			_, err := base.NewCall(req, forCall...).Execute()
			var ours *catena.CallError
			if !errors.As(err, &ours) || !strings.Contains(err.Error(), word) {
				t.Errorf("NewCall: error %v: want a *CallError that names %s", err, word)
			}
		})
	}
}
