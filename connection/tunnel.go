package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/route"
	"golang.org/x/net/http/httpguts"
)

// The bounds of asking for a tunnel.
const (
	// maxConnects is how many CONNECTs are sent for one, on as many sockets as the
	// proxy likes.
	maxConnects = 21
	// refusalBytes and refusalTime bound what is read of a refusal's content so that
	// its socket can be used again, and shownBytes what is kept of it.
	refusalBytes = 64 << 10
	refusalTime  = 500 * time.Millisecond
	shownBytes   = 4 << 10
)

// tunnel is what has been said about a tunnel so far.
type tunnel struct {
	request *http.Request // the CONNECT to send next; nil before the first
	sent    int           // CONNECTs
}

// openTunnel asks the proxy for a tunnel to the origin (RFC 9110 9.3.6), until
// it opens one or refuses for good. A 407 is answered by the Network's proxy
// authenticator, on the same socket if the proxy keeps it.
func (d *dialer) openTunnel(ctx context.Context) error {
	if d.tunnel.request == nil {
		if err := d.prepareConnect(ctx); err != nil {
			return err
		}
	}
	codec := http1.NewConn(d.stream(), d.secure)
	for first := true; ; first = false {
		var answer connectAnswer
		heard := false
		err := d.talk(ctx, func(context.Context) (err error) {
			answer, err = d.sendConnect(codec, func() { heard = true })
			return err
		})
		switch {
		case err != nil && !first && !heard && cutOff(err) && d.tunnel.sent < maxConnects:
			return errAnotherSocket // it was kept in word only
		case err != nil:
			return err
		}
		if o, ok := d.authenticator().(auth.Observer); ok {
			o.Observe(d.route.Proxy, answer.resp)
		}
		if answer.opens() {
			return nil
		}
		if err := d.follow(answer); err != nil {
			return err
		}
		if !answer.reusable {
			return errAnotherSocket
		}
	}
}

// cutOff reports whether a connection was ended, not timed out or misused.
func cutOff(err error) bool {
	var protocol *wire.ProtocolError
	return !errors.As(err, &protocol) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// connectAnswer is a final answer to CONNECT.
type connectAnswer struct {
	resp *http.Response // without its body

	// Of a refusal.
	body     []byte // its beginning
	reusable bool   // the socket can carry another CONNECT
}

// opens reports whether the tunnel is open: any 2xx says so.
func (a connectAnswer) opens() bool { return a.resp.StatusCode/100 == 2 }

// sendConnect sends the CONNECT and reads what comes of it. Where the tunnel is open,
// d.conn.through leads to the origin.
func (d *dialer) sendConnect(codec *http1.Conn, heard func()) (a connectAnswer, err error) {
	d.tunnel.sent++
	codec.Begin(wire.Exchange{MaxHeaderBytes: d.terms.Exchange.MaxHeaderBytes, MaxHeaderFields: d.terms.Exchange.MaxHeaderFields})
	defer codec.End()
	if err = codec.WriteRequestHeaders(d.tunnel.request, 0); err == nil {
		err = codec.FinishRequest(nil)
	}
	var resp *http.Response
	for interim := 0; err == nil && (resp == nil || resp.StatusCode < 200); interim++ {
		if interim > d.terms.MaxInterim {
			err = &wire.ProtocolError{Reason: "no final response", Err: ErrTooManyInterim}
			break
		}
		resp, err = codec.ReadResponseHeaders(heard)
	}
	if err != nil {
		return a, fmt.Errorf("ask proxy %s for a tunnel to %s: %w", d.route.Shown, d.target(), err)
	}
	resp.Request = d.tunnel.request
	if a.resp = resp; a.opens() {
		return a, d.enterTunnel(codec)
	}
	socket := d.socket
	late := time.AfterFunc(refusalTime, func() { socket.Close() })
	a.body = readRefusal(resp.Body)
	inTime := late.Stop()
	resp.Body = http.NoBody
	a.reusable = inTime && codec.Reusable() && !httpguts.HeaderValuesContainsToken(resp.Header["Proxy-Connection"], "close")
	return a, nil
}

// readRefusal reads body as far as it matters and returns its beginning.
func readRefusal(body io.ReadCloser) []byte {
	beginning, err := io.ReadAll(io.LimitReader(body, shownBytes))
	if err == nil {
		io.Copy(io.Discard, io.LimitReader(body, refusalBytes-shownBytes))
	}
	body.Close()
	return beginning
}

// enterTunnel makes the tunnel the way to the origin. A server waits for the
// client's first word in TLS, so that earlier bytes are none of the origin's; in
// HTTP/2 it may speak first (RFC 9113 3.4).
func (d *dialer) enterTunnel(codec *http1.Conn) error {
	n := codec.Early()
	switch {
	case n == 0:
	case d.route.Address.Secure():
		return wire.Protocolf("proxy %s sent %d bytes after it had opened the tunnel, before TLS began in it", d.route.Shown, n)
	default:
		d.conn.through = codec.Upgrade().(net.Conn)
	}
	return nil
}

// follow works out the CONNECT that follows a refusal; the error is for good.
func (d *dialer) follow(a connectAnswer) error {
	refused := &route.ProxyError{StatusCode: a.resp.StatusCode, Head: a.resp, Body: a.body, Proxy: d.route.Shown, Target: d.target()}
	if a.resp.StatusCode != http.StatusProxyAuthRequired {
		return refused
	}
	next, why, err := d.authenticate(a.resp)
	d.listener.FollowUpDecision(d.call, a.resp, next, why)
	switch {
	case err != nil:
		return err
	case next == nil && why == event.ReasonTooManyFollowUps:
		return fmt.Errorf("%w, after %d requests", refused, d.tunnel.sent)
	case next == nil:
		return refused
	}
	d.tunnel.request = next
	return nil
}

// prepareConnect makes the first CONNECT. Where no credentials are known, the
// authenticator may have some ahead of any refusal.
func (d *dialer) prepareConnect(ctx context.Context) error {
	d.step = event.StepProxy
	req := d.newConnect(ctx)
	h := req.Header
	h["Proxy-Connection"] = []string{"Keep-Alive"}
	if d.terms.UserAgent != "" {
		h["User-Agent"] = []string{d.terms.UserAgent}
	}
	for name, values := range d.route.Address.Network.ProxyConnectHeader {
		h[http.CanonicalHeaderKey(name)] = values
	}
	if h.Get("User-Agent") == "" {
		delete(h, "User-Agent")
	}
	if user := d.route.Proxy.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
		h["Proxy-Authorization"] = h["Authorization"]
		delete(h, "Authorization")
	}
	d.tunnel.request = req
	if len(h["Proxy-Authorization"]) > 0 {
		return nil
	}
	answered, err := d.askAuthenticator(auth.PreemptiveChallenge(req))
	if answered != nil {
		d.tunnel.request = answered
	}
	return err
}

// newConnect is a CONNECT without a header, with the call's context.
func (d *dialer) newConnect(ctx context.Context) *http.Request {
	target := d.target()
	req := &http.Request{
		Method: http.MethodConnect, URL: &url.URL{Opaque: target, Host: target}, Host: target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{},
	}
	return req.WithContext(ctx)
}

// target is the origin as CONNECT names it (RFC 9112 3.2.3).
func (d *dialer) target() string { return wire.WithoutZone(d.route.Address.HostPort()) }
