package connection

import (
	"io"
	"net/http"
	"time"

	"github.com/catena-http/catena/connection/http1"
	"github.com/catena-http/catena/connection/http2"
	"github.com/catena-http/catena/internal/wire"
)

// Codec is one exchange on a connection: a request out, a response in. It has
// two implementations, http1.Conn and http2.Stream. It is an engine part
// without a promise to users.
//
// The goroutine that runs the call uses it. While a body is written, another
// goroutine may be in ReadResponseHeaders.
type Codec interface {
	// WriteRequestHeaders writes the head of req, which announces bodySize bytes
	// of body: 0 none, -1 an unknown number. It may stay in a buffer until Flush.
	WriteRequestHeaders(req *http.Request, bodySize int64) error
	// Write writes body bytes in the protocol's framing.
	io.Writer
	// ReadFrom writes r's bytes as body, until its end. What r fails with comes
	// back as a *RequestBodyError, a failure of the connection as it is.
	io.ReaderFrom
	Flush() error
	// FinishRequest ends the request, body or none, with trailer, and flushes.
	FinishRequest(trailer http.Header) error
	// AbortRequest ends the request before its body's end, so that the peer can
	// tell.
	AbortRequest()
	// InterruptWrite makes a blocked Write and later ones fail; from any goroutine.
	InterruptWrite()
	// AwaitResponse waits at most d for the first byte of a response.
	AwaitResponse(d time.Duration) (bool, error)
	// ReadResponseHeaders reads the next head, interim or final. started is
	// called when its first byte is there. The final one has the body.
	ReadResponseHeaders(started func()) (*http.Response, error)
	// Written reports whether the peer may have seen anything of the request:
	// bytes were accepted by the socket or, for TLS, offered to it.
	Written() bool
	// Reusable reports whether the connection may carry another exchange after
	// this one, which is over.
	Reusable() bool
	// End gives the exchange's buffers back; the Codec is not used afterwards.
	End()
	// Upgrade is the raw connection after a 101.
	Upgrade() io.ReadWriteCloser
}

var (
	_ Codec = (*http1.Conn)(nil)
	_ Codec = (*http2.Stream)(nil)
)

// The errors of a codec, which errors.As finds in what a call returns.
type (
	// ProtocolError says that the peer broke HTTP.
	ProtocolError = wire.ProtocolError
	// RequestBodyError says that the request's own body failed: its Read did, or
	// its length was not the declared one.
	RequestBodyError = wire.RequestBodyError
	// UnprocessedError says that the server, by its own word, did not process
	// the request.
	UnprocessedError = wire.UnprocessedError
	// StreamResetError says that the server reset the HTTP/2 stream.
	StreamResetError = wire.StreamResetError
)
