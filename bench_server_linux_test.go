package catena_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// serveConnections serves connections from one thread that waits for all of them together:
// a goroutine for each would make the server the slower side.
func serveConnections(l *net.TCPListener) {
	runtime.LockOSThread()
	poll, err := unix.EpollCreate1(0)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go func() {
		for {
			conn, err := l.AcceptTCP()
			if err != nil {
				return
			}
			file, err := conn.File() // a descriptor of its own, which blocks
			conn.Close()
			if err != nil {
				continue
			}
			fd := int(file.Fd())
			benchConns = append(benchConns, file) // lest the garbage collector close it
			unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
		}
	}()
	events := make([]unix.EpollEvent, 256)
	buf := make([]byte, 64<<10)
	response := []byte(benchResponse)
	for {
		n, err := unix.EpollWait(poll, events, -1)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, e := range events[:max(n, 0)] {
			fd := int(e.Fd)
			n, err := unix.Read(fd, buf)
			if err != nil || n == 0 {
				unix.EpollCtl(poll, unix.EPOLL_CTL_DEL, fd, nil)
				unix.Close(fd)
				continue
			}
			for range bytes.Count(buf[:n], []byte("\r\n\r\n")) {
				unix.Write(fd, response)
			}
		}
	}
}

// benchConns are the connections; of the accepting goroutine.
var benchConns []*os.File

// processCPU is the time this process has spent, the server's not included.
func processCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
