package oracle

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/catena-http/catena/internal/wire"
)

// maxInterim bounds the interim heads that wait to be read. A caller that
// reads them counts for itself.
const maxInterim = 100

// interim holds the 1xx heads that came and have not been read yet.
type interim struct {
	// ready has a token when a head was put. One reader waits on it.
	ready chan struct{}

	mu    sync.Mutex // guards what follows
	heads []*http.Response
	bytes int
}

// put adds a head, unless more wait than maxInterim, or than maxBytes in all.
func (q *interim) put(resp *http.Response, maxBytes int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, n := headerSize(resp.Header)
	if len(q.heads) == maxInterim || q.bytes+n > maxBytes {
		return &wire.ProtocolError{Reason: fmt.Sprintf("%d interim responses wait to be read", len(q.heads)), Err: wire.ErrTooManyInterim}
	}
	q.heads, q.bytes = append(q.heads, resp), q.bytes+n
	select {
	case q.ready <- struct{}{}:
	default:
	}
	return nil
}

// take removes the oldest head; nil: there is none.
func (q *interim) take() *http.Response {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.heads) == 0 {
		return nil
	}
	resp := q.heads[0]
	q.heads[0], q.heads = nil, q.heads[1:]
	_, n := headerSize(resp.Header)
	q.bytes -= n
	return resp
}

func (q *interim) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.heads) > 0
}
