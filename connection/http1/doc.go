// Package http1 is an engine part without a promise to users: the client side of
// HTTP/1.1 (RFC 9112) over one connection. It writes a request, reads the response
// and says whether another exchange may follow. It decides nothing about retries,
// redirects or pools.
//
// # One exchange
//
//	c.Begin(x)
//	c.WriteRequestHeaders(req, size)  // buffered
//	c.ReadFrom(body)                  // or Write, or nothing
//	c.FinishRequest(nil)              // flushes: one write for a small request
//	resp, err := c.ReadResponseHeaders(nil)
//	... read and close resp.Body
//	c.End()
//
// # Goroutines
//
// The package starts none. A Conn has two sides that may be used at the same
// time by one goroutine each: the request (WriteRequestHeaders, Write, ReadFrom,
// Flush, FinishRequest, AbortRequest) and the response (AwaitResponse,
// ReadResponseHeaders, the body). Begin comes before both and End after both.
// InterruptWrite and Written may be called from any goroutine during the
// exchange. To break off a read, close the connection or set a deadline in the
// past that nobody moves afterwards.
//
// # Timeouts
//
// A read timeout bounds the head of a response as a whole and each Read of its
// body; it does not run while the request is still being written. A write
// timeout bounds each wait for the peer to take something: anything on a socket
// of the system, 16 KiB on TLS and other connections, where a write that was cut
// off cannot go on. Both are never early and at most a tenth or a second late,
// whichever is less. Deadline errors are returned as the connection gives them:
// errors.Is(err, os.ErrDeadlineExceeded).
//
// # Strictness
//
// What a response may look like is decided once, in favour of being able to
// tell where it ends: see parseStatusLine, splitFields, (*Conn).frame and
// parseChunkLine. Everything that breaks a rule is a *wire.ProtocolError and ends
// the connection.
package http1
