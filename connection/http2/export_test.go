package http2

// SkipStreams makes id the next stream's.
func (c *Conn) SkipStreams(id uint32) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.nextID = id
}

// LastStreamID is where a connection's stream ids end.
const LastStreamID = lastStreamID

// LullTime is how long a connection is idle before it makes itself small.
const LullTime = lullTime

// OnWire is how many streams are open on the wire.
func (c *Conn) OnWire() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams)
}

// Unread is how many bytes of bodies wait to be read.
func (c *Conn) Unread() int64 { return c.buffered.Load() }

// Shrunk reports whether the windows of streams are small.
func (c *Conn) Shrunk() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shrunk
}

// Granted is what the server may send at this moment, over all streams.
func (c *Conn) Granted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.receive.avail
}
