package http2_test

import (
	"io"
	"net"
	"testing"

	xhttp2 "golang.org/x/net/http2"
)

// stuckPeer reads the connection's opening and then nothing more.
type stuckPeer struct {
	nc   net.Conn
	read chan struct{} // closed when the opening was read
}

// newStuckPair returns a client's connection and its peer.
func newStuckPair(t *testing.T) (net.Conn, *stuckPeer) {
	ours, theirs := net.Pipe()
	p := &stuckPeer{nc: theirs, read: make(chan struct{})}
	t.Cleanup(func() { theirs.Close() })
	go func() { // ends with the opening
		defer close(p.read)
		io.CopyN(io.Discard, theirs, int64(len(xhttp2.ClientPreface)))
		fr := xhttp2.NewFramer(theirs, theirs)
		fr.ReadFrame() // SETTINGS
		fr.ReadFrame() // WINDOW_UPDATE
		fr.WriteSettings()
		fr.ReadFrame() // SETTINGS ACK
	}()
	return ours, p
}

func (p *stuckPeer) stop() { <-p.read }
