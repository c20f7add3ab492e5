package connection

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
	"github.com/catena-http/catena/internal/wire"
)

// errAnswered is what RequestFailed carries where the server gave its final
// answer before it had the whole request.
var errAnswered = errors.New("the server answered before the request body was sent")

// skippedBody is the size from which on a plain proxy's refusal makes the connection
// useless. Some (squid 5) refuse without reading the body, promise to keep the
// connection and then wait for nobody on it: the body is in the buffers between us and
// them. Smaller ones they swallow.
const skippedBody = 32 << 10

// SendBody sends the request's body and its end on the call's goroutine.
func (x *Exchange) SendBody(req *http.Request) error {
	x.sending = true
	x.listener().RequestBodyStart(x.call())
	n, err := x.send(req, false)
	if err != nil {
		return x.requestFailed(err)
	}
	x.bodySent(n)
	return nil
}

func (x *Exchange) bodySent(n int64) {
	x.sending, x.uploaded = false, n
	x.listener().RequestBodyEnd(x.call(), n)
}

// send writes body and end, and closes the body. While it runs, the end of the
// call closes the body too. early sends the head ahead of the body's first bytes,
// which may be long in coming.
func (x *Exchange) send(req *http.Request, early bool) (int64, error) {
	body := lifetime.OnceBody(req.Body)
	var guard lifetime.Guard
	guard.Watch(x.allocation.life, req.Context(), body)
	n, err := int64(0), error(nil)
	if early {
		err = x.codec.Flush()
	}
	if err == nil {
		n, err = x.codec.ReadFrom(body)
	}
	if err == nil {
		err = x.codec.FinishRequest(req.Trailer)
	}
	if err != nil {
		if x.upload != nil && x.upload.stopped.Load() {
			err = errUnwanted
		}
		x.codec.AbortRequest() // ends the response too, which stops the upload
	}
	guard.Release()
	body.Close()
	return n, err
}

// SendBodyWatching sends the body on the call's goroutine while another one
// watches for the response, so that a final one ends the sending. It returns
// with the response, and with that goroutine ended.
func (x *Exchange) SendBodyWatching(req *http.Request) (*http.Response, error) {
	body := lifetime.OnceBody(req.Body)
	watch := &watcher{x: x, body: body, done: make(chan struct{})}
	x.sending = true
	x.listener().RequestBodyStart(x.call())
	go watch.run() // ends with a final response or with the connection
	defer watch.join()
	n, err := x.send(req, true)
	answered, unanswerable := watch.answered.Load(), watch.first.Load()
	var own *wire.RequestBodyError
	gaveUp := !answered && !unanswerable && (errors.As(err, &own) || errors.Is(err, os.ErrDeadlineExceeded))
	if gaveUp {
		x.interrupt() // nobody waits for an answer to half a request
	}
	if err == nil {
		x.bodySent(n)
	}
	<-watch.done
	watch.joined = true
	switch {
	case err == nil:
	case answered:
		x.requestFailed(errAnswered)
	case unanswerable:
		x.fail(event.StepRead, watch.err)
		x.requestFailed(watch.err)
	default:
		err = x.requestFailed(err)
		if gaveUp {
			watch.err = err
		}
		if watch.err != nil { // the failure to write stays the one that counts
			watch.deliver()
			return nil, err
		}
	}
	return watch.deliver()
}

// watcher reads heads while the request's body is being sent.
type watcher struct {
	x        *Exchange
	body     *lifetime.Body
	answered atomic.Bool // a final response came, possibly before the body's end
	first    atomic.Bool // reading failed, possibly before writing did

	done    chan struct{} // closed when the fields below are set
	interim []*http.Response
	final   *http.Response
	err     error

	joined bool // the call's: it has seen done closed
}

// join ends the reading where the call's goroutine leaves early, because the
// body's Read or a listener panics: what is read into is about to be given back.
func (w *watcher) join() {
	if !w.joined {
		w.x.interrupt()
		<-w.done
	}
}

