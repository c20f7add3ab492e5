// Package http2 is an engine part without a promise to users: the client side of
// one HTTP/2 connection (RFC 9113), as package connection drives it.
//
// A [Conn] counts streams, tells when it takes no more of them, and makes
// [Stream] values. A Stream is one exchange: request out, response in, both
// directions at once where the caller wants it.
//
// The order of things, for one exchange:
//
//  1. [Conn.Reserve], then [Conn.NewStream], which uses the reservation up.
//  2. [Stream.WriteRequestHeaders] opens the stream. The head of a request that
//     has a body may wait for it, until [Stream.Flush]. From when it is written
//     on, which [Stream.Written] tells, the server may have seen the request.
//  3. [Stream.Write] or [Stream.ReadFrom], then [Stream.FinishRequest] or
//     [Stream.AbortRequest]. This may run on another goroutine, beside 4 and 5.
//  4. [Stream.ReadResponseHeaders] until a head of 200 or above.
//  5. The response's body, to its end or closed.
//  6. [Stream.End], which gives the slot back. It is due for every Stream, also
//     for one that failed at 2.
//
// What a failure says, whatever the step:
//
//   - [*wire.UnprocessedError]: the server says that it did nothing with the
//     request (REFUSED_STREAM, a GOAWAY below the stream), or the stream could
//     not be opened. Any request may be sent again (RFC 9113 8.7).
//   - [*wire.StreamResetError]: the server reset the stream.
//   - [*wire.ProtocolError]: the server broke HTTP. Where only the exchange is
//     hurt, the stream is reset and the connection lives on.
//   - [*wire.RequestBodyError]: the request's own body is to blame.
//   - [os.ErrDeadlineExceeded]: a wait took longer than the exchange allows.
//     The stream is reset with CANCEL, the connection lives on.
//   - anything else: the connection failed, in one sentence.
//
// A connection has one goroutine that reads, and a stream has none. The reading
// goroutine parses frames where it has read them, hands bodies over in place and
// wakes the caller that waits; it never waits for anything but the socket. A
// caller encodes and writes its own head, together with what others have to
// write at that moment. Bodies of requests, and what nobody waits for, are written
// by goroutines that end with the write. All of them end with the connection. One
// that is idle has no buffers, and reads with a fresh goroutine, see lull.
//
// Memory that a server can cause to be held is bounded: bodies that nobody reads
// by Options.ConnWindow, which lies in chunks of twice that at most, plus 1 MiB;
// heads by the limits of exchange and connection; answers that wait to be written
// by their number. A server that goes on and on about nothing is given up, see
// budget.
//
// An "Upgrade: websocket" request becomes an extended CONNECT (RFC 8441) where the
// server has allowed it, and fails otherwise; see [Stream.Upgrade].
package http2
