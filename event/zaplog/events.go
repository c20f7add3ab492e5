package zaplog

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/proxy"
)

func (z *listener) CallStart(c event.Call) {
	if z.log.Core().Enabled(zapcore.WarnLevel) {
		z.add(c)
	}
	if e := z.debug("call started"); e != nil {
		e.Write(number(c), method(c.Request()), target(c, c.Request()))
	}
}

// add begins to keep the state of c.
func (z *listener) add(c event.Call) {
	z.mu.Lock()
	defer z.mu.Unlock()
	s, ok := z.unused.Get().(*callState)
	if !ok {
		s = &callState{}
	}
	s.start = time.Now()
	z.calls[c.ID()] = s
}

func (z *listener) CallEnd(c event.Call) {
	z.finish(c, z.log.Check(zapcore.InfoLevel, "call ended"), nil)
}

func (z *listener) CallFailed(c event.Call, err error) {
	level := zapcore.WarnLevel
	if errors.Is(err, context.Canceled) {
		level = zapcore.InfoLevel
	}
	z.finish(c, z.log.Check(level, "call failed"), err)
}

// finish forgets c and writes its last line, if that is wanted.
func (z *listener) finish(c event.Call, e *zapcore.CheckedEntry, err error) {
	z.mu.Lock()
	s := z.calls[c.ID()]
	delete(z.calls, c.ID())
	z.mu.Unlock()
	if e != nil {
		fields := []zap.Field{number(c), method(c.Request()), target(c, c.Request())}
		if s != nil {
			fields = append(fields, s.fields(time.Now())...)
		}
		e.Write(append(fields, zap.Error(err))...)
	}
	if s != nil {
		s.reset()
		z.unused.Put(s)
	}
}

func (z *listener) Canceled(c event.Call) {
	if e := z.debug("call canceled"); e != nil {
		e.Write(number(c))
	}
}

func (z *listener) DispatcherQueueStart(c event.Call) { z.begin(c, queue) }

func (z *listener) DispatcherQueueEnd(c event.Call) {
	d := z.end(c, queue)
	if e := z.debug("queue left"); e != nil {
		e.Write(number(c), took(d))
	}
}

func (z *listener) ProxySelectStart(c event.Call, _ *url.URL) { z.begin(c, proxySelect) }

func (z *listener) ProxySelectEnd(c event.Call, u *url.URL, proxies []proxy.Proxy, err error) {
	d := z.end(c, proxySelect)
	if err != nil {
		z.stepFailed(c, "proxy selection failed", err, d)
	} else if e := z.debug("proxies selected"); e != nil {
		e.Write(number(c), address(c, u), zap.Strings("proxies", texts(proxies)), took(d))
	}
}

func (z *listener) DNSStart(c event.Call, _ string) { z.begin(c, dns) }

func (z *listener) DNSEnd(c event.Call, host string, addrs []netip.Addr, err error) {
	d := z.end(c, dns)
	if err != nil {
		if e := z.failure("name lookup failed", err); e != nil {
			e.Write(number(c), method(c.Request()), target(c, c.Request()), zap.String("host", host), took(d), zap.Error(err))
		}
	} else if e := z.debug("name looked up"); e != nil {
		e.Write(number(c), zap.String("host", host), zap.Strings("addrs", texts(addrs)), took(d))
	}
}

func (z *listener) ConnectStart(c event.Call, addr string, p proxy.Proxy) {
	z.note(c, func(s *callState, now time.Time) time.Duration {
		s.connectStart(addr, p, now)
		return 0
	})
}

func (z *listener) ConnectEnd(c event.Call, addr string, p proxy.Proxy, protocol string) {
	d := z.connectEnd(c, addr, p)
	if e := z.debug("connected"); e != nil {
		e.Write(number(c), zap.String("addr", addr), via(p), zap.String("protocol", protocol), took(d))
	}
}

func (z *listener) ConnectFailed(c event.Call, addr string, p proxy.Proxy, _ string, err error) {
	d := z.connectEnd(c, addr, p)
	if e := z.failure("connect failed", err); e != nil {
		e.Write(number(c), method(c.Request()), target(c, c.Request()), zap.String("addr", addr), via(p), took(d), zap.Error(err))
	}
}

