package catena_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

func TestInterceptorsAndListenersAddUp(t *testing.T) {
	var mu sync.Mutex
	var order []string
	note := func(name string) chain.Interceptor {
		return chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			mu.Unlock()
			defer mu.Lock()
			return c.Proceed(c.Request())
		})
	}
	first, second, third, made := event.NewRecorder(), event.NewRecorder(), event.NewRecorder(), event.NewRecorder()
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(answer)
		order = nil
		one := w.derive(w.client, catena.WithInterceptor(note("a"), note("b")), catena.WithNetworkInterceptor(note("x")),
			catena.WithEventListener(first), catena.WithEventListenerFactory(func(event.Call) event.Listener { return made }))
		two := w.derive(one, catena.WithInterceptor(note("c")), catena.WithNetworkInterceptor(note("y")), catena.WithEventListener(second))
		w.derive(one, catena.WithInterceptor(note("never")), catena.WithEventListener(event.NewRecorder()))
		if _, err := finish(two.NewCall(w.request("GET", "/", nil), catena.WithEventListener(third))); err != nil {
			w.Error(err)
		}
		if diff := cmp.Diff([]string{"a", "b", "c", "x", "y"}, order); diff != "" {
			w.Errorf("order (-want +got):\n%s", diff)
		}
		want := w.calls.Names()
		for name, r := range map[string]*event.Recorder{"first": first, "second": second, "the call's": third, "the factory's": made} {
			if diff := cmp.Diff(want, r.Names()); diff != "" {
				w.Errorf("%s listener (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestListenerFactoryMakesOneACall(t *testing.T) {
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(answer)
		var made []uint64
		client := w.derive(w.client, catena.WithEventListenerFactory(func(c event.Call) event.Listener {
			made = append(made, c.ID())
			if len(made) == 1 {
				return nil
			}
			return event.NopListener{}
		}))
		call := client.NewCall(w.request("GET", "/", nil))
		clone := call.Clone()
		if want := []uint64{call.ID(), clone.ID()}; !slices.Equal(made, want) {
			w.Errorf("made for %v, want %v", made, want)
		}
		finish(call)
		finish(clone)
		if len(made) != 2 {
			w.Errorf("%d listeners were made for 2 calls", len(made))
		}
		none := w.derive(client, catena.WithEventListenerFactory(nil))
		if _, err := finish(none.NewCall(w.request("GET", "/", nil))); err != nil || len(made) != 2 {
			w.Errorf("%d listeners, %v", len(made), err)
		}
	})
}

func TestUserAgentOnTheWire(t *testing.T) {
	for name, test := range map[string]struct {
		opts []catena.CallOption
		own  []string
		want []string
	}{
		"default":        {nil, nil, []string{"catena/" + catena.Version}},
		"set":            {[]catena.CallOption{catena.WithUserAgent("mine")}, nil, []string{"mine"}},
		"none":           {[]catena.CallOption{catena.WithUserAgent("")}, nil, nil},
		"request's":      {nil, []string{"its own"}, []string{"its own"}},
		"request's none": {nil, []string{""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, []string{h1, h2}, func(w *world) {
				var got []string
				w.serve(func(rw http.ResponseWriter, r *http.Request) { got = r.Header["User-Agent"] })
				req := w.request("GET", "/", nil)
				if test.own != nil {
					req.Header["User-Agent"] = test.own
				}
				w.do(req, "", test.opts...)
				if diff := cmp.Diff(test.want, got); diff != "" {
					w.Errorf("User-Agent (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestLoggerGetsTheClientsWarnings(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	lose := catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		resp, err := c.Proceed(c.Request())
		if err == nil {
			resp.Body = http.NoBody
		}
		return resp, err
	}))
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(answer)
		w.get("/", "")
		if n := len(logs.TakeAll()); n != 1 {
			w.Errorf("%d warnings, want 1", n)
		}
	}, lose, catena.WithLogger(zap.New(core)))
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(answer)
		w.get("/", "")
	}, lose, catena.WithLogger(zap.New(core)), catena.WithLogger(nil))
	if n := logs.Len(); n != 0 {
		t.Errorf("%d warnings after WithLogger(nil)", n)
	}
}

// Names that WithSecrets adds are masked wherever a URL or a field is shown.
func TestSecretsAreMaskedEverywhere(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/from" {
				http.Redirect(rw, r, "/to?mine=secret2&b=2", http.StatusFound)
				return
			}
			panic(http.ErrAbortHandler)
		})
		client := w.derive(w.derive(w.client, catena.WithSecrets("mine")), catena.WithSecrets("X-Other"))
		req := w.request("GET", "/from?mine=secret1&x-other=secret3&token=secret4&a=1", nil)
		req.URL.User = url.UserPassword("user", "secret5")
		req.Header = http.Header{"Mine": {"secret6"}, "X-Other": {"secret7"}, "Accept": {"text/plain"}}
		call := client.NewCall(req)
		_, err := finish(call)
		var ours *catena.CallError
		if !errors.As(err, &ours) {
			w.Fatalf("error %v, want a *CallError", err)
		}
		var events strings.Builder
		for _, e := range w.calls.Events() {
			events.WriteString(e.String() + "\n")
		}
		for where, text := range map[string]string{
			"the error": err.Error(), "its tree": fmt.Sprintf("%+v", err), "its URL": ours.URL,
			"an event": events.String(), "RedactedURL": call.RedactedURL(req.URL),
			"RedactedHeader": fmt.Sprint(call.RedactedHeader(req.Header)),
		} {
			if strings.Contains(text, "secret") {
				w.Errorf("%s tells a secret: %s", where, text)
			}
		}
		if !strings.Contains(ours.URL, "a=1") || call.RedactedHeader(req.Header).Get("Accept") != "text/plain" {
			w.Errorf("too much is masked: %s, %v", ours.URL, call.RedactedHeader(req.Header))
		}
		if got := w.client.NewCall(req).RedactedURL(req.URL); !strings.Contains(got, "mine=secret1") {
			w.Errorf("the client it was derived from masks too: %s", got)
		}
	})
}

