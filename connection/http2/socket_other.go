//go:build !unix

package http2

import "net"

// socket does not exist here: reads go by the net.Conn, and so do waits.
type socket struct{}

func newSocket(net.Conn, func() []byte, func()) *socket { return nil }

func (*socket) read() (int, error) { panic("unreachable: there is no socket") }
