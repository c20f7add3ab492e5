// Package zaplog writes the events of calls to a zap logger.
package zaplog

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/catena-http/catena/event"
)

// New returns a listener that logs to l. One serves all calls of any number of
// clients. A nil l logs nothing.
//
//   - Debug: each step of a call once it is over, with its duration in "took",
//     and each decision with its reason in "why".
//   - Info: the end of a call; one that failed because it was canceled, too.
//   - Warn: steps and calls that failed, and attempts that are made again. A step
//     that was canceled is only worth a Debug line: the loser of a race is one.
//
// Each line has "call", the call's number; lines at Info and above have "method"
// and "url" too, without the password and with the call's secrets masked. The
// last line of a call tells besides
//
//   - "duration", from CallStart; "took", that of each step, those of all
//     attempts together. "connect" is as long as any connection was being
//     attempted, and has "tls" in it; "wait" is from the end of a request to the
//     first byte of the response, "read" is without it;
//   - "attempts", the number of requests written or begun; "status", that of the
//     last response; "sent" and "received", the sizes in bytes of all bodies on
//     the wire;
//   - of the last connection "connection", its number, "addr", "proxy", "protocol",
//     and "reused", whether another exchange had opened it.
//
// What does not apply is left out.
//
// Where l takes no line of a level, that line costs no allocation; where it does
// not even take Warn, nothing is remembered of a call.
func New(l *zap.Logger, opts ...Option) event.Listener {
	if l == nil {
		return event.NopListener{}
	}
	z := &listener{log: l, calls: map[uint64]*callState{}}
	for _, o := range opts {
		o(z)
	}
	return z
}

// Option changes what a listener of New logs.
type Option func(*listener)

// WithHeaders adds "header" to the lines of requests, responses and interim
// responses, at Debug. Secret fields are masked, by the client's list.
func WithHeaders() Option { return func(z *listener) { z.headers = true } }

// listener keeps a callState from CallStart to CallEnd or CallFailed. Canceled
// may come outside of that time and so leaves it alone.
type listener struct {
	event.NopListener
	log     *zap.Logger
	headers bool

	mu     sync.Mutex            // guards calls and what is in it; never held while logging
	calls  map[uint64]*callState // by Call.ID
	unused sync.Pool             // of *callState that are in calls no more
}

// note lets f change the state of c at the present time, if there is one. What f
// returns is note's own answer.
func (z *listener) note(c event.Call, f func(s *callState, now time.Time) time.Duration) time.Duration {
	z.mu.Lock()
	defer z.mu.Unlock()
	if s := z.calls[c.ID()]; s != nil {
		return f(s, time.Now())
	}
	return 0
}

// begin starts the clock of a step.
func (z *listener) begin(c event.Call, s step) {
	z.note(c, func(cs *callState, now time.Time) time.Duration {
		cs.clocks[s].start(now)
		return 0
	})
}

// end stops the clock of a step and says how long this one took.
func (z *listener) end(c event.Call, s step) time.Duration {
	return z.note(c, func(cs *callState, now time.Time) time.Duration { return cs.clocks[s].stop(now) })
}

func (z *listener) debug(msg string) *zapcore.CheckedEntry {
	return z.log.Check(zapcore.DebugLevel, msg)
}

// failure is the entry for a step that failed with err, nil if it is not taken.
func (z *listener) failure(msg string, err error) *zapcore.CheckedEntry {
	level := zapcore.WarnLevel
	if errors.Is(err, context.Canceled) {
		level = zapcore.DebugLevel
	}
	return z.log.Check(level, msg)
}

func number(c event.Call) zap.Field { return zap.Uint64("call", c.ID()) }

func took(d time.Duration) zap.Field { return zap.Duration("took", d) }

func method(req *http.Request) zap.Field {
	if req == nil {
		return zap.Skip()
	}
	if req.Method == "" {
		return zap.String("method", http.MethodGet)
	}
	return zap.String("method", req.Method)
}

func target(c event.Call, req *http.Request) zap.Field {
	if req == nil {
		return zap.Skip()
	}
	return address(c, req.URL)
}

func address(c event.Call, u *url.URL) zap.Field {
	if u == nil {
		return zap.Skip()
	}
	return zap.String("url", c.RedactedURL(u))
}

func (z *listener) header(c event.Call, h http.Header) zap.Field {
	if !z.headers {
		return zap.Skip()
	}
	return zap.Any("header", c.RedactedHeader(h))
}
