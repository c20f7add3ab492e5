package catena_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catena-http/catena/chain"
)

// endlessBody is a request body without an end, as fast as it is read. It counts
// its closes.
type endlessBody struct {
	closes atomic.Int32
	closed chan struct{} // closed by the first Close
}

func (b *endlessBody) Read(p []byte) (int, error) {
	select {
	case <-b.closed:
		return 0, http.ErrBodyReadAfterClose
	default:
		return len(p), nil
	}
}

func (b *endlessBody) Close() error {
	if b.closes.Add(1) == 1 {
		close(b.closed)
	}
	return nil
}

func (b *endlessBody) checkClosed(t *testing.T) {
	t.Helper()
	if n := b.closes.Load(); n != 1 {
		t.Errorf("the request body was closed %d times", n)
	}
}

// silentBody is a request body whose Read waits for Close.
type silentBody struct{ endlessBody }

func newSilentBody() *silentBody {
	return &silentBody{endlessBody{closed: make(chan struct{})}}
}

func (b *silentBody) Read([]byte) (int, error) {
	<-b.closed
	return 0, http.ErrBodyReadAfterClose
}

// stallingBody gives first and then waits for Close.
type stallingBody struct {
	first io.Reader
	*silentBody
}

func (b stallingBody) Read(p []byte) (int, error) {
	if n, err := b.first.Read(p); err == nil {
		return n, nil
	}
	return b.silentBody.Read(p)
}

var _, _ io.ReadCloser = (*endlessBody)(nil), (*silentBody)(nil)

// deadlines is an application interceptor that tells the deadline of a call.
func deadlines(tell func(time.Time)) chain.Interceptor {
	return chain.InterceptorFunc(func(c chain.Chain) (*http.Response, error) {
		at, _ := c.Request().Context().Deadline()
		tell(at)
		return c.Proceed(c.Request())
	})
}
