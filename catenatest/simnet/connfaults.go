package simnet

import "time"

// Peer is the other end.
func (c *Conn) Peer() *Conn { return c.peer }

// Sent counts the bytes that Write took, whether they arrive or not.
func (c *Conn) Sent() int64 {
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.out.sent
}

// Stall holds back what this end sends, and what it has sent that has not arrived yet. Writes fill the window and then
// block. The end of stream and resets are held back too. The other direction goes on.
func (c *Conn) Stall() { c.disturb(func(now time.Time) { c.out.hold(now) }) }

// Resume ends a Stall: what was held back arrives at once, or when it would have.
func (c *Conn) Resume() { c.disturb(func(now time.Time) { c.out.release(now) }) }

// Vanish loses the connection: nothing arrives at either end any more, neither bytes on their way nor an end of stream
// nor a reset. Bytes that arrived before can be read. Nothing brings it back.
func (c *Conn) Vanish() {
	c.disturb(func(now time.Time) {
		c.out.lose(now)
		c.in.lose(now)
	})
}

// SetLink sets the link for what this end sends from now on; its Cut counts from now on too.
func (c *Conn) SetLink(l Link) {
	c.disturb(func(now time.Time) {
		c.out.shape(c.net, l)
		c.out.send(nil, now) // a cut that is due at once
	})
}

// disturb changes the connection, closed or not, and wakes those who wait.
func (c *Conn) disturb(do func(now time.Time)) {
	c.gate.Lock()
	defer c.gate.Unlock()
	do(time.Now())
	c.gate.broadcast()
}
