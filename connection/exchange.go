package connection

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/internal/wire"
)

// Exchange is one request and its response on a connection: the codec, its
// events, the translation of its errors, and the response's body. It is an
// engine part without a promise to users.
//
// The call's goroutine uses it; while a body is sent, a second one may help,
// which ends before the exchange does.
type Exchange struct {
	allocation *StreamAllocation
	conn       *RealConnection
	codec      Codec
	reused     bool // the connection had been used before
	request    *http.Request
	guard      lifetime.Guard

	// Of the Terms, which are larger than what is needed of them here.
	readTimeout, writeTimeout time.Duration
	maxInterim                int

	began      time.Time
	sentAt     time.Time
	receivedAt time.Time
	sending    bool  // the Start of a part of the request was sent, its end was not
	uploaded   int64 // bytes of a request body that was sent to its end, not beside the response
	heard      bool  // ResponseHeadersStart was sent
	gaveUp     bool  // ResponseFailed was sent

	failed error      // the first failure of the codec
	step   event.Step // of failed
	upload *upload    // an HTTP/2 request body that is sent beside the response

	body         io.ReadCloser // the codec's
	out          io.ReadCloser // what the response has; nil before
	bodyStarted  bool          // ResponseBodyStart was sent
	received     atomic.Int64  // bytes of body
	serverCloses bool          // by its word, not only as the end of the body
	reading      atomic.Int32  // see responseBody
	bodyErr      error         // what the body's reader got; io.EOF after a good end
	cut          bool          // Close interrupts, or is about to, beside a Read: nobody else may get the connection
	unreadBody   bool          // the server may not have read the request's body

	// parts counts what keeps the exchange open: the response's body, and an
	// upload. settled and the last part's end together release the connection.
	parts   atomic.Int32
	settled atomic.Bool
	ended   atomic.Bool // the release was taken by somebody
	over    atomic.Bool // finish has run
}

func (x *Exchange) begin(a *StreamAllocation, c *RealConnection, req *http.Request, t Terms, reused bool) {
	x.allocation, x.conn, x.reused, x.request = a, c, reused, req
	x.readTimeout, x.writeTimeout, x.maxInterim = t.Exchange.ReadTimeout, t.Exchange.WriteTimeout, t.MaxInterim
	x.began = time.Now()
	x.codec = c.newCodec(t.Exchange)
	var hook lifetime.Hook = c
	if s, ok := x.codec.(*http2.Stream); ok {
		hook = (*streamHook)(s)
	}
	x.guard.Watch(a.life, req.Context(), hook)
	x.parts.Store(1)
}

// Connection is the connection the exchange runs on.
func (x *Exchange) Connection() *RealConnection { return x.conn }

// Duplex reports whether the response may be read while the request is sent.
func (x *Exchange) Duplex() bool { return x.conn.multiplexed() }

// Written reports whether the peer may have seen anything of the request.
func (x *Exchange) Written() bool { return x.codec.Written() }

// SentAt is when the request's head was about to be written.
func (x *Exchange) SentAt() time.Time { return x.sentAt }

// ReceivedAt is when the response's head had been read.
func (x *Exchange) ReceivedAt() time.Time { return x.receivedAt }

func (x *Exchange) listener() event.Listener { return x.allocation.listener }

func (x *Exchange) call() event.Call { return x.allocation.call }

// explain translates what a codec failed with: the end of the call, a timeout of
// ours, or err itself.
func (x *Exchange) explain(step event.Step, err error) error {
	if cause := x.cause(); cause != nil {
		return cause
	}
	var own *wire.RequestBodyError
	var known *event.TimeoutError
	if errors.As(err, &own) || errors.As(err, &known) || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	after := x.readTimeout
	if step == event.StepWrite || errors.Is(err, wire.ErrWriteTimeout) {
		step, after = event.StepWrite, x.writeTimeout
	}
	return &event.TimeoutError{Step: step, After: after}
}

