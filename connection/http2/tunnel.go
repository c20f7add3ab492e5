package http2

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// errNoWebSocket is the error of a WebSocket request to a server that has not
// said that it takes them over HTTP/2 (RFC 8441 3).
var errNoWebSocket = errors.New("the server does not take WebSocket over HTTP/2 (no SETTINGS_ENABLE_CONNECT_PROTOCOL)")

// asksForWebSocket reports whether req is the opening of a WebSocket as HTTP/1.1
// has it (RFC 6455 4.1).
func asksForWebSocket(req *http.Request, bodySize int64) bool {
	return bodySize == 0 && len(req.Header["Upgrade"]) > 0 &&
		(req.Method == http.MethodGet || req.Method == "") &&
		strings.EqualFold(req.Header.Get("Upgrade"), "websocket") &&
		httpguts.HeaderValuesContainsToken(req.Header["Connection"], "upgrade")
}

// extend waits for SETTINGS and, if they allow it, makes m an extended CONNECT
// (RFC 8441 4) and s the tunnel that it asks for.
func (s *Stream) extend(m *message) error {
	var dl deadline
	for {
		s.c.mu.Lock()
		greeted, allowed, why := s.c.greeted, s.c.connect, s.c.why
		s.c.mu.Unlock()
		switch {
		case why != nil:
			return unopened(why)
		case greeted && !allowed:
			return errNoWebSocket
		case greeted:
			m.method, m.protocol = http.MethodConnect, "websocket"
			s.method, s.tunneled = m.method, true
			return nil
		}
		if err := s.c.awaitSettings(s, &dl); err != nil {
			return err
		}
	}
}

// Upgrade is the tunnel that an extended CONNECT has opened: what an upgraded
// connection is to HTTP/1.1. It has no timeouts. It is nil for other exchanges,
// and before a final head of 2xx.
func (s *Stream) Upgrade() io.ReadWriteCloser {
	if t, ok := s.resp.Body.(*tunnel); ok {
		return t
	}
	return nil
}

// tunnel is the body of a response to an extended CONNECT. One goroutine may
// read and another one write.
type tunnel struct{ *body }

var _ io.ReadWriteCloser = (*tunnel)(nil)

func (t *tunnel) Write(p []byte) (int, error) { return (*Stream)(t.body).Write(p) }

// CloseWrite ends our direction.
func (t *tunnel) CloseWrite() error {
	s := (*Stream)(t.body)
	s.tunneled = false
	return s.FinishRequest(nil)
}
