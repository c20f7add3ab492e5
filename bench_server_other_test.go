//go:build !linux

package catena_test

import (
	"io"
	"net"
	"strings"
	"time"
)

// serveConnections serves each connection by a goroutine.
func serveConnections(l *net.TCPListener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() { // ends with its connection
			defer conn.Close()
			buf := make([]byte, 4096)
			for {
				n, err := conn.Read(buf)
				if err != nil {
					return
				}
				for range strings.Count(string(buf[:n]), "\r\n\r\n") {
					if _, err := io.WriteString(conn, benchResponse); err != nil {
						return
					}
				}
			}
		}()
	}
}

// processCPU is not known here.
func processCPU() time.Duration { return 0 }
