package http2

import (
	"encoding/binary"
	"time"

	"github.com/catena-http/catena/internal/wire"
	xhttp2 "golang.org/x/net/http2"
)

// enableConnect is SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441 3).
const enableConnect = xhttp2.SettingID(0x8)

// opening is what a client writes first (RFC 9113 3.4).
func (c *Conn) opening() []byte {
	b := appendSettings([]byte(xhttp2.ClientPreface),
		xhttp2.Setting{ID: xhttp2.SettingEnablePush, Val: 0},
		xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: uint32(c.opts.StreamWindow)},
		xhttp2.Setting{ID: xhttp2.SettingMaxHeaderListSize, Val: c.opts.headerListSize()},
	)
	return appendWord(b, xhttp2.FrameWindowUpdate, 0, uint32(c.opts.half())-defaultWindow)
}

// settings takes the server's SETTINGS (RFC 9113 6.5).
func (c *Conn) settings(h frameHeader, p []byte) error {
	switch {
	case h.stream != 0:
		return c.violation(xhttp2.ErrCodeProtocol, "SETTINGS on stream %d", h.stream)
	case h.flags.Has(xhttp2.FlagSettingsAck):
		if len(p) > 0 {
			return c.violation(xhttp2.ErrCodeFrameSize, "an acknowledgement of SETTINGS with %d bytes", len(p))
		}
		c.acknowledged()
		return nil
	case len(p)%6 != 0:
		return c.violation(xhttp2.ErrCodeFrameSize, "SETTINGS of %d bytes", len(p))
	}
	table := int64(-1)
	for ; len(p) > 0; p = p[6:] {
		id, v := xhttp2.SettingID(binary.BigEndian.Uint16(p)), binary.BigEndian.Uint32(p[2:])
		if id == xhttp2.SettingHeaderTableSize {
			table = int64(v)
		} else if err := c.setting(id, v); err != nil {
			return err
		}
	}
	c.greet()
	c.out.acknowledge(table)
	return nil
}

// setting applies one parameter (RFC 9113 6.5.2). Unknown ones mean nothing.
func (c *Conn) setting(id xhttp2.SettingID, v uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch id {
	case xhttp2.SettingEnablePush:
		if v != 0 {
			return c.violation(xhttp2.ErrCodeProtocol, "a server with SETTINGS_ENABLE_PUSH %d", v)
		}
	case xhttp2.SettingMaxConcurrentStreams:
		c.limit = int(min(v, 1<<30))
		c.limited = true
	case xhttp2.SettingInitialWindowSize:
		if v > maxWindow || !c.resizeLocked(int64(v)) {
			return c.violation(xhttp2.ErrCodeFlowControl, "SETTINGS_INITIAL_WINDOW_SIZE %d", v)
		}
	case xhttp2.SettingMaxFrameSize:
		if v < maxFrameLen || v > 1<<24-1 {
			return c.violation(xhttp2.ErrCodeProtocol, "SETTINGS_MAX_FRAME_SIZE %d", v)
		}
		c.maxFrame.Store(int32(v))
	case enableConnect:
		if v > 1 || v == 0 && c.connect {
			return c.violation(xhttp2.ErrCodeProtocol, "SETTINGS_ENABLE_CONNECT_PROTOCOL %d", v)
		}
		c.connect = v == 1
	}
	return nil
}

// greet notes that the server's SETTINGS are there.
func (c *Conn) greet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.greeted {
		return
	}
	c.greeted = true
	if !c.limited {
		c.limit = endlessStreams
	}
	c.endSettingsLocked()
}

// endSettingsLocked ends the wait for SETTINGS.
func (c *Conn) endSettingsLocked() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	c.settleLocked()
}

// settleLocked lets go who waits for SETTINGS.
func (c *Conn) settleLocked() {
	select {
	case <-c.settled:
	default:
		close(c.settled)
	}
}

func (c *Conn) settingsLate(after time.Duration) {
	c.mu.Lock()
	late := !c.greeted && c.failure == nil
	c.mu.Unlock()
	if late {
		err := &violationError{*wire.Protocolf("the server sent no SETTINGS within %v (SETTINGS_TIMEOUT)", after), xhttp2.ErrCodeSettingsTimeout}
		c.breakDown(err)
	}
}

// acknowledge adds the answer to SETTINGS. A new table size applies to the
// header blocks after it; less than 0 is none.
func (w *writer) acknowledge(table int64) {
	var b [frameHeaderLen]byte
	w.mu.Lock()
	if table >= 0 {
		w.henc.SetMaxDynamicTableSize(uint32(table))
	}
	w.sendControlLocked(appendFrameHeader(b[:0], 0, xhttp2.FrameSettings, xhttp2.FlagSettingsAck, 0))
}
