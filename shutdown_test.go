package catena_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catena-http/catena"
)

func TestClientShutdownWaits(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(slow)
		w.client.Dispatcher().SetMaxCalls(1)
		began := time.Now()
		first := enqueue(w.client.NewCall(w.request("GET", "/running", nil)))
		second := enqueue(w.client.NewCall(w.request("GET", "/queued", nil)))
		resp, err := w.client.Do(w.request("GET", "/open", nil))
		if err != nil {
			w.Fatal(err)
		}
		time.AfterFunc(10*time.Second, func() { // reads 3 bytes, and with them the end
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		})
		var took [2]time.Duration
		var both sync.WaitGroup
		for i := range took {
			both.Go(func() {
				if err := w.client.Shutdown(w.Context()); err != nil {
					w.Error(err)
				}
				took[i] = time.Since(began).Truncate(time.Second)
			})
		}
		synctest.Wait()
		if err := w.reaches(w.client); !errors.Is(err, catena.ErrClosed) {
			w.Errorf("a call during Shutdown: %v, want ErrClosed", err)
		}
		both.Wait()
		for _, d := range took {
			if d < 10*time.Second || d > 12*time.Second {
				w.Errorf("Shutdown took %v", d)
			}
		}
		for _, got := range []<-chan outcome{first, second} {
			if o := w.only(got); o.err != nil || o.body != "abc" {
				w.Errorf("an enqueued call ends with %q, %v", o.body, o.err)
			}
		}
		if n := w.client.Pool().ConnectionCount(); n != 0 {
			w.Errorf("%d connections are left", n)
		}
	})
}

func TestClientShutdownThatEndsEarlyClosesNothing(t *testing.T) {
	overProtocols(t, allProtocols, func(w *world) {
		w.serve(slow)
		w.client.Dispatcher().SetMaxCalls(1)
		running := enqueue(w.client.NewCall(w.request("GET", "/", nil)))
		queued := enqueue(w.client.NewCall(w.request("GET", "/", nil)))
		ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer cancel()
		if err := w.client.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("Shutdown gave %v, want context.DeadlineExceeded", err)
		}
		if err := w.reaches(w.client); !errors.Is(err, catena.ErrClosed) || errors.Is(err, context.Canceled) {
			w.Errorf("a new call gave %v, want ErrClosed alone", err)
		}
		if _, err := w.client.With(); !errors.Is(err, catena.ErrClosed) {
			w.Errorf("With gave %v, want ErrClosed", err)
		}
		time.Sleep(time.Minute)
		for _, got := range []<-chan outcome{running, queued} {
			if o := w.only(got); o.err != nil {
				w.Errorf("a call that was under way: %v", o.err)
			}
		}
		if n := w.client.Pool().IdleCount(); n != 1 {
			w.Errorf("%d idle connections, want 1", n)
		}
		if err := w.client.Shutdown(w.Context()); err != nil {
			w.Errorf("the second Shutdown: %v", err)
		}
		if n := w.client.Pool().ConnectionCount(); n != 0 {
			w.Errorf("%d connections are left", n)
		}
	})
}

// Shutdown of a derived client does not wait for the calls of the one it came
// from.
func TestClientShutdownIsForItselfAndThoseBelow(t *testing.T) {
	overProtocols(t, []string{h1}, func(w *world) {
		w.serve(slow)
		child := w.derive(w.client, catena.WithUserAgent("child"))
		grandchild := w.derive(child, catena.WithUserAgent("grandchild"))
		of := enqueue(w.client.NewCall(w.request("GET", "/", nil)))
		time.Sleep(500 * time.Millisecond)
		began := time.Now()
		if err := child.Shutdown(w.Context()); err != nil || time.Since(began) > 0 {
			w.Errorf("Shutdown took %v: %v", time.Since(began), err)
		}
		if err := w.reaches(grandchild); !errors.Is(err, catena.ErrClosed) {
			w.Errorf("the grandchild: %v, want ErrClosed", err)
		}
		if o := <-of; o.err != nil {
			w.Error(o.err)
		}
		if err := w.reaches(w.client); err != nil {
			w.Error(err)
		}
	})
}