// cause is what ended the call or the request's context, nil while both live.
func (x *Exchange) cause() error {
	return x.allocation.life.CauseWith(x.request.Context())
}

// Ended reports whether the call or the request's context has ended.
func (x *Exchange) Ended() bool { return x.cause() != nil }

// WriteRequestHeaders writes the request's head, which announces size bytes of
// body (see Codec), and ends a request without body. Where more follows, the head
// may wait for it, unless it is to be sent now.
func (x *Exchange) WriteRequestHeaders(req *http.Request, size int64, now bool) error {
	x.request = req
	x.sentAt = time.Now()
	x.sending = true
	x.listener().RequestHeadersStart(x.call())
	err := x.codec.WriteRequestHeaders(req, size)
	switch {
	case err != nil:
	case size == 0:
		err = x.codec.FinishRequest(nil)
	case now:
		err = x.codec.Flush()
	}
	if err != nil {
		return x.requestFailed(err)
	}
	x.sending = false
	x.listener().RequestHeadersEnd(x.call(), req)
	return nil
}

// fail notes the first failure of the exchange, and returns it in our words.
func (x *Exchange) fail(step event.Step, err error) error {
	err = x.explain(step, err)
	if x.failed == nil {
		x.failed, x.step = err, step
		if timeout := (*event.TimeoutError)(nil); errors.As(err, &timeout) && timeout.Step == event.StepWrite {
			x.step = event.StepWrite // of an upload beside the response that was waited for
		}
	}
	return err
}

// requestFailed reports a failure to write, once, in our words.
func (x *Exchange) requestFailed(err error) error {
	err = x.fail(event.StepWrite, err)
	x.sending = false
	x.listener().RequestFailed(x.call(), err)
	return err
}

// AwaitResponse waits at most d for the first byte of a response.
func (x *Exchange) AwaitResponse(d time.Duration) (bool, error) {
	ready, err := x.codec.AwaitResponse(d)
	if err != nil {
		return false, x.responseFailed(err)
	}
	return ready, nil
}

// SkipBody ends a request whose body was announced and is not wanted.
func (x *Exchange) SkipBody() { x.codec.AbortRequest() }

// ErrTooManyInterim is part of the error of a response that never comes for
// interim ones.
var ErrTooManyInterim = wire.ErrTooManyInterim

// ReadResponseHeaders reads heads until one is not interim, or stopAt says that
// an interim one is what is waited for; nil stops at none.
func (x *Exchange) ReadResponseHeaders(stopAt func(code int) bool) (*http.Response, error) {
	for {
		resp, err := x.codec.ReadResponseHeaders(x.onFirstByte())
		if err == nil {
			err = x.admit(resp)
		}
		if err != nil {
			return nil, x.responseFailed(err)
		}
		if !isInterim(resp) {
			x.opened(resp)
			return resp, nil
		}
		x.listener().InformationalResponse(x.call(), resp.StatusCode, resp.Header)
		if stopAt != nil && stopAt(resp.StatusCode) {
			return resp, nil
		}
	}
}

func isInterim(resp *http.Response) bool {
	return resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols
}

// admit counts interim responses.
func (x *Exchange) admit(resp *http.Response) error {
	if !isInterim(resp) {
		return nil
	}
	if x.allocation.interim++; x.allocation.interim > x.maxInterim {
		return &wire.ProtocolError{Reason: "no final response", Err: ErrTooManyInterim}
	}
	return nil
}

// onFirstByte is the codec's callback; nil where it would do nothing, because a
// bound method costs an allocation.
func (x *Exchange) onFirstByte() func() {
	if x.heard || x.listener() == (event.Listener)(event.NopListener{}) {
		return nil
	}
	return x.hear
}

func (x *Exchange) hear() {
	if !x.heard {
		x.heard = true
		x.listener().ResponseHeadersStart(x.call())
	}
}

// responseFailed reports a failure to read, in our words.
func (x *Exchange) responseFailed(err error) error {
	err = x.fail(event.StepRead, err)
	x.gaveUp = true
	x.listener().ResponseFailed(x.call(), err)
	return err
}

