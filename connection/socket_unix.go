//go:build unix

package connection

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// rawSocket looks at a socket of the system without waiting. What it needs is
// made once, because a connection is looked at before every reuse.
//
// It goes by Control, not Read, of the RawConn: the latter fails without looking
// when the read deadline of the last exchange has passed.
type rawSocket struct {
	conn syscall.RawConn
	look func(fd uintptr)
	read func(fd uintptr)

	// What look and read work on and what they found.
	nothing bool
	p       []byte
	n       int
	err     error
}

// newRawSocket is nil where conn is no socket of the system.
func newRawSocket(conn any) *rawSocket {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	r := &rawSocket{conn: raw}
	r.look = func(fd uintptr) { r.nothing = nothingArrived(fd) }
	r.read = func(fd uintptr) { r.n, r.err = unix.Read(int(fd), r.p) }
	return r
}

// quiet reports whether the socket is open and nothing has arrived, neither
// bytes nor an end nor an error.
func (r *rawSocket) quiet() bool {
	return r.conn.Control(r.look) == nil && r.nothing
}

// readNow reads what has arrived; the package net has made the socket one that
// does not wait. Where nothing has arrived, it fails with
// os.ErrDeadlineExceeded, which crypto/tls takes as passing.
func (r *rawSocket) readNow(p []byte) (int, error) {
	r.p = p
	err := r.conn.Control(r.read)
	r.p = nil
	switch {
	case err != nil:
		return 0, err
	case r.err == unix.EAGAIN, r.err == unix.EINTR:
		return 0, os.ErrDeadlineExceeded
	case r.err != nil:
		return 0, r.err
	case r.n == 0:
		return 0, io.EOF
	}
	return r.n, nil
}
