package connection

import (
	"cmp"
	"errors"
	"io"
	"net/http"

	"golang.org/x/net/http/httpguts"

	"github.com/catena-http/catena/event"
)

// whyNotReusable is why no exchange may follow one that came to a good end.
func (x *Exchange) whyNotReusable() event.Reason {
	switch unread := x.cut || x.reading.Load() == bodyClosed && x.bodyErr != io.EOF; {
	case x.serverCloses, asksForClose(x.request):
		return event.ReasonConnectionClose
	case unread:
		return event.ReasonUnreadBody
	}
	return event.ReasonNotReusable
}

// asksForClose reports whether req wants its connection closed behind it.
func asksForClose(req *http.Request) bool {
	options := req.Header["Connection"]
	if len(options) == 0 || len(options) == 1 && options[0] == "Keep-Alive" {
		return req.Close // the Bridge's own
	}
	return req.Close || httpguts.HeaderValuesContainsToken(options, "close")
}

var errAbandoned = errors.New("the exchange was given up")

// endEvents ends what was announced and has had no end: an interceptor failed,
// panicked or lost the body, or the request's body panicked.
func (x *Exchange) endEvents() {
	if x.sending {
		x.requestFailed(errAbandoned)
	}
	switch {
	case x.out != nil:
		if state := x.reading.Swap(bodyClosed); state != bodyEnded && state != bodyClosed {
			x.bodyBegins()
			x.listener().ResponseBodyEnd(x.call(), x.received.Load())
		}
	case x.gaveUp:
	case x.heard:
		x.responseFailed(cmp.Or(x.failed, errAbandoned))
	case !x.sentAt.IsZero() && x.failed == nil:
		x.responseFailed(errAbandoned)
	}
}
