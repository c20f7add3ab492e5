package oracle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

const (
	prefaceLen = uint32(len(xhttp2.ClientPreface))
	// farewell bounds the write of the last GOAWAY: it is a courtesy.
	farewell = 50 * time.Millisecond
	// forceClose is how long a TLS close_notify may take before the socket
	// below is closed.
	forceClose = 250 * time.Millisecond
)

// tap sits between the engine and the socket. It sees each frame before the
// engine does, so Conn knows at once, and by name, what the engine tells late
// or not at all; it refuses input that is not HTTP/2 with an error that says
// what it is; and it says goodbye with a GOAWAY when the connection closes.
type tap struct {
	net.Conn
	c *Conn

	// Owned by the reading goroutine.
	in      scanner
	greeted bool   // the first frame's header was seen
	opening []byte // the first bytes, until greeted
	bad     error  // why no more input is taken

	wmu sync.Mutex // held during a write; guards what follows
	out scanner
	// torn is true once a write failed: the output may end inside a frame.
	torn bool
	// newest is the highest stream whose HEADERS went out.
	newest uint32

	shutOnce sync.Once
	shutErr  error
}

func newTap(nc net.Conn, c *Conn) *tap {
	return &tap{Conn: nc, c: c, out: scanner{skip: prefaceLen}}
}

// Read passes bytes on up to the first that can not be HTTP/2. Its errors are
// the connection's own failure, which the engine hands to every stream.
func (t *tap) Read(p []byte) (int, error) {
	if t.bad != nil {
		return 0, t.bad
	}
	n, err := t.Conn.Read(p)
	if n > 0 {
		if good, bad := t.follow(p[:n]); bad != nil {
			t.bad = t.c.breakDown(bad)
			if good == 0 {
				return 0, t.bad
			}
			return good, nil
		}
	}
	if err != nil {
		err = t.c.breakDown(err)
	}
	return n, err
}

func (t *tap) follow(p []byte) (int, error) {
	if !t.greeted {
		t.opening = append(t.opening, p[:min(len(p), 64-len(t.opening))]...)
		if err := foreign(t.opening); err != nil {
			return 0, err
		}
	}
	return t.in.scan(p, t.begun, t.c.frameRead)
}

// begun checks a frame's header before the engine sees it.
func (t *tap) begun(f frame) error {
	if !t.greeted && (f.typ != xhttp2.FrameSettings || f.stream != 0 || f.flags.Has(xhttp2.FlagSettingsAck)) {
		return wire.Protocolf("the server's first frame is not SETTINGS: it begins with %q", t.opening)
	}
	t.greeted, t.opening = true, nil
	if f.length > maxFrameLen {
		return wire.Protocolf("frame of %d bytes, more than the %d allowed (FRAME_SIZE_ERROR)", f.length, maxFrameLen)
	}
	return nil
}

// foreign recognises two protocols that answer on a port where HTTP/2 was
// expected, from the connection's first bytes.
func foreign(p []byte) error {
	switch {
	case bytes.HasPrefix(p, []byte("HTTP/1.")):
		line, _, _ := bytes.Cut(p, []byte("\r\n"))
		return wire.Protocolf("the server speaks HTTP/1.1, not HTTP/2: %q", line)
	case len(p) >= 3 && (p[0] == 0x15 || p[0] == 0x16) && p[1] == 3 && p[2] <= 4:
		return wire.Protocolf("the server speaks TLS, not cleartext HTTP/2")
	}
	return nil
}

// Write writes whole buffers of the engine's, one at a time.
func (t *tap) Write(p []byte) (int, error) {
	t.wmu.Lock()
	defer t.wmu.Unlock()
	n, err := t.Conn.Write(p)
	t.out.scan(p[:n], t.wrote, nil)
	if err == nil {
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && n > 0 {
		return n, err // progress: the engine writes the rest
	}
	// TLS may have sent more than it reports: count all of p as sent.
	t.out.scan(p[n:], t.wrote, nil)
	t.torn = true
	return n, t.c.breakDown(err)
}

func (t *tap) wrote(f frame) error {
	if f.typ == xhttp2.FrameHeaders {
		t.newest = max(t.newest, f.stream)
	}
	return nil
}

// lastOpened returns the newest stream on the wire, and whether no write has
// failed. Between the engine's write of a HEADERS frame and its next write that
// is the frame's stream.
func (t *tap) lastOpened() (id uint32, whole bool) {
	t.wmu.Lock()
	defer t.wmu.Unlock()
	return t.newest, !t.torn
}

// Close is the engine's way to give the connection up.
func (t *tap) Close() error { return t.c.engineClosed() }

// shut closes the socket, once, after a GOAWAY with code if the output stands
// between two frames and nobody is writing.
func (t *tap) shut(code xhttp2.ErrCode) error {
	t.shutOnce.Do(func() {
		if t.wmu.TryLock() {
			if !t.torn && t.out.aligned() {
				t.SetWriteDeadline(time.Now().Add(farewell))
				t.Conn.Write(goAwayFrame(code))
			}
			t.torn = true
			t.wmu.Unlock()
		}
		if inner, ok := t.Conn.(interface{ NetConn() net.Conn }); ok {
			force := time.AfterFunc(forceClose, func() { inner.NetConn().Close() })
			defer force.Stop()
		}
		t.shutErr = t.Conn.Close()
	})
	return t.shutErr
}

// goAwayFrame is a GOAWAY (RFC 9113 6.8) with Last-Stream-ID 0: a server opens
// no streams to us.
func goAwayFrame(code xhttp2.ErrCode) []byte {
	b := make([]byte, frameHeaderLen+8)
	b[2], b[3] = 8, byte(xhttp2.FrameGoAway)
	binary.BigEndian.PutUint32(b[frameHeaderLen+4:], uint32(code))
	return b
}
