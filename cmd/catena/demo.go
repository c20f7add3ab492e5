package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

const demoIntro = `A call falls through these rooms, and its answer climbs back:

  catena         Client.NewCall(req).Execute(): starts the call, ends it with its body
  interceptors   RetryAndFollowUp  tries again after failures, follows redirects
                 Bridge            turns the application's request into the network's
                 Connect           asks for a connection
                 CallServer        writes the request, reads the response
  connection     one the call holds already, one of the pool, or a new one: TCP, TLS
  route          which proxies, names and addresses a new one may use, in which order
  http1, http2   the wire

Below is what the event listener of each call was told: when, how long the step took that
ended there, which room it happened in, and of decisions the reason.
`

// scene is one call of the demo.
type scene struct {
	title, text string
	run         func(*stage) (outcome string, err error)
}

var scenes = []scene{
	{"A first call", `Nothing is pooled, so the call chooses a proxy, looks the name up, takes the first route,
and connects. TLS settles on HTTP/2.`,
		func(s *stage) (string, error) { return s.get(s.origins.shopURL("/hello")) }},
	{"The same again", `The pool has a connection to this address: no route is asked for, nothing is dialed.`,
		func(s *stage) (string, error) { return s.get(s.origins.shopURL("/hello")) }},
	{"A redirect chain across hosts", `One call, three exchanges. The first hop is HTTP/1.1 in clear text on a new connection. The
second goes to the first call's host: its pooled connection is taken. The third stays there,
and the call keeps what it holds.`,
		func(s *stage) (string, error) { return s.get(s.origins.oldURL("/start")) }},
	{"Recovery", `The name has two addresses, and nobody listens at the first. The call goes on to the next
route; nothing had been sent, so any method may. The dead route is remembered and tried last
from now on.`,
		func(s *stage) (string, error) { return s.get(s.origins.twinsURL("/")) }},
	{"A POST", `The request has a body now. Had the connection died after it was written, it would not be
sent again: the server may have acted on it.`,
		func(s *stage) (string, error) {
			return s.post(s.origins.shopURL("/orders"), `{"item": "chain", "links": 7}`)
		}},
	{"A tunnel through a proxy", `By CONNECT the proxy is told a host and a port, and nothing yet of the request. It wants to know
who asks, and gets the answer on the same socket. Then the tunnel is open: TLS is with the shop,
and all that the proxy can see are its records. The pooled connections are no use here: they go
straight to the shop.`,
		func(s *stage) (string, error) {
			err := s.through(proxy.Proxy{Type: proxy.HTTP, Host: gateHost, Port: s.origins.gate},
				catena.WithProxyAuthenticator(onChallenge(demoUser, demoPassword)))
			if err != nil {
				return "", err
			}
			return s.get(s.origins.shopURL("/hello"))
		}},
	{"A SOCKS5 proxy", `Only the proxy can look this name up: it is told the name, and the one lookup here is for the
proxy's own.`,
		func(s *stage) (string, error) {
			if err := s.through(proxy.Proxy{Type: proxy.SOCKS5, Host: socksHost, Port: s.origins.socks}); err != nil {
				return "", err
			}
			return s.get(s.origins.insideURL("/"))
		}},
	{"A canceled call", `Another goroutine cancels the call while it waits for the answer. The wait ends at once; on
HTTP/2 only the stream is lost.`,
		func(s *stage) (string, error) { return s.cancel(s.origins.shopURL("/slow")) }},
}

// demo is `catena demo`: a tour of the library on servers of its own.
func demo(ctx context.Context, stdout, stderr io.Writer) int {
	err := tour(ctx, stdout)
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case err != nil:
		fmt.Fprintf(stderr, "catena: demo: %v\n", err)
		return exitOther
	}
	return 0
}

func tour(ctx context.Context, w io.Writer) error {
	o, err := startOrigins()
	if err != nil {
		return err
	}
	defer o.close()
	client, err := catena.New(
		catena.WithDNS(route.DNSFunc(lookup)),
		catena.WithProxy(proxy.Proxy{}),
		catena.WithTLSConfig(&tls.Config{RootCAs: o.roots}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	io.WriteString(w, demoIntro)
	for i, scene := range scenes {
		fmt.Fprintf(w, "\n%d. %s\n\n%s\n\n", i+1, scene.title, scene.text)
		s := &stage{ctx: ctx, client: client, origins: o, recorder: event.NewRecorder()}
		outcome, err := scene.run(s)
		writeTimeline(w, s.recorder.Events(), true)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.ToLower(scene.title), err)
		}
		fmt.Fprintf(w, "\n  => %s\n", outcome)
	}
	fmt.Fprintf(w, "\n%d calls used %d connections; %d of them are idle in the pool.\n",
		len(scenes), client.Pool().ConnectionCount(), client.Pool().IdleCount())
	return nil
}

// stage is what a scene plays on.
type stage struct {
	ctx      context.Context
	client   *catena.Client
	origins  *origins
	recorder *event.Recorder
}

// through makes the calls of the scene go through a proxy. The client derived for it
// shares the pool and ends with the first one.
func (s *stage) through(p proxy.Proxy, opts ...catena.Option) (err error) {
	s.client, err = s.client.With(append(opts, catena.WithProxy(p))...)
	return err
}

func (s *stage) get(url string) (string, error) {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	return s.answer(s.call(req))
}

func (s *stage) post(url, body string) (string, error) {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	return s.answer(s.call(req))
}

func (s *stage) call(req *http.Request) *catena.Call {
	return s.client.NewCall(req, catena.WithEventListener(s.recorder))
}

// answer runs a call to the end of its body.
func (s *stage) answer(call *catena.Call) (string, error) {
	resp, err := call.Execute()
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %q", resp.Status, body), nil
}

// cancel runs a call that is canceled when it waits for the answer.
func (s *stage) cancel(url string) (string, error) {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	sent := &sentListener{sent: make(chan struct{})}
	call := s.client.NewCall(req, catena.WithEventListener(s.recorder), catena.WithEventListener(sent))
	over, canceled := make(chan struct{}), make(chan struct{})
	go func() { // ends with the call at the latest
		defer close(canceled)
		for _, awaited := range []<-chan struct{}{sent.sent, s.origins.slow} {
			select {
			case <-awaited:
			case <-over:
				return
			}
		}
		call.Cancel()
	}()
	_, err = s.answer(call)
	close(over)
	<-canceled
	if !errors.Is(err, context.Canceled) {
		return "", errors.Join(errNotCanceled, err)
	}
	return err.Error(), nil
}

var errNotCanceled = errors.New("the call was canceled and did not say so")

// sentListener tells when the call's request was written.
type sentListener struct {
	event.NopListener
	sent chan struct{}
}

func (l *sentListener) RequestHeadersEnd(event.Call, *http.Request) { close(l.sent) }
