package catena_test

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/event"
)

// What the engine needs of a call is not the application's to call.
func TestCallHasNoMethodsOfTheEngine(t *testing.T) {
	var methods []string
	for m := range reflect.TypeFor[*catena.Call]().Methods() {
		methods = append(methods, m.Name)
	}
	want := []string{"Cancel", "Clone", "Enqueue", "Execute", "ID", "IsCanceled", "RedactedHeader", "RedactedURL", "Request"}
	if diff := cmp.Diff(want, methods); diff != "" {
		t.Errorf("the methods (-want +got):\n%s", diff)
	}
}

// The call that interceptors, listeners and factories see is the application's.
func TestEveryoneSeesTheCallItself(t *testing.T) {
	seen := map[string]event.Call{}
	note := func(name string) chain.Interceptor {
		return chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
			seen[name] = c.Call()
			return c.Proceed(c.Request())
		})
	}
	opts := []catena.Option{
		catena.WithInterceptor(note("interceptor")), catena.WithNetworkInterceptor(note("network interceptor")),
		catena.WithEventListenerFactory(func(c event.Call) event.Listener {
			seen["factory"] = c
			return acquisition{seen: seen}
		}),
	}
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(answer)
		call := w.client.NewCall(w.request("GET", "/", nil))
		if _, err := finish(call); err != nil {
			w.Fatal(err)
		}
		for _, name := range []string{"interceptor", "network interceptor", "factory", "listener"} {
			if seen[name] != event.Call(call) {
				w.Errorf("the %s saw %T, want the *catena.Call", name, seen[name])
			}
		}
	}, opts...)
}

type acquisition struct {
	event.NopListener
	seen map[string]event.Call
}

func (a acquisition) ConnectionAcquired(c event.Call, _ event.Connection) { a.seen["listener"] = c }

// Nobody made them: they say so instead of following a nil pointer.
func TestZeroClientAndCall(t *testing.T) {
	const want = "the client was not made by catena.New"
	check := func(name string, err error) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	var client catena.Client
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://origin.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Do(req)
	check("Do", err)
	_, err = client.RoundTripper().RoundTrip(req)
	check("RoundTrip", err)
	_, err = client.With()
	check("With", err)
	_, err = new(catena.Call).Execute()
	check("Execute", err)
	done := make(chan error)
	new(catena.Call).Enqueue(func(_ *http.Response, err error) { done <- err })
	check("Enqueue", <-done)
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := client.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
