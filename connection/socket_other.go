//go:build !unix

package connection

import "syscall"

// Elsewhere a short deadline stands in for a read that cannot wait.
const canReadNow = false

func readNow(syscall.RawConn, []byte) (int, error) { panic("unreachable: canReadNow is false") }

func peekNow(syscall.RawConn) bool { panic("unreachable: canReadNow is false") }