func (w *watcher) run() {
	defer close(w.done)
	for {
		resp, err := w.x.codec.ReadResponseHeaders(nil)
		if err == nil {
			err = w.x.admit(resp)
		}
		if err != nil {
			w.err = err
			w.first.Store(true)
			w.x.codec.InterruptWrite()
			w.body.Close()
			return
		}
		if isInterim(resp) {
			w.interim = append(w.interim, resp)
			continue
		}
		w.final = resp
		w.answered.Store(true)
		w.x.codec.InterruptWrite()
		w.body.Close()
		return
	}
}

// deliver announces on the call's goroutine what was read meanwhile.
func (w *watcher) deliver() (*http.Response, error) {
	x := w.x
	if len(w.interim) > 0 || w.final != nil {
		x.hear()
	}
	for _, resp := range w.interim {
		x.listener().InformationalResponse(x.call(), resp.StatusCode, resp.Header)
	}
	if w.err != nil {
		return nil, x.responseFailed(w.err)
	}
	x.opened(w.final)
	return w.final, nil
}

// upload is an HTTP/2 request body that is sent beside the response.
type upload struct {
	body *lifetime.Body
	done chan struct{} // closed when err is set, the events are sent and the part is done
	err  error

	once    sync.Once // of stopping it
	stopped atomic.Bool
}

// errUnwanted is what an upload fails with that was stopped from here: what its
// body says after our Close is not its own failure.
var errUnwanted = errors.New("the request body is not wanted any more")

// StartUpload sends the body on a goroutine of its own, which ends with the body,
// the stream or the response body's Close. Its events come from there.
func (x *Exchange) StartUpload(req *http.Request) {
	body := lifetime.OnceBody(req.Body)
	u := &upload{body: body, done: make(chan struct{})}
	x.upload = u
	x.parts.Add(1)
	x.listener().RequestBodyStart(x.call())
	go x.upload.run(x, req)
}

// run sends the body. That it panics, or ends the goroutine, is the body's
// failure.
func (u *upload) run(x *Exchange, req *http.Request) {
	defer close(u.done)
	var n int64
	returned := false
	lifetime.Run(func() (err error) {
		n, err = x.send(req, true)
		returned = true
		return err
	}, func(err error) {
		if !returned {
			x.codec.AbortRequest()
			err = &wire.RequestBodyError{Err: err}
		}
		if err != nil {
			u.err = x.explain(event.StepWrite, err)
			x.listener().RequestFailed(x.call(), u.err)
		} else {
			x.listener().RequestBodyEnd(x.call(), n)
		}
		x.partDone()
	})
}

func (x *Exchange) uploading() bool {
	if x.upload == nil {
		return false
	}
	select {
	case <-x.upload.done:
		return false
	default:
		return true
	}
}

// UploadError waits for the end of an upload whose response failed, and returns
// what the upload failed with, if that is the body's own failure.
func (x *Exchange) UploadError() error {
	if x.upload == nil {
		return nil
	}
	x.stopUpload()
	var own *wire.RequestBodyError
	if errors.As(x.upload.err, &own) {
		return x.upload.err
	}
	return nil
}

// stopUpload ends an upload and waits for it, as long as the body's Read takes to
// notice its Close.
func (x *Exchange) stopUpload() {
	u := x.upload
	if u == nil {
		return
	}
	u.once.Do(func() {
		select {
		case <-u.done:
			return
		default:
		}
		u.stopped.Store(true)
		x.codec.InterruptWrite()
		u.body.Close()
	})
	<-u.done
}

// interrupt makes the exchange's blocked reads and writes fail.
func (x *Exchange) interrupt() {
	if x.conn.multiplexed() {
		x.codec.(interface{ Cancel() }).Cancel()
		return
	}
	x.conn.closeSocket()
}
