package chain

import (
	"net/http"
	"time"

	"github.com/catena-http/catena/event"
)

// Info is how a response came about.
type Info struct {
	// Connection carried the exchange.
	Connection event.Connection
	// Protocol is the connection's: "http/1.1", "h2" or "h2c".
	Protocol string
	// SentAt is when the request's head was about to be written, ReceivedAt when
	// the response's head had been read.
	SentAt, ReceivedAt time.Time
	// Attempts are the tries of the call that had failed before.
	Attempts []Attempt
}

// InfoOf is how resp came about: a response of a client's call, or a prior one
// (resp.Request.Response). It is false for a response that did not come over a
// connection, for those of a client's RoundTripper, and where an interceptor of the
// application's replaced the request's context instead of deriving from it. A network
// interceptor asks Chain.Connection: to it InfoOf is false.
func InfoOf(resp *http.Response) (Info, bool) {
	if resp == nil || resp.Request == nil {
		return Info{}, false
	}
	infos, _ := resp.Request.Context().Value(infosKey{}).(*Infos)
	if infos == nil {
		return Info{}, false
	}
	return infos.find(resp.Request)
}

type infosKey struct{}

// Infos are the exchanges of one call, found by the request of the hop. An engine
// part without a promise to users. They are added by the call's goroutine while
// Execute runs and only read afterwards.
type Infos struct {
	first hop
	more  []hop
}

type hop struct {
	request *http.Request
	info    Info
}

// Add remembers the exchange that answered req.
func (i *Infos) Add(req *http.Request, info Info) {
	if i.first.request == nil || i.first.request == req {
		i.first = hop{req, info}
		return
	}
	i.more = append(i.more, hop{req, info})
}

func (i *Infos) find(req *http.Request) (Info, bool) {
	for n := len(i.more) - 1; n >= 0; n-- {
		if i.more[n].request == req {
			return i.more[n].info, true
		}
	}
	if i.first.request == req {
		return i.first.info, true
	}
	return Info{}, false
}

// Value answers the context key by which InfoOf finds i, and nil to others.
func (i *Infos) Value(key any) any {
	if key == (infosKey{}) {
		return i
	}
	return nil
}
