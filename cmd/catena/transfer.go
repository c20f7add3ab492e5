package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/event"
)

// transfer calls the nth URL and writes what it answers.
func (c *command) transfer(ctx context.Context, n int, raw string) error {
	req, err := c.newRequest(ctx, raw)
	if err != nil {
		return err
	}
	watch := &watcher{}
	opts := []catena.CallOption{catena.WithEventListener(watch)}
	if c.options.trace {
		recorder := event.NewRecorder()
		opts = append(opts, catena.WithEventListener(recorder))
		defer func() { writeTimeline(c.stderr, recorder.Events(), false) }()
	}
	resp, err := c.client.NewCall(req, opts...).Execute()
	if err != nil {
		if c.options.verbose {
			c.stderr.Write(c.proxies.takeHeads())
		}
		switch {
		case watch.tooManyFollowUps:
			err = fail(exitRedirects, err)
		case watch.noHandshake && exitCode(err) == exitReceive:
			err = fail(exitTLS, err) // with a proxy, of which this is a part of connecting
		}
		return err
	}
	defer resp.Body.Close()
	if c.options.fail && resp.StatusCode >= 400 {
		who := "server"
		if resp.StatusCode == http.StatusProxyAuthRequired { // from an origin it is an error
			who = "proxy"
		}
		return fail(exitStatus, fmt.Errorf("the %s answered %s", who, printable(resp.Status)))
	}
	return c.save(n, resp)
}

// watcher remembers what an error alone does not tell.
type watcher struct {
	event.NopListener
	tooManyFollowUps bool
	noHandshake      bool // the last TLS handshake failed
}

func (w *watcher) SecureConnectEnd(_ event.Call, _ *tls.ConnectionState, err error) {
	w.noHandshake = err != nil
}

func (w *watcher) FollowUpDecision(_ event.Call, _ *http.Response, _ *http.Request, why event.Reason) {
	w.tooManyFollowUps = w.tooManyFollowUps || why == event.ReasonTooManyFollowUps
}

// save writes the response to the nth URL: heads where they are asked for, and
// the body.
func (c *command) save(n int, resp *http.Response) (err error) {
	first := resp
	for first.Request.Response != nil {
		first = first.Request.Response
	}
	out, err := c.openOutput(n, first.Request.URL)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := out.Close(); err == nil && closeErr != nil {
			err = fail(exitWriteError, closeErr)
		}
	}()
	if c.options.include || c.options.head {
		if err := writeHeads(out, resp); err != nil {
			return fail(exitWriteError, err)
		}
	}
	if c.options.head {
		return nil
	}
	dst := &writeEnd{w: out}
	if c.showsProgress(n) {
		p := newProgress(c.stderr, resp.ContentLength)
		defer p.end()
		dst.progress = p
	}
	_, err = io.Copy(dst, resp.Body)
	switch {
	case dst.err != nil:
		return fail(exitWriteError, dst.err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fail(exitPartial, err)
	}
	return err
}

// writeEnd is where a body is written; it tells failures to write from failures
// to read.
type writeEnd struct {
	w        io.Writer
	progress *progress // nil: none
	err      error
}

func (w *writeEnd) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.err = err
	if w.progress != nil {
		w.progress.add(n)
	}
	return n, err
}