func (z *listener) connectEnd(c event.Call, addr string, p proxy.Proxy) time.Duration {
	return z.note(c, func(s *callState, now time.Time) time.Duration { return s.connectEnd(addr, p, now) })
}

func (z *listener) SecureConnectStart(c event.Call) { z.begin(c, tlsHandshake) }

func (z *listener) SecureConnectEnd(c event.Call, state *tls.ConnectionState, err error) {
	d := z.end(c, tlsHandshake)
	if err != nil || state == nil {
		z.stepFailed(c, "TLS handshake failed", err, d)
	} else if e := z.debug("TLS established"); e != nil {
		e.Write(number(c), zap.String("version", tls.VersionName(state.Version)),
			zap.String("cipher", tls.CipherSuiteName(state.CipherSuite)), zap.String("alpn", state.NegotiatedProtocol), took(d))
	}
}

func (z *listener) ConnectionAcquired(c event.Call, conn event.Connection) {
	z.note(c, func(s *callState, _ time.Time) time.Duration {
		s.connection, s.addr, s.proxy, s.protocol = conn.ID(), remote(conn), conn.Proxy(), conn.Protocol()
		return 0
	})
	if e := z.debug("connection acquired"); e != nil {
		e.Write(number(c), zap.Uint64("connection", conn.ID()), zap.String("addr", remote(conn)), via(conn.Proxy()),
			zap.String("protocol", conn.Protocol()))
	}
}

func (z *listener) ConnectionReleased(c event.Call, conn event.Connection) {
	if e := z.debug("connection released"); e != nil {
		e.Write(number(c), zap.Uint64("connection", conn.ID()))
	}
}

func remote(conn event.Connection) string {
	if a := conn.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// texts copies what is valid only during the method: a core may keep the field.
func texts[T interface{ String() string }](values []T) []string {
	s := make([]string, len(values))
	for i, v := range values {
		s[i] = v.String()
	}
	return s
}

// stepFailed logs a failure that has nothing to tell but its error.
func (z *listener) stepFailed(c event.Call, msg string, err error, d time.Duration) {
	if e := z.failure(msg, err); e != nil {
		e.Write(number(c), method(c.Request()), target(c, c.Request()), took(d), zap.Error(err))
	}
}

func (z *listener) RetryDecision(c event.Call, err error, retry bool, why event.Reason) {
	if retry {
		if e := z.log.Check(zapcore.WarnLevel, "attempt made again"); e != nil {
			e.Write(number(c), method(c.Request()), target(c, c.Request()), zap.String("why", string(why)), zap.Error(err))
		}
	} else if e := z.debug("attempt not made again"); e != nil {
		e.Write(number(c), zap.String("why", string(why)), zap.Error(err))
	}
}

func (z *listener) FollowUpDecision(c event.Call, resp *http.Response, next *http.Request, why event.Reason) {
	msg := "response followed"
	if next == nil {
		msg = "response is the answer"
	}
	if e := z.debug(msg); e != nil {
		e.Write(number(c), status(resp), method(next), target(c, next), zap.String("why", string(why)))
	}
}

func status(resp *http.Response) zap.Field {
	if resp == nil {
		return zap.Skip()
	}
	return zap.Int("status", resp.StatusCode)
}

func (z *listener) ReuseDecision(c event.Call, conn event.Connection, reused bool, why event.Reason) {
	msg := "connection passed over"
	if reused {
		msg = "connection reused"
		if why != event.ReasonHeld { // a held one was new or reused when it was acquired
			z.note(c, func(s *callState, _ time.Time) time.Duration {
				s.reusedDecision = conn.ID()
				return 0
			})
		}
	}
	if e := z.debug(msg); e != nil {
		e.Write(number(c), zap.Uint64("connection", conn.ID()), zap.String("why", string(why)))
	}
}

func (z *listener) RouteDecision(c event.Call, addr string, p proxy.Proxy, taken bool, why event.Reason) {
	msg := "route passed over"
	if taken {
		msg = "route taken"
	}
	if e := z.debug(msg); e != nil {
		e.Write(number(c), zap.String("addr", addr), via(p), zap.String("why", string(why)))
	}
}
