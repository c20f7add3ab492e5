package zaplog

import (
	"time"

	"go.uber.org/zap"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

// step is a part of a call that has a clock.
type step int

const (
	queue step = iota
	proxySelect
	dns
	connect
	tlsHandshake
	write
	wait
	read
	steps // how many there are
)

// stepNames are the steps' names in a log, those of event.Step where there is one.
var stepNames = [steps]string{
	queue:        string(event.StepQueue),
	proxySelect:  string(event.StepProxySelect),
	dns:          string(event.StepDNS),
	connect:      string(event.StepConnect),
	tlsHandshake: string(event.StepTLS),
	write:        string(event.StepWrite),
	wait:         "wait",
	read:         string(event.StepRead),
}

// clock adds up the time during which one or more of a step are under way.
type clock struct {
	running int
	since   time.Time
	total   time.Duration
	ran     bool // to an end
}

func (k *clock) start(now time.Time) {
	if k.running == 0 {
		k.since = now
	}
	k.running++
}

// stop returns the time since the first of those under way was started, and 0 if
// there are none.
func (k *clock) stop(now time.Time) time.Duration {
	if k.running == 0 {
		return 0
	}
	d := now.Sub(k.since)
	k.ran = true
	if k.running--; k.running == 0 {
		k.total += d
	}
	return d
}

// callState is what is known of a call that is under way.
type callState struct {
	start          time.Time
	clocks         [steps]clock
	connects       []attempt // those under way
	requests       int
	responded      bool // to the last request
	status         int
	sent, received int64

	connection     uint64 // the last one
	addr           string
	proxy          proxy.Proxy
	protocol       string
	reusedDecision uint64 // the last connection that ReuseDecision called reused
}

// attempt is a connection that is being attempted; several may race.
type attempt struct {
	addr  string
	proxy proxy.Proxy
	start time.Time
}

// reset forgets the call but keeps the memory.
func (s *callState) reset() {
	clear(s.connects)
	*s = callState{connects: s.connects[:0]}
}

func (s *callState) connectStart(addr string, p proxy.Proxy, now time.Time) {
	s.clocks[connect].start(now)
	s.connects = append(s.connects, attempt{addr, p, now})
}

// connectEnd returns how long this attempt took.
func (s *callState) connectEnd(addr string, p proxy.Proxy, now time.Time) time.Duration {
	s.clocks[connect].stop(now)
	for i, a := range s.connects {
		if a.addr == addr && a.proxy == p {
			last := len(s.connects) - 1
			s.connects[i] = s.connects[last]
			s.connects = s.connects[:last]
			return now.Sub(a.start)
		}
	}
	return 0
}

// requestStart begins an exchange. The one before may have ended while it was
// still waited for a response.
func (s *callState) requestStart(now time.Time) {
	s.requests++
	s.responded = false
	s.clocks[wait].running = 0
	s.clocks[write].start(now)
}

// requestEnd: nothing more is written for now, a response is waited for unless it
// came early.
func (s *callState) requestEnd(now time.Time) time.Duration {
	if !s.responded && s.clocks[wait].running == 0 {
		s.clocks[wait].start(now)
	}
	return s.clocks[write].stop(now)
}

func (s *callState) responseStart(now time.Time) {
	s.responded = true
	s.clocks[wait].stop(now)
	s.clocks[read].start(now)
}

// fields are those of the last line of a call.
func (s *callState) fields(now time.Time) []zap.Field {
	fields := []zap.Field{zap.Duration("duration", now.Sub(s.start)), zap.Int("attempts", s.requests)}
	if s.status != 0 {
		fields = append(fields, zap.Int("status", s.status))
	}
	if s.requests > 0 {
		fields = append(fields, zap.Int64("sent", s.sent), zap.Int64("received", s.received))
	}
	if s.connection != 0 {
		fields = append(fields,
			zap.Uint64("connection", s.connection),
			zap.String("addr", s.addr),
			via(s.proxy),
			zap.String("protocol", s.protocol),
			zap.Bool("reused", s.reusedDecision == s.connection))
	}
	var parts []zap.Field
	for i, k := range s.clocks {
		if k.ran {
			parts = append(parts, zap.Duration(stepNames[i], k.total))
		}
	}
	if len(parts) > 0 {
		fields = append(fields, zap.Dict("took", parts...))
	}
	return fields
}

func via(p proxy.Proxy) zap.Field {
	if p.IsDirect() {
		return zap.Skip()
	}
	return zap.String("proxy", p.String())
}
