package catenatest

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/catena-http/catena/event"
)

// exchange is a request and its response on a held connection, as far as they
// have come. It begins with RequestHeadersStart.
type exchange struct {
	requestHead, requestBody      phase
	responseHead, responseBody    phase
	requestFailed, responseFailed bool
	code                          int
}

// phase is how far one part of an exchange is.
type phase int

const (
	phaseAhead phase = iota
	phaseOpen
	phaseDone
)

func (x *exchange) next(e event.Event) error {
	switch e.Name {
	case "RequestHeadersEnd":
		return x.finish(&x.requestHead)
	case "RequestBodyStart":
		if x.requestHead != phaseDone {
			return errors.New("the request's head comes first")
		}
		// What is written to the connection after a 101 is a body again.
		if x.requestBody == phaseDone && x.code == http.StatusSwitchingProtocols {
			x.requestBody = phaseAhead
		}
		return x.begin(&x.requestBody, !x.requestFailed)
	case "RequestBodyEnd":
		return x.finish(&x.requestBody)
	case "RequestFailed":
		return cmp.Or(failed(e), x.failRequest())
	case "ResponseHeadersStart":
		return x.begin(&x.responseHead, x.requestHead == phaseDone && !x.responseFailed)
	case "InformationalResponse":
		if x.responseHead != phaseOpen {
			return errors.New("an interim response comes between ResponseHeadersStart and ResponseHeadersEnd")
		}
		return nil
	case "ResponseHeadersEnd":
		x.code = e.Code
		return x.finish(&x.responseHead)
	case "ResponseBodyStart":
		return x.begin(&x.responseBody, x.responseHead == phaseDone && !x.responseFailed)
	case "ResponseBodyEnd":
		return x.finish(&x.responseBody)
	case "ResponseFailed":
		return cmp.Or(failed(e), x.failResponse())
	}
	return errors.New("no such event is known")
}

func (x *exchange) begin(p *phase, allowed bool) error {
	if *p != phaseAhead || !allowed {
		return errors.New("it may not begin now")
	}
	*p = phaseOpen
	return nil
}

func (x *exchange) finish(p *phase) error {
	if *p != phaseOpen {
		return errors.New("its start is not open")
	}
	*p = phaseDone
	return nil
}

// failRequest ends the part that is being written.
func (x *exchange) failRequest() error {
	switch {
	case x.requestHead == phaseOpen:
		x.requestHead = phaseDone
	case x.requestBody == phaseOpen:
		x.requestBody = phaseDone
	default:
		return errors.New("no part of the request is open")
	}
	x.requestFailed = true
	return nil
}

// failResponse ends the part that is being read. It may come before the first
// byte of a part.
func (x *exchange) failResponse() error {
	if x.responseFailed || x.responseBody == phaseDone {
		return errors.New("the response had ended")
	}
	if x.requestHead != phaseDone {
		return errors.New("the request's head comes first")
	}
	x.responseHead, x.responseBody, x.responseFailed = phaseDone, phaseDone, true
	return nil
}

// end says what is missing where the exchange is over. There may be none.
func (x *exchange) end() error {
	switch {
	case x == nil:
		return nil
	case x.requestHead == phaseOpen || x.requestBody == phaseOpen:
		return errors.New("the request has no end yet")
	case x.responseHead == phaseOpen || x.responseBody == phaseOpen:
		return errors.New("the response has no end yet")
	case x.responseBody != phaseDone && !(x.requestFailed && x.responseHead == phaseAhead):
		return errors.New("the exchange has neither failed nor has its response's body ended")
	}
	return nil
}
