package interceptors

import (
	"errors"
	"net/http"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
)

// recovery is what the decision about another try depends on.
type recovery struct {
	failure  *connection.Failure
	canceled bool // the call, or the request's context, has ended
	enabled  bool // Config.RetryOnConnectionFailure
	policy   chain.RetryPolicy
	// idempotent: twice is as good as once.
	idempotent bool
	// replayable: the body can be sent again, or was not touched.
	replayable bool
}

// decide is the table of docs/connections.md; the first line that applies counts.
func (r recovery) decide() (retry bool, why event.Reason) {
	f := r.failure
	var body *connection.RequestBodyError
	var protocol *connection.ProtocolError
	var timeout *event.TimeoutError
	switch {
	case r.canceled:
		return false, event.ReasonCanceled
	case !f.Exchanged:
		// Connecting has tried every route already, or the failure is not the
		// network's.
		return false, f.WhyNotConnected()
	case !r.enabled:
		return false, event.ReasonRetryDisabled
	case errors.As(f.Err, &body):
		return false, event.ReasonRequestBody
	case errors.As(f.Err, &protocol):
		return false, event.ReasonProtocolError
	case errors.As(f.Err, &timeout):
		return false, event.ReasonTimeout
	case f.Unprocessed && f.TooManyRefusals():
		return false, event.ReasonTooManyRefusals
	case !r.replayable:
		return false, event.ReasonOneShotBody
	case f.Unprocessed:
		return true, event.ReasonNotProcessed
	case f.Written && !r.idempotent && r.policy == chain.RetrySafe:
		return false, event.ReasonMayHaveBeenActedOn
	case !f.MoreRoutes:
		return false, event.ReasonNoMoreRoutes
	case f.Reused:
		return true, event.ReasonStaleConnection
	default:
		return true, event.ReasonNextRoute
	}
}

// idempotent reports whether a request may be acted on twice (RFC 9110 9.2.2):
// by its method, of which those of the IANA registry that are safe count too, or
// because an Idempotency-Key lets the server tell.
func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PROPFIND", "REPORT", "SEARCH", "QUERY":
		return true
	}
	_, key := req.Header["Idempotency-Key"]
	_, xkey := req.Header["X-Idempotency-Key"]
	return key || xkey
}
