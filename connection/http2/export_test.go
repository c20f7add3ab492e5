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
