package auth_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/catena-http/catena/auth"
	"github.com/catena-http/catena/proxy"
)

// endless is a body without end.
type endless struct{ reads, closes int }

func (b *endless) Read(p []byte) (int, error) { b.reads++; return len(p), nil }
func (b *endless) Close() error               { b.closes++; return nil }

// TestDigestBodyIsInterrupted: a body that is hashed is let go of when the call ends, be it that it gives
// nothing or that it has no end.
func TestDigestBodyIsInterrupted(t *testing.T) {
	digest := func(ctx context.Context, getBody func() (io.ReadCloser, error)) error {
		resp := refusal(t, 401, `Digest realm="a", nonce="1", qop="auth-int"`)
		resp.Request = resp.Request.WithContext(ctx)
		resp.Request.Body, _ = getBody()
		resp.Request.GetBody = getBody
		next, err := auth.Digest("me", "pw").Authenticate(proxy.Proxy{}, resp)
		if next != nil {
			t.Error("it was answered")
		}
		return err
	}
	ended := errors.New("enough")
	t.Run("silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { // once the body is being read
				synctest.Wait()
				cancel(ended)
			}()
			r, _ := io.Pipe()
			if err := digest(ctx, func() (io.ReadCloser, error) { return r, nil }); !errors.Is(err, ended) {
				t.Error(err)
			}
		})
	})
	t.Run("endless", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ended)
		body := &endless{}
		opened := 0
		err := digest(ctx, func() (io.ReadCloser, error) {
			if opened++; opened == 1 {
				return io.NopCloser(nil), nil
			}
			return body, nil
		})
		if !errors.Is(err, ended) || body.reads != 0 {
			t.Errorf("%v after %d reads", err, body.reads)
		}
	})
}
