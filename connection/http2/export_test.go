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
