//go:build unix

package connection

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const canReadNow = true

// readNow reads what has arrived. Where nothing has, it fails with
// os.ErrDeadlineExceeded, which crypto/tls takes as passing.
//
// Control, not Read, of the RawConn: the latter fails without looking when the
// read deadline of the last exchange has passed.
func readNow(raw syscall.RawConn, p []byte) (n int, err error) {
	cerr := raw.Control(func(fd uintptr) { n, _, err = unix.Recvfrom(int(fd), p, unix.MSG_DONTWAIT) })
	switch {
	case cerr != nil:
		return 0, cerr
	case err == unix.EAGAIN, err == unix.EWOULDBLOCK, err == unix.EINTR:
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// peekNow reports whether the socket is open and nothing has arrived.
func peekNow(raw syscall.RawConn) bool {
	var err error
	cerr := raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err = unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return cerr == nil && (err == unix.EAGAIN || err == unix.EWOULDBLOCK)
}
