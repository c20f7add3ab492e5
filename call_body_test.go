package catena_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/chain"
)

// wrapping is an interceptor that puts the body into another one.
func wrapping(wrap func(io.ReadCloser) io.ReadCloser) catena.Option {
	return catena.WithInterceptor(chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		resp, err := c.Proceed(c.Request())
		if err == nil {
			resp.Body = wrap(resp.Body)
		}
		return resp, err
	}))
}

// A body that is not the connection's own may be closed beside a Read as well:
// both return, the call ends well, and nothing comes after its end.
func TestWrappedBodyIsClosedBesideARead(t *testing.T) {
	for name, opt := range map[string]catena.Option{
		"decoded":                   catena.WithUserAgent("any"),
		"wrapped":                   wrapping(func(b io.ReadCloser) io.ReadCloser { return struct{ io.ReadCloser }{b} }),
		"not closed by its wrapper": wrapping(func(b io.ReadCloser) io.ReadCloser { return io.NopCloser(onlyReads{b}) }),
	} {
		t.Run(name, func(t *testing.T) {
			overProtocols(t, allProtocols, func(w *world) {
				w.serve(func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Content-Encoding", "gzip")
					rw.Write(compressed("Hello")[:12])
					rw.(http.Flusher).Flush()
					hang(rw, r)
				})
				w.client = w.derive(w.client, opt)
				resp, err := w.client.Do(w.request("GET", "/", nil))
				if err != nil {
					w.Fatal(err)
				}
				failed := make(chan error)
				go func() {
					_, err := io.Copy(io.Discard, resp.Body)
					failed <- err
				}()
				synctest.Wait()
				if _, err := resp.Body.Read(make([]byte, 1)); err == nil || errors.Is(err, http.ErrBodyReadAfterClose) {
					w.Errorf("a second Read beside the first gave %v", err)
				}
				resp.Body.Close()
				if err := <-failed; err != http.ErrBodyReadAfterClose {
					w.Errorf("Read gave %v, want ErrBodyReadAfterClose", err)
				}
				if _, err := resp.Body.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose {
					w.Errorf("Read after Close gave %v, want ErrBodyReadAfterClose", err)
				}
				if err := resp.Body.Close(); err != nil {
					w.Errorf("the second Close: %v", err)
				}
				names := w.calls.Names()
				if last := names[len(names)-1]; last != "CallEnd" {
					w.Errorf("the last event is %s", last)
				}
			})
		})
	}
}

// onlyReads hides that what it reads from can be closed.
type onlyReads struct{ io.Reader }

// moody is a body that panics or fails when it is told to.
type moody struct {
	io.ReadCloser
	read func() error
}

func (m *moody) Read(p []byte) (int, error) {
	if err := m.read(); err != nil {
		return 0, err
	}
	return m.ReadCloser.Read(p)
}

// A wrapper that panics leaves a body that can still be closed.
func TestWrappedBodyPanics(t *testing.T) {
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(answer)
		w.client = w.derive(w.client, wrapping(func(b io.ReadCloser) io.ReadCloser {
			return &moody{b, func() error { panic("boom") }}
		}))
		resp, err := w.client.Do(w.request("GET", "/", nil))
		if err != nil {
			w.Fatal(err)
		}
		func() {
			defer resp.Body.Close()
			defer func() {
				if recover() != "boom" {
					w.Error("the panic does not go on")
				}
			}()
			io.ReadAll(resp.Body)
		}()
		if names := w.calls.Names(); names[len(names)-1] != "CallEnd" {
			w.Errorf("events %v", names)
		}
	})
}

// A wrapper's failure fails the call, once and for all later Reads.
func TestWrappedBodyFails(t *testing.T) {
	sour := errors.New("sour")
	overProtocols(t, []string{h1, h2}, func(w *world) {
		w.serve(answer)
		w.client = w.derive(w.client, wrapping(func(b io.ReadCloser) io.ReadCloser {
			return &moody{b, func() error { return sour }}
		}))
		resp, err := w.client.Do(w.request("GET", "/", nil))
		if err != nil {
			w.Fatal(err)
		}
		defer resp.Body.Close()
		var ours *catena.CallError
		for range 2 {
			if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, sour) || !errors.As(err, &ours) {
				w.Errorf("Read gave %v", err)
			}
		}
		if names := w.calls.Names(); names[len(names)-1] != "CallFailed" {
			w.Errorf("events %v", names)
		}
	})
}
