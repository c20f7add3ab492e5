//go:build unix

package http2

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A socket is a socket of the system that tells before it has to wait: what was
// put off can be done then, and a connection that waits needs no buffer.
type socket struct {
	conn net.Conn
	raw  syscall.RawConn
	try  func(fd uintptr) (done bool)

	// What try works on and what it found.
	room func() []byte
	wait func()
	n    int
	err  error
}

// newSocket is nil where nc is no socket of the system. Both functions are called
// by read: room for memory to read into, wait when nothing is there.
func newSocket(nc net.Conn, room func() []byte, wait func()) *socket {
	conn, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	s := &socket{conn: nc, raw: raw, room: room, wait: wait}
	s.try = s.tryRead
	return s
}

// read is Read of a net.Conn.
func (s *socket) read() (int, error) {
	err := s.raw.Read(s.try)
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err // RawConn calls itself something else
	} else if err == nil {
		err = s.err
	}
	switch {
	case err == nil && s.n == 0:
		return 0, io.EOF
	case err != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: s.conn.LocalAddr(), Addr: s.conn.RemoteAddr(), Err: err}
	}
	return s.n, nil
}

func (s *socket) tryRead(fd uintptr) (done bool) {
	p := s.room()
	for {
		n, err := unix.Read(int(fd), p)
		switch err {
		case nil:
			s.n, s.err = n, nil
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			s.n = 0
			s.wait()
			return false
		default:
			s.n, s.err = 0, &os.SyscallError{Syscall: "read", Err: err}
			return true
		}
	}
}
