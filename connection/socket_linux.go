package connection

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// nothingArrived reports whether a socket is open and has nothing to read: no
// byte, no end, no error. A raw call, because it never waits: telling the
// scheduler of it would cost as much as the call.
func nothingArrived(fd uintptr) bool {
	var one byte
	_, _, err := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&one)), 1,
		unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	return err == unix.EAGAIN
}