// opened takes over the final response.
func (x *Exchange) opened(resp *http.Response) {
	x.receivedAt = time.Now()
	x.hear()
	resp.Request, resp.TLS = x.request, x.conn.state
	if up := x.upgraded(resp); up != nil {
		x.body = up
		x.out = &upgradedBody{x}
		resp.Body = x.out
		x.listener().ResponseHeadersEnd(x.call(), resp)
		return
	}
	framed := resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0
	x.serverCloses = framed && resp.Close
	x.unreadBody = resp.StatusCode/100 == 4 && x.uploaded >= skippedBody && x.conn.route.Forwarded()
	x.body = resp.Body
	x.out = (*responseBody)(x)
	resp.Body = x.out
	x.listener().ResponseHeadersEnd(x.call(), resp)
	if x.body == http.NoBody {
		resp.Body, x.out = http.NoBody, http.NoBody
		x.reading.Store(bodyEnded)
		x.bodyErr = io.EOF
		x.listener().ResponseBodyStart(x.call())
		x.listener().ResponseBodyEnd(x.call(), 0)
		x.partDone()
	}
}

// upgraded is the stream that resp has opened: after a 101 the connection, after
// an extended CONNECT on HTTP/2 (RFC 8441) a stream of it. nil: none.
func (x *Exchange) upgraded(resp *http.Response) io.ReadWriteCloser {
	if resp.StatusCode == http.StatusSwitchingProtocols || x.conn.multiplexed() && resp.StatusCode/100 == 2 {
		return x.codec.Upgrade()
	}
	return nil
}

// partDone ends one of what keeps the exchange open; the last one finishes it.
func (x *Exchange) partDone() {
	if x.parts.Add(-1) == 0 {
		x.finish(false)
	}
}

// finish gives the codec back and decides whether the connection may be used
// again. Once.
func (x *Exchange) finish(failed bool) {
	clean := x.guard.Release()
	reusable := !failed && clean && !x.cut && !x.unreadBody && x.codec.Reusable()
	if x.conn.http1 != nil {
		if hint, ok := x.conn.http1.KeepAlive(); ok {
			x.conn.pool.hint(x.conn, hint)
		}
	}
	x.codec.End()
	defer func() { // also where a listener panics
		x.over.Store(true)
		if x.settled.Load() {
			x.letGo(x.bodyErr)
		}
	}()
	switch {
	case x.conn.multiplexed() && asksForClose(x.request):
		// HTTP/2 has no word for it (RFC 9113 8.2.2): the streams under way end,
		// and no other one begins.
		x.conn.retire(event.ReasonConnectionClose)
	case reusable:
		x.conn.completed.Add(1)
	case x.conn.multiplexed():
	case !clean:
		x.conn.retire(event.ReasonCanceled)
	case failed:
		x.conn.retire(event.ReasonExchangeFailed)
	default:
		x.conn.retire(x.whyNotReusable())
	}
}

// letGo releases the connection for good, after the body's end, which was err.
// finish and settle may both come to it, from two goroutines; one of them does it.
func (x *Exchange) letGo(err error) {
	if err == io.EOF {
		err = nil
	}
	if x.ended.Swap(true) {
		return
	}
	defer x.allocation.owner.Released(err)
	x.allocation.release()
}

// settle says that no exchange follows: the end of this one releases the
// connection. Where that has been, nobody else is to know how.
func (x *Exchange) settle() {
	x.settled.Store(true)
	if x.over.Load() {
		x.letGo(nil)
	}
}

// abandon cuts the exchange off: its response is not wanted, or it failed.
func (x *Exchange) abandon() {
	if x.over.Load() {
		return
	}
	x.stopUpload()
	if x.over.Load() { // the upload was the last part
		return
	}
	x.parts.Store(0)
	defer x.finish(true)
	defer x.interrupt()
	x.endEvents()
}
