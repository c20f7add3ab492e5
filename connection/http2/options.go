package http2

import (
	"math"
	"time"
)

// The bounds of a connection whose Options leave them open.
const (
	defaultMaxHeaderBytes  = 256 << 10
	defaultMaxHeaderFields = 1000
	defaultSettingsTimeout = 10 * time.Second
	defaultWriteTimeout    = 10 * time.Second
	defaultStreamWindow    = 16 << 20
	defaultConnWindow      = 64 << 20
)

// Options are the terms of a connection, for its whole life.
type Options struct {
	// Secure is true over TLS ("h2") and false in cleartext ("h2c"). It decides
	// the :scheme of every request.
	Secure bool

	// PingInterval is how long the connection may go without a frame from the
	// server before a PING asks for one. A PING that stays unanswered for as
	// long again ends the connection. 0 or less sends none.
	PingInterval time.Duration

	// MaxHeaderBytes and MaxHeaderFields bound what any head or trailer section
	// on the connection may cost; an exchange can ask for less, not for more.
	// 0 means 256 KiB and 1,000 fields.
	MaxHeaderBytes  int
	MaxHeaderFields int

	// SettingsTimeout bounds the wait for the server's SETTINGS, the first
	// frame it has to send (RFC 9113 3.4). 0 means 10 s, less than 0 none.
	SettingsTimeout time.Duration

	// WriteTimeout is how long the socket may take no byte of what is being
	// written before the connection is given up: a peer has to read frames at
	// all times, whatever its windows say. 0 means 10 s, less than 0 none.
	WriteTimeout time.Duration

	// ConnWindow is how many bytes of bodies the server may have sent that
	// nobody has read yet, of all streams together; it bounds the memory that
	// bodies take. 0 means 64 MiB, and less than 1 MiB means 1 MiB.
	ConnWindow int

	// StreamWindow is the same for one stream whose body is being read. A
	// stream starts with less (512 KiB at most) and gets more as its reader
	// takes what came, up to StreamWindow and as long as half of ConnWindow is
	// left for streams that nobody reads: they must not hold back the others. 0
	// means 16 MiB.
	StreamWindow int
}

// withDefaults puts numbers where o has zeros, and zero where it says none.
func (o Options) withDefaults() Options {
	if o.MaxHeaderBytes <= 0 {
		o.MaxHeaderBytes = defaultMaxHeaderBytes
	}
	if o.MaxHeaderFields <= 0 {
		o.MaxHeaderFields = defaultMaxHeaderFields
	}
	if o.SettingsTimeout == 0 {
		o.SettingsTimeout = defaultSettingsTimeout
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = defaultWriteTimeout
	}
	if o.ConnWindow == 0 {
		o.ConnWindow = defaultConnWindow
	}
	if o.StreamWindow <= 0 {
		o.StreamWindow = defaultStreamWindow
	}
	o.ConnWindow = min(max(o.ConnWindow, 1<<20), maxWindow)
	o.StreamWindow = min(o.StreamWindow, o.ConnWindow)
	o.SettingsTimeout = max(o.SettingsTimeout, 0)
	o.WriteTimeout = max(o.WriteTimeout, 0)
	o.PingInterval = max(o.PingInterval, 0)
	return o
}

// headerListSize is the SETTINGS_MAX_HEADER_LIST_SIZE that lets through every
// head within the two bounds: it counts 32 bytes a field on top of the field's
// own (RFC 9113 6.5.2).
func (o Options) headerListSize() uint32 {
	n := int64(o.MaxHeaderBytes) + 32*int64(o.MaxHeaderFields)
	return uint32(min(n, math.MaxUint32-1))
}

// firstWindow is the size of a stream's window at first.
func (o Options) firstWindow() int { return min(firstWindow, o.StreamWindow) }
