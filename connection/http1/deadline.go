package http1

import (
	"fmt"
	"os"
	"time"
)

// deadline remembers what is set on the connection, so that setting it again is
// left out where it would change little. The zero value knows nothing: somebody
// else may have set one.
type deadline struct {
	at    time.Time // zero: none is set
	known bool
}

func (d deadline) isSet() bool { return d.known && !d.at.IsZero() }

// slack is how much later than promised a deadline may be, to be moved less
// often. It is half of what is allowed (a tenth, at most a second): the rest is
// for the scheduler.
func slack(timeout time.Duration) time.Duration {
	return min(timeout/20, time.Second/2)
}

// inPast is a deadline that has passed whatever the clock says.
var inPast = time.Unix(1, 0)

// errInterrupted is what writing fails with after InterruptWrite.
var errInterrupted = fmt.Errorf("writing the request was interrupted: %w", os.ErrDeadlineExceeded)

// setReadDeadline needs mu. A connection that cannot have deadlines is used
// without; one that is closed says so at the next read.
func (c *Conn) setReadDeadline(t time.Time) {
	c.readLimit = deadline{at: t, known: true}
	c.nc.SetReadDeadline(t)
}

// moveReadDeadline gives the peer the read timeout from now on, or for ever while
// the request is unfinished and no head has begun. It needs mu.
func (c *Conn) moveReadDeadline() {
	timeout := c.x.ReadTimeout
	if timeout <= 0 || c.request < requestFinished && !c.headBegun {
		if !c.readLimit.known || !c.readLimit.at.IsZero() {
			c.setReadDeadline(time.Time{})
		}
		return
	}
	earliest := time.Now().Add(timeout)
	latest := earliest.Add(slack(timeout))
	if at := c.readLimit.at; !c.readLimit.isSet() || at.Before(earliest) || at.After(latest) {
		c.setReadDeadline(latest)
	}
}

// armRead gives the next read its time, unless one deadline bounds several.
func (c *Conn) armRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.readFixed {
		c.moveReadDeadline()
	}
}

// armHead bounds all reads of a head together: from now on, or from the earlier of
// its first byte and the request's end on where there is neither yet.
func (c *Conn) armHead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited, c.readFixed = true, true
	c.headBegun = c.in.buffered() > 0
	c.moveReadDeadline()
}

// beginHead says that the first byte of a head came after armHead.
func (c *Conn) beginHead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headBegun = true
	if c.request < requestFinished {
		c.moveReadDeadline()
	}
}

// armWithin bounds all reads together by d from now, exactly.
func (c *Conn) armWithin(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited, c.readFixed = true, true
	c.setReadDeadline(time.Now().Add(d))
}

// armEach goes back to one timeout for each read.
func (c *Conn) armEach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readFixed, c.headBegun = false, false
}

// endRequest moves the request to its last state. Who waits for the response by now
// has the read timeout from here on, and who comes later sets a deadline of its own;
// a head that has begun keeps the time it has.
func (c *Conn) endRequest(state requestState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.request >= requestFinished {
		return
	}
	c.request = state
	if c.awaited && !c.headBegun {
		c.moveReadDeadline()
	}
}

// armWrite lets the next write wait for d, and for at most spare longer; 0 is no
// bound. It fails after InterruptWrite.
func (c *Conn) armWrite(d, spare time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.interrupted {
		return errInterrupted
	}
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d + spare)
		if c.writeLimit.isSet() && at.Sub(c.writeLimit.at) <= spare {
			return nil
		}
	} else if c.writeLimit.known && c.writeLimit.at.IsZero() {
		return nil
	}
	c.writeLimit = deadline{at: at, known: true}
	c.nc.SetWriteDeadline(at)
	return nil
}

// disarmWrite takes the deadline of the last write back. TLS writes by itself while it
// is read, to answer a change of keys for one: a deadline that has passed meanwhile
// would break the connection for good.
func (c *Conn) disarmWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.interrupted {
		c.writeLimit = deadline{known: true}
		c.nc.SetWriteDeadline(time.Time{})
	}
}

// InterruptWrite makes a write of this exchange's request that blocks, and all
// later ones, fail at once. It may be called from any goroutine between Begin
// and End. The connection can still be read.
func (c *Conn) InterruptWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interrupted = true
	c.writeLimit = deadline{at: inPast, known: true}
	c.nc.SetWriteDeadline(inPast)
}

func (c *Conn) wasInterrupted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.interrupted
}
