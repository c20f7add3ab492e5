package zaplog

import "github.com/catena-http/catena/event"

// Remembered is the number of calls that a listener of New keeps state of.
func Remembered(l event.Listener) int {
	z := l.(*listener)
	z.mu.Lock()
	defer z.mu.Unlock()
	return len(z.calls)
}
