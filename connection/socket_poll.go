//go:build unix && !linux

package connection

import "golang.org/x/sys/unix"

// nothingArrived reports whether a socket is open and has nothing to read: no
// byte, no end, no error.
func nothingArrived(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds[:], 0)
		if err != unix.EINTR {
			return err == nil && n == 0
		}
	}
}
