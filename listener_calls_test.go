package catena_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// intruder is a listener that uses the client, and everything that belongs to it,
// from within each event. It would wait for itself where an event is sent with a
// lock held. Where do is set it does that instead.
type intruder struct {
	do func(name string)
	event.NopListener
	event.NopConnectionListener
	w *world
	// client shares pool and dispatcher with the one that is listened to, but has
	// no listener.
	client *catena.Client

	mu   sync.Mutex // guards the field below
	seen map[string]bool
}

func newIntruder(w *world) *intruder { return &intruder{w: w, seen: map[string]bool{}} }

// intrude does all this once for each kind of event, and looks around each time.
func (i *intruder) intrude(name string, c event.Call) {
	if i.do != nil {
		i.do(name)
		return
	}
	i.mu.Lock()
	client, first := i.client, !i.seen[name]
	i.seen[name] = true
	i.mu.Unlock()
	if client == nil {
		return
	}
	pool, d := client.Pool(), client.Dispatcher()
	_, _, _ = pool.Stats(), pool.IdleCount(), pool.ConnectionCount()
	_, _, _, _ = d.Running(), d.Queued(), d.RunningCount(), d.QueuedCount()
	if c, ok := c.(*catena.Call); ok {
		c.IsCanceled()
	}
	if !first {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resp, err := client.Get(ctx, i.w.url(origin, "/from-"+name))
	if err != nil {
		i.w.Errorf("a call within %s: %v", name, err)
		return
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	d.SetMaxCalls(d.RunningCount() + 64)
	client.CloseIdleConnections()
	if derived, err := client.With(catena.WithUserAgent("derived")); err != nil {
		i.w.Error(err)
	} else if err := derived.Close(); err != nil {
		i.w.Error(err)
	}
}

func (i *intruder) CallStart(c event.Call)            { i.intrude("CallStart", c) }
func (i *intruder) DispatcherQueueStart(c event.Call) { i.intrude("DispatcherQueueStart", c) }
func (i *intruder) DispatcherQueueEnd(c event.Call)   { i.intrude("DispatcherQueueEnd", c) }
func (i *intruder) ProxySelectStart(c event.Call, _ *url.URL) {
	i.intrude("ProxySelectStart", c)
}
func (i *intruder) ProxySelectEnd(c event.Call, _ *url.URL, _ []proxy.Proxy, _ error) {
	i.intrude("ProxySelectEnd", c)
}
func (i *intruder) DNSStart(c event.Call, _ string) { i.intrude("DNSStart", c) }
func (i *intruder) DNSEnd(c event.Call, _ string, _ []netip.Addr, _ error) {
	i.intrude("DNSEnd", c)
}
func (i *intruder) ConnectStart(c event.Call, _ string, _ proxy.Proxy) { i.intrude("ConnectStart", c) }
func (i *intruder) SecureConnectStart(c event.Call)                    { i.intrude("SecureConnectStart", c) }
func (i *intruder) SecureConnectEnd(c event.Call, _ *tls.ConnectionState, _ error) {
	i.intrude("SecureConnectEnd", c)
}
func (i *intruder) ConnectEnd(c event.Call, _ string, _ proxy.Proxy, _ string) {
	i.intrude("ConnectEnd", c)
}
func (i *intruder) ConnectFailed(c event.Call, _ string, _ proxy.Proxy, _ string, _ error) {
	i.intrude("ConnectFailed", c)
}
func (i *intruder) ConnectionAcquired(c event.Call, _ event.Connection) {
	i.intrude("ConnectionAcquired", c)
}
func (i *intruder) ConnectionReleased(c event.Call, _ event.Connection) {
	i.intrude("ConnectionReleased", c)
}
func (i *intruder) RequestHeadersStart(c event.Call) { i.intrude("RequestHeadersStart", c) }
func (i *intruder) RequestHeadersEnd(c event.Call, _ *http.Request) {
	i.intrude("RequestHeadersEnd", c)
}
func (i *intruder) RequestBodyStart(c event.Call)         { i.intrude("RequestBodyStart", c) }
func (i *intruder) RequestBodyEnd(c event.Call, _ int64)  { i.intrude("RequestBodyEnd", c) }
func (i *intruder) RequestFailed(c event.Call, _ error)   { i.intrude("RequestFailed", c) }
func (i *intruder) ResponseHeadersStart(c event.Call)     { i.intrude("ResponseHeadersStart", c) }
func (i *intruder) ResponseBodyStart(c event.Call)        { i.intrude("ResponseBodyStart", c) }
func (i *intruder) ResponseBodyEnd(c event.Call, _ int64) { i.intrude("ResponseBodyEnd", c) }
func (i *intruder) ResponseFailed(c event.Call, _ error)  { i.intrude("ResponseFailed", c) }
func (i *intruder) CallEnd(c event.Call)                  { i.intrude("CallEnd", c) }
func (i *intruder) CallFailed(c event.Call, _ error)      { i.intrude("CallFailed", c) }
func (i *intruder) Canceled(c event.Call)                 { i.intrude("Canceled", c) }
func (i *intruder) InformationalResponse(c event.Call, _ int, _ http.Header) {
	i.intrude("InformationalResponse", c)
}
func (i *intruder) ResponseHeadersEnd(c event.Call, _ *http.Response) {
	i.intrude("ResponseHeadersEnd", c)
}
func (i *intruder) RetryDecision(c event.Call, _ error, _ bool, _ event.Reason) {
	i.intrude("RetryDecision", c)
}
func (i *intruder) FollowUpDecision(c event.Call, _ *http.Response, _ *http.Request, _ event.Reason) {
	i.intrude("FollowUpDecision", c)
}
func (i *intruder) ReuseDecision(c event.Call, _ event.Connection, _ bool, _ event.Reason) {
	i.intrude("ReuseDecision", c)
}
func (i *intruder) RouteDecision(c event.Call, _ string, _ proxy.Proxy, _ bool, _ event.Reason) {
	i.intrude("RouteDecision", c)
}

func (i *intruder) Connected(event.Connection)                    { i.intrude("Connected", nil) }
func (i *intruder) Acquired(_ event.Connection, c event.Call)     { i.intrude("Acquired", c) }
func (i *intruder) Released(_ event.Connection, c event.Call)     { i.intrude("Released", c) }
func (i *intruder) NoNewExchanges(event.Connection, event.Reason) { i.intrude("NoNewExchanges", nil) }
func (i *intruder) Closed(event.Connection, event.Reason)         { i.intrude("Closed", nil) }

func TestListenersMayUseTheClient(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/redirect":
				http.Redirect(rw, r, "/hints", http.StatusFound)
			case "/hints":
				rw.WriteHeader(http.StatusEarlyHints)
			case "/half":
				cutHalfway(rw, r)
			case "/hang":
				hang(rw, r)
			case "/abort":
				panic(http.ErrAbortHandler)
			case "/slow":
				time.Sleep(time.Second)
			}
			io.Copy(io.Discard, r.Body)
		})
		i := newIntruder(w)
		client := w.derive(w.client, catena.WithEventListener(i), catena.WithConnectionListener(i))
		plain, err := catena.New(
			catena.WithPool(w.client.Pool()), catena.WithDispatcher(w.client.Dispatcher()),
			catena.WithDNS(w.net), catena.WithDialContext(w.net.DialContext), catena.WithProxy(proxy.Proxy{}),
			catena.WithTLSConfig(&tls.Config{RootCAs: testRoots()}), catena.WithProtocols(client.Network().Protocols...))
		if err != nil {
			w.Fatal(err)
		}
		defer plain.Close()
		i.client = plain

		do := func(req *http.Request, opts ...catena.CallOption) { finish(client.NewCall(req, opts...)) }
		do(w.request("GET", "/redirect", nil))
		do(w.request("POST", "/", strings.NewReader("Hello")))
		do(w.request("GET", "/half", nil))
		do(w.request("GET", "/abort", nil))
		do(w.requestTo("GET", "http://192.0.2.77:1/", nil))
		broken := w.request("POST", "/", failingReader{})
		broken.ContentLength = 5
		do(broken)
		call := client.NewCall(w.request("GET", "/hang", nil))
		time.AfterFunc(time.Second, call.Cancel)
		finish(call)
		client.Dispatcher().SetMaxCalls(1)
		first, second := enqueue(client.NewCall(w.request("GET", "/slow", nil))), enqueue(client.NewCall(w.request("GET", "/slow", nil)))
		<-first
		<-second
		client.CloseIdleConnections()
		synctest.Wait()
		// Each has a method that no listener of ours has.
		want := reflect.TypeFor[event.Listener]().NumMethod() - 1 + reflect.TypeFor[event.ConnectionListener]().NumMethod() - 1
		if !w.secure() {
			want -= 2 // of the handshake
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if len(i.seen) != want {
			w.Errorf("%d kinds of events came, want %d: %v", len(i.seen), want, i.seen)
		}
		i.client = nil
	})
}

// closer closes the client from within an event that Close itself sends.
type closer struct {
	event.NopListener
	client *catena.Client
}

func (c *closer) Canceled(event.Call) { c.client.Close() }

func TestListenersMayCloseTheClient(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(hang)
		c := &closer{}
		c.client = w.derive(w.client, catena.WithEventListener(c))
		got := enqueue(c.client.NewCall(w.request("GET", "/", nil)))
		synctest.Wait()
		c.client.Close()
		if o := <-got; !errors.Is(o.err, catena.ErrClosed) {
			w.Errorf("error %v, want ErrClosed", o.err)
		}
	})
}
