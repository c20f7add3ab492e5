package oracle

import (
	"errors"
	"fmt"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// explain puts the engine's error of an exchange that has no final head into
// the terms of package wire.
func (s *Stream) explain(err error) error {
	if cause := s.ended(); cause != nil {
		return cause
	}
	if s.id == 0 {
		return s.unopened(err)
	}
	if bye, ok := s.c.spared(s.id); ok {
		return &wire.UnprocessedError{
			Err:      fmt.Errorf("the server did not process the request: it sent %v", bye),
			Shutdown: true,
		}
	}
	if se, ok := asStreamError(err); ok && fromPeer(se) && se.Code == xhttp2.ErrCodeRefusedStream {
		return &wire.UnprocessedError{Err: resetError(se.Code)}
	}
	return s.explainStream(err)
}

// unopened is the error of a request of which nothing was written.
func (s *Stream) unopened(err error) error {
	if !s.c.engine.usable() {
		// The engine may know first, as after a reset with PROTOCOL_ERROR.
		s.c.retire(errors.New("the connection takes no more streams"))
	}
	if why := s.c.reason(); why != nil {
		return &wire.UnprocessedError{Err: fmt.Errorf("no new stream: %w", why), Shutdown: true}
	}
	return fmt.Errorf("the request can not be sent: %w", err)
}

// explainBody is explain for an error after the final head. full says that all
// of the content-length had come.
func (s *Stream) explainBody(err error, full bool) error {
	if cause := s.ended(); cause != nil {
		return cause
	}
	_, stream := asStreamError(err)
	_, connection := asConnectionError(err)
	if full && !stream && !connection && s.c.broken() == nil {
		// The engine has no type for this one.
		err := wire.Protocolf("the response is longer than its content-length")
		s.fail(err)
		return err
	}
	return s.explainStream(err)
}

// explainStream tells resets, violations and the loss of the connection apart.
func (s *Stream) explainStream(err error) error {
	if pe := (*wire.ProtocolError)(nil); errors.As(err, &pe) {
		return pe
	}
	if se, ok := asStreamError(err); ok {
		if fromPeer(se) {
			if !s.c.engine.usable() {
				s.c.retire(fmt.Errorf("the server reset a stream: %v", se.Code))
			}
			return resetError(se.Code)
		}
		return &wire.ProtocolError{Reason: fmt.Sprintf("the server broke HTTP/2: %v", se.Code), Err: se.Cause}
	}
	if ce, ok := asConnectionError(err); ok {
		return s.c.violation(xhttp2.ErrCode(ce))
	}
	if why := s.c.broken(); why != nil {
		return why
	}
	return s.c.describe(err)
}

// resetError is the server's RST_STREAM with code.
func resetError(code xhttp2.ErrCode) *wire.StreamResetError {
	return &wire.StreamResetError{Code: uint32(code), Name: code.String()}
}