// A declared secret does not follow a redirect to another origin.
func TestSecretsDoNotFollowARedirect(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		got := map[string]string{}
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			host, _, _ := net.SplitHostPort(r.Host)
			got[host+r.URL.Path] = r.Header.Get("X-Mine")
			switch {
			case r.URL.Path == "/from":
				http.Redirect(rw, r, "/same", http.StatusFound)
			case r.URL.Path == "/same":
				http.Redirect(rw, r, w.url(other, "/away"), http.StatusFound)
			case r.URL.Path == "/away":
				http.Redirect(rw, r, w.url(origin, "/back"), http.StatusFound)
			}
		})
		req := w.request("GET", "/from", nil)
		req.Header.Set("X-Mine", "secret")
		w.do(req, "")
		want := map[string]string{origin + "/from": "secret", origin + "/same": "secret", other + "/away": "", origin + "/back": ""}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("X-Mine (-want +got):\n%s", diff)
		}
	}, catena.WithSecrets("x-mine"))
}

// What an interceptor changes holds for the links below it, in this call alone.
func TestInterceptorChangesSettings(t *testing.T) {
	change := func(f func(*chain.Config)) catena.Option {
		return catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
			before := *c.Config()
			below := c.With(f)
			if diff := plain(before, *c.Config()); diff != "" {
				t.Errorf("the link's own settings changed (-before +after):\n%s", diff)
			}
			return below.Proceed(c.Request())
		}))
	}
	t.Run("read timeout", func(t *testing.T) {
		overProtocols(t, allProtocols, func(w *world) {
			w.serve(hang)
			client := w.derive(w.client, change(func(c *chain.Config) { c.ReadTimeout = time.Second }))
			began := time.Now()
			err := w.reaches(client)
			var timeout *catena.TimeoutError
			if !errors.As(err, &timeout) || timeout.Step != event.StepRead || timeout.After != time.Second {
				w.Errorf("error %v, want a read timeout after 1 s", err)
			}
			if took := time.Since(began); took > 2*time.Second {
				w.Errorf("it took %v", took)
			}
		})
	})
	t.Run("network", func(t *testing.T) {
		overProtocols(t, allProtocols, func(w *world) {
			w.serve(answer)
			w.get("/", "abc")
			own := w.client.Network().With(nil)
			client := w.derive(w.client, change(func(c *chain.Config) { c.Network = own }))
			for range 2 {
				if err := w.reaches(client); err != nil {
					w.Error(err)
				}
			}
			if n := w.net.Dials(originAddr); n != 2 {
				w.Errorf("%d connections, want 2: none is shared, each is kept", n)
			}
		})
	})
	for name, f := range map[string]func(*chain.Config){
		"negative timeout": func(c *chain.Config) { c.WriteTimeout = -1 },
		"no network":       func(c *chain.Config) { c.Network = nil },
		"no pool":          func(c *chain.Config) { c.Pool = nil },
		"bad protocols":    func(c *chain.Config) { c.Network = &route.Network{Protocols: []string{"h3"}} },
		"bad limit":        func(c *chain.Config) { c.MaxResponseHeaderBytes = 0 },
		"bad policy":       func(c *chain.Config) { c.RetryPolicy = 9 },
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, []string{h1}, func(w *world) {
				err := w.reaches(w.derive(w.client, change(f)))
				if err == nil || !strings.Contains(err.Error(), "TestInterceptorChangesSettings") {
					w.Errorf("error %v: want one that names the interceptor", err)
				}
				if n := w.net.Dials(originAddr); n != 0 {
					w.Errorf("the call dialed %d times", n)
				}
			})
		})
	}
	t.Run("network interceptor", func(t *testing.T) {
		overProtocols(t, []string{h1}, func(w *world) {
			w.serve(answer)
			client := w.derive(w.client, catena.WithNetworkInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
				return c.With(func(c *chain.Config) { c.ReadTimeout = time.Second }).Proceed(c.Request())
			})))
			if err := w.reaches(client); err == nil || !strings.Contains(err.Error(), "too late") {
				w.Errorf("error %v: want one that says that it is too late", err)
			}
		})
	})
}

func TestCallTimeoutIsOfTheCallAlone(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(slow)
		began := time.Now()
		_, err := finish(w.client.NewCall(w.request("GET", "/", nil), catena.WithCallTimeout(500*time.Millisecond)))
		var timeout *catena.TimeoutError
		if !errors.As(err, &timeout) || timeout.Step != event.StepCall || !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("error %v, want the call timeout", err)
		}
		if took := time.Since(began); took != 500*time.Millisecond {
			w.Errorf("it took %v", took)
		}
		w.get("/", "abc")
	})
}
