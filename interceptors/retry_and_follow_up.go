package interceptors

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/catena-http/catena/chain"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/lifetime"
)

// RetryAndFollowUp tries again after failures and follows what responses ask for:
// redirects, challenges, repetitions.
type RetryAndFollowUp struct{}

// Intercept answers c.Request() with the last response that nothing follows.
func (RetryAndFollowUp) Intercept(c chain.Chain) (*http.Response, error) {
	l := &loop{link: c.(*chain.RealInterceptorChain)}
	l.run = l.link.Run()
	l.allocation = l.run.Allocation
	l.allocation.NewRoutes()
	resp, err := l.do(withOnceBody(c.Request()))
	if err != nil {
		return nil, chain.NewCallError(l.run.Call, l.allocation.Attempts(), err)
	}
	return resp, nil
}

// loop is one Intercept.
type loop struct {
	link       *chain.RealInterceptorChain
	run        *chain.Run
	allocation *connection.StreamAllocation
	followUps  int
	authorizer authorizer
}

func (l *loop) do(req *http.Request) (*http.Response, error) {
	for {
		if err := ValidateRequest(req); err != nil {
			closeBody(req)
			return nil, err
		}
		if cause := l.allocation.Life().CauseWith(req.Context()); cause != nil {
			closeBody(req)
			return nil, cause
		}
		authorized, err := l.authorizer.prepare(req, l.link.Config())
		if err != nil {
			closeBody(req)
			return nil, ended(l.allocation.Life(), req, err)
		}
		req = authorized
		l.run.ProxyAuthorization = l.authorizer.forProxy()
		resp, err := l.link.Proceed(req)
		if err != nil {
			if req, err = l.retry(req, err); err != nil {
				return nil, err
			}
			continue
		}
		req = l.authorizer.asSent(req, resp, l.allocation.Exchange(), l.run.ProxyAuthorization)
		l.note(req)
		l.authorizer.observe(resp, l.allocation.Exchange(), l.link.Config(), l.run.ProxyAuthorization)
		next, err := l.followUp(resp)
		if err != nil || next == nil {
			return resp, err
		}
		req = next
	}
}

// retry is the request to send after a failure, or the error that ends the call.
func (l *loop) retry(req *http.Request, err error) (*http.Request, error) {
	f := l.allocation.Fail(err)
	config := l.link.Config()
	again, whyNot := l.decide(req, &f, config)
	l.allocation.Decide(f, again, whyNot)
	l.run.Listener.RetryDecision(l.run.Call, err, again, whyNot)
	l.allocation.Drop() // also for an interceptor above that proceeds again
	if !again {
		closeBody(req)
		return nil, err
	}
	next, bodyErr := rewound(req)
	if bodyErr != nil {
		return nil, bodyErr
	}
	return next, nil
}

func (l *loop) decide(req *http.Request, f *connection.Failure, config *chain.Config) (bool, event.Reason) {
	return recovery{
		failure:    f,
		canceled:   l.allocation.Life().CauseWith(req.Context()) != nil,
		enabled:    config.RetryOnConnectionFailure,
		policy:     config.RetryPolicy,
		idempotent: f.Request == nil || idempotent(f.Request),
		replayable: replayable(req),
	}.decide()
}

// ended is err, or what ended the call while an authenticator was asked, if err
// is about that.
func ended(life *lifetime.Context, req *http.Request, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		if cause := life.CauseWith(req.Context()); cause != nil {
			return cause
		}
	}
	return err
}

// note remembers how the response to req came about, for InfoOf.
func (l *loop) note(req *http.Request) {
	x := l.allocation.Exchange()
	if x == nil {
		return
	}
	c := x.Connection()
	l.run.Infos.Add(req, chain.Info{
		Connection: c,
		Protocol:   c.Protocol(),
		SentAt:     x.SentAt(),
		ReceivedAt: x.ReceivedAt(),
		Attempts:   l.allocation.Attempts(),
	})
}

// followUp is the request that follows resp, or nil if resp is the answer.
func (l *loop) followUp(resp *http.Response) (*http.Request, error) {
	next, why, err := l.next(resp)
	if err == nil && next != nil {
		if l.followUps++; l.followUps > l.link.Config().MaxFollowUps {
			closeBody(next)
			err = fmt.Errorf("%w: %d (WithMaxFollowUps allows %d)", chain.ErrTooManyFollowUps, l.followUps, l.link.Config().MaxFollowUps)
			why = event.ReasonTooManyFollowUps
		}
	}
	if err != nil {
		resp.Body.Close()
		l.run.Listener.FollowUpDecision(l.run.Call, resp, nil, why)
		return nil, err
	}
	if next == nil {
		l.run.Listener.FollowUpDecision(l.run.Call, resp, nil, why)
		return nil, nil
	}
	resp.Body.Close()
	prior := *resp
	prior.Body = http.NoBody
	next.Response = &prior
	l.authorizer.note(next, why)
	l.run.Listener.FollowUpDecision(l.run.Call, resp, next, why)
	l.allocation.NewRoutes()
	return next, nil
}

// next works out what follows resp, with its body rewound; nil: nothing.
func (l *loop) next(resp *http.Response) (*http.Request, event.Reason, error) {
	f := follower{config: l.link.Config(), secrets: l.run.Secrets, resp: resp, exchange: l.allocation.Exchange()}
	next, why, err := f.next()
	if err != nil || next == nil {
		return nil, why, ended(l.allocation.Life(), resp.Request, err)
	}
	if next.Body != nil && next.Body != http.NoBody && next.GetBody == nil {
		return nil, event.ReasonOneShotBody, nil
	}
	if next.Body != nil && next.Body != http.NoBody {
		body, err := next.GetBody()
		if err != nil {
			return nil, event.ReasonFailed, fmt.Errorf("rewind the request body: %w", err)
		}
		next.Body = lifetime.OnceBody(body)
	}
	return next, why, nil
}

// withOnceBody lets the request's body be closed at most once, and be known for
// untouched as long as nobody read it.
func withOnceBody(req *http.Request) *http.Request {
	if req.Body == nil || req.Body == http.NoBody {
		return req
	}
	if _, ok := req.Body.(*lifetime.Body); ok {
		return req
	}
	own := *req
	own.Body = lifetime.OnceBody(req.Body)
	return &own
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// replayable reports whether req's body can be sent, again or for the first time.
func replayable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil || untouched(req)
}

func untouched(req *http.Request) bool {
	body, ok := req.Body.(*lifetime.Body)
	return ok && !body.Touched()
}

// rewound is req with its body at the start; replayable has said that it can be.
func rewound(req *http.Request) (*http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody || untouched(req) {
		return req, nil
	}
	closeBody(req)
	body, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("rewind the request body: %w", err)
	}
	again := *req
	again.Body = lifetime.OnceBody(body)
	return &again, nil
}
