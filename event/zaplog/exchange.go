package zaplog

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/catena-http/catena/event"
)

func (z *listener) RequestHeadersStart(c event.Call) {
	z.note(c, func(s *callState, now time.Time) time.Duration {
		s.requestStart(now)
		return 0
	})
}

func (z *listener) RequestHeadersEnd(c event.Call, req *http.Request) {
	d := z.note(c, (*callState).requestEnd)
	if e := z.debug("request head sent"); e != nil {
		e.Write(number(c), method(req), target(c, req), z.header(c, req.Header), took(d))
	}
}

func (z *listener) RequestBodyStart(c event.Call) {
	z.note(c, func(s *callState, now time.Time) time.Duration {
		s.clocks[wait].stop(now)
		s.clocks[write].start(now)
		return 0
	})
}

func (z *listener) RequestBodyEnd(c event.Call, n int64) {
	d := z.note(c, func(s *callState, now time.Time) time.Duration {
		s.sent += n
		return s.requestEnd(now)
	})
	if e := z.debug("request body sent"); e != nil {
		e.Write(number(c), zap.Int64("bytes", n), took(d))
	}
}

func (z *listener) RequestFailed(c event.Call, err error) {
	z.stepFailed(c, "sending the request failed", err, z.note(c, (*callState).requestEnd))
}

func (z *listener) ResponseHeadersStart(c event.Call) {
	z.note(c, func(s *callState, now time.Time) time.Duration {
		s.responseStart(now)
		return 0
	})
}

func (z *listener) InformationalResponse(c event.Call, code int, h http.Header) {
	if e := z.debug("interim response received"); e != nil {
		e.Write(number(c), zap.Int("status", code), z.header(c, h))
	}
}

func (z *listener) ResponseHeadersEnd(c event.Call, resp *http.Response) {
	d := z.note(c, func(s *callState, now time.Time) time.Duration {
		s.status = resp.StatusCode
		return s.clocks[read].stop(now)
	})
	if e := z.debug("response head received"); e != nil {
		e.Write(number(c), status(resp), zap.String("protocol", resp.Proto), z.header(c, resp.Header), took(d))
	}
}

func (z *listener) ResponseBodyStart(c event.Call) { z.begin(c, read) }

func (z *listener) ResponseBodyEnd(c event.Call, n int64) {
	d := z.note(c, func(s *callState, now time.Time) time.Duration {
		s.received += n
		return s.clocks[read].stop(now)
	})
	if e := z.debug("response body received"); e != nil {
		e.Write(number(c), zap.Int64("bytes", n), took(d))
	}
}

func (z *listener) ResponseFailed(c event.Call, err error) {
	d := z.note(c, func(s *callState, now time.Time) time.Duration {
		return s.clocks[wait].stop(now) + s.clocks[read].stop(now)
	})
	z.stepFailed(c, "reading the response failed", err, d)
}
