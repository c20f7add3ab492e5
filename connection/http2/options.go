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
	// leastConnWindow is twice the window that every connection begins with.
	leastConnWindow = 128 << 10
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

	// StreamWindow is how many bytes of one body the server may send that nobody
	// has read yet. It is granted with the stream and again as the reader takes
	// what came. 0 means 16 MiB, or a quarter of ConnWindow if that is less; it is
	// half of ConnWindow at most.
	StreamWindow int

	// ConnWindow is the same of all streams together, and so bounds the memory
	// that bodies take. Half of it is kept back until much lies unread: then
	// streams get less each (256 KiB at most) unless they are read, so that those
	// that nobody reads do not hold back the others. 0 means 64 MiB, or four times
	// StreamWindow if that is more; it is 128 KiB at least and 2^31-1 at most.
	ConnWindow int
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
		o.ConnWindow = max(defaultConnWindow, 4*min(o.StreamWindow, maxWindow/4))
	}
	if o.StreamWindow <= 0 {
		o.StreamWindow = min(defaultStreamWindow, max(o.ConnWindow, leastConnWindow)/4)
	}
	o.ConnWindow = min(max(o.ConnWindow, leastConnWindow), maxWindow)
	o.StreamWindow = min(o.StreamWindow, o.ConnWindow/2)
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
