package wire_test

import (
	"errors"
	"io"
	"testing"

	"github.com/catena-http/catena/internal/wire"
)

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		err  error
		says string
		is   error // found by errors.Is; nil: nothing more
	}{
		{&wire.ProtocolError{Reason: "no final response"}, "protocol error: no final response", nil},
		{&wire.ProtocolError{Reason: "short head", Err: io.ErrUnexpectedEOF}, "protocol error: short head: unexpected EOF", io.ErrUnexpectedEOF},
		{wire.Protocolf("malformed status line %q", "ICY 200 OK"), `protocol error: malformed status line "ICY 200 OK"`, nil},
		{&wire.RequestBodyError{Err: io.ErrClosedPipe}, "request body: io: read/write on closed pipe", io.ErrClosedPipe},
		{&wire.UnprocessedError{Err: io.EOF, Shutdown: true}, "EOF", io.EOF},
		{&wire.StreamResetError{Code: 2, Name: "INTERNAL_ERROR"}, "stream was reset: INTERNAL_ERROR", nil},
	} {
		if got := tc.err.Error(); got != tc.says {
			t.Errorf("got %q, want %q", got, tc.says)
		}
		if tc.is != nil && !errors.Is(tc.err, tc.is) {
			t.Errorf("%v does not wrap %v", tc.err, tc.is)
		}
	}
}
