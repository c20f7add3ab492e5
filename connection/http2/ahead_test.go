package http2_test

import (
	"io"
	"net/http"
	"runtime"
	"testing"
)

// On one processor the connection lets the reader of a body run before much of it
// lies unread, whatever the socket holds.
func TestBodyIsNotReadFarAhead(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := newTCPPeer(t)
	p.settle()
	const size, most = 8 << 20, 512 << 10
	body, id := p.body(0)
	go p.more(id, size) // ends when all is read
	var unread int64
	buf := make([]byte, 64<<10)
	for n := 0; n < size; {
		k, err := body.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		n += k
		unread = max(unread, p.client.Unread())
	}
	if unread > most {
		t.Errorf("%d KiB lay unread, more than %d", unread>>10, most>>10)
	}
}

// Over TLS too a reader gets what has come before the connection waits for more.
func TestReaderIsWokenBeforeAWaitOverTLS(t *testing.T) {
	more := make(chan struct{})
	c := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			io.WriteString(w, "piece")
			w.(http.Flusher).Flush()
			select {
			case <-more:
			case <-r.Context().Done():
				return
			}
		}
	})
	endless := terms
	endless.ReadTimeout = 0 // a reader that it wakes looks for itself
	s := open(t, c, endless, request(t, "GET", "https://x.test/"), 0)
	defer s.End()
	if err := s.FinishRequest(nil); err != nil {
		t.Fatal(err)
	}
	within(t, func() {
		resp := head(t, s)
		piece := make([]byte, len("piece"))
		for range 3 {
			if _, err := io.ReadFull(resp.Body, piece); err != nil || string(piece) != "piece" {
				t.Errorf("%q, %v", piece, err)
				return
			}
			more <- struct{}{}
		}
		if _, err := resp.Body.Read(piece); err != io.EOF {
			t.Errorf("error is %v", err)
		}
	})
}
