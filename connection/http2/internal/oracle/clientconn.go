//lint:file-ignore SA1019 x/net's ClientConn is the engine for now; this file is the only one that knows it.

package oracle

import (
	"context"
	"errors"
	"net"
	"net/http"
	"reflect"

	xhttp2 "golang.org/x/net/http2"
)

// clientConn is the engine under a Conn: x/net's connection, with every policy
// of its own switched off. It only multiplexes. Counting streams, retiring and
// explaining errors is ours, because its answers come late or nameless.
type clientConn struct{ cc *xhttp2.ClientConn }

// newClientConn starts the engine on nc: it writes preface and SETTINGS and
// starts the reading goroutine. note is told of errors by token
// ("conn_close_lost_ping"), from any goroutine.
func newClientConn(nc net.Conn, opts Options, note func(token string)) (*clientConn, error) {
	t := &xhttp2.Transport{
		DisableCompression: true,
		MaxHeaderListSize:  opts.headerListSize(),
		ReadIdleTimeout:    opts.PingInterval,
		PingTimeout:        opts.PingInterval,
		WriteByteTimeout:   opts.WriteTimeout,
		CountError:         note,
		// The engine must not refuse a stream that Conn has a slot for: it may
		// learn a moment later than Conn that an earlier stream is over.
		StrictMaxConcurrentStreams: true,
	}
	cc, err := t.NewClientConn(nc)
	if err != nil {
		return nil, err
	}
	return &clientConn{cc: cc}, nil
}

// RoundTrip runs req's stream and returns at its final head.
func (e *clientConn) RoundTrip(req *http.Request) (*http.Response, error) { return e.cc.RoundTrip(req) }

// usable reports whether the engine would open a stream. It does not wait.
func (e *clientConn) usable() bool { return e.cc.CanTakeNewRequest() }

// ping sends a PING and waits for its answer, ctx or the connection's end.
func (e *clientConn) ping(ctx context.Context) error { return e.cc.Ping(ctx) }

// Tokens by which the engine tells that a PING went unanswered, and that it
// lets go of the connection because of a reset that blames us.
const (
	lostPing    = "conn_close_lost_ping"
	resetByPeer = "recv_rststream_PROTOCOL_ERROR"
)

// endedWithHead reports whether the stream of resp ended with the head's own
// END_STREAM. The engine's body is then a value without state, which is the
// only trace it leaves; a body taken wrongly for a live one just reads as EOF.
func endedWithHead(resp *http.Response) bool {
	return reflect.TypeOf(resp.Body).Size() == 0
}

// fromPeer reports whether se tells of a RST_STREAM that the server sent, and
// not of a violation that the engine found. The cause is not exported.
func fromPeer(se xhttp2.StreamError) bool {
	return se.Cause != nil && se.Cause.Error() == "received from peer"
}

// asStreamError and asConnectionError find the two kinds of error that HTTP/2
// has (RFC 9113 5.4) in what the engine returns.
func asStreamError(err error) (se xhttp2.StreamError, ok bool) {
	ok = errors.As(err, &se)
	return se, ok
}

func asConnectionError(err error) (ce xhttp2.ConnectionError, ok bool) {
	ok = errors.As(err, &ce)
	return ce, ok
}
