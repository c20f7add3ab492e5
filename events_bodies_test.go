package catena_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
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

var _, _ io.ReadCloser = (*endlessBody)(nil), (*silentBody)(nil)
