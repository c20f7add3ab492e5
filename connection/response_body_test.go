package connection

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
)

// Close beside a Read says that it closes and then interrupts the connection. The
// Read may end in between: nobody else may be given the connection.
func TestCloseBesideAReadThatEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		ask  int // bytes
		want error
	}{
		"at the body's end": {ask: 10, want: io.EOF},
		"before it":         {ask: 1, want: http.ErrBodyReadAfterClose},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, nil)
				rest := make(chan string)
				w.host("a.test", "192.0.2.1", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Content-Length", "4")
					io.WriteString(rw, "ab")
					rw.(http.Flusher).Flush()
					io.WriteString(rw, <-rest)
				}))
				c := w.newCall(t.Context(), "http://a.test/")
				if err := c.connect(); err != nil {
					t.Fatal(err)
				}
				resp, err := c.roundTrip()
				if err != nil {
					t.Fatal(err)
				}
				c.a.Settle()
				if _, err := io.ReadFull(resp.Body, make([]byte, 2)); err != nil {
					t.Fatal(err)
				}
				read := make(chan error)
				go func() {
					_, err := resp.Body.Read(make([]byte, tc.ask))
					read <- err
				}()
				synctest.Wait()
				if !c.exchange.reading.CompareAndSwap(bodyInUse, bodyClosing) { // as Close does
					t.Fatal("no Read is under way")
				}
				rest <- "cd"
				if err := <-read; !errors.Is(err, tc.want) {
					t.Errorf("Read gave %v, want %v", err, tc.want)
				}
				w.expect(0, 0)
				c.exchange.interrupt() // what is left of Close
				if diff := cmp.Diff([]event.Reason{event.ReasonUnreadBody}, w.closings()); diff != "" {
					t.Error("(-want +got):\n" + diff)
				}
				c.life.Finish()
			})
		})
	}
}
