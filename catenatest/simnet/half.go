package simnet

import (
	"math/rand/v2"
	"time"
)

// packetSize is how bandwidth cuts writes into packets: that of Ethernet without headers.
const packetSize = 1460

// half is one direction of a connection. Everything sent gets its instant of arrival at once; the receiver waits for
// that instant. So no goroutine carries packets. All fields are guarded by the wire's gate once there is one.
type half struct {
	back *half // the other direction

	link    Link // as given
	latency time.Duration
	jitter  time.Duration
	window  int
	cutLeft int64      // bytes until link.Cut
	draw    *rand.Rand // jitter

	queue  []packet // sent and not yet read, arrival ascending
	queued int      // bytes that fill the window: those in queue, and those bounced
	sent   int64    // bytes taken from the sender in all

	free  time.Time // when the line can take the next packet
	last  time.Time // the latest arrival: nothing overtakes
	finAt time.Time // arrival of the end of stream; zero: not sent
	rstAt time.Time // arrival of a reset; zero: not sent

	held   bool      // nothing that arrives after heldAt is delivered
	heldAt time.Time // valid if held
	lost   bool      // held for ever

	deaf   bool // the receiver shut down reading: bytes are taken and thrown away
	orphan bool // the receiver is gone: bytes that arrive are answered with a reset
}

type packet struct {
	data []byte
	at   time.Time
}

func (n *Network) newHalf(link Link, draw *rand.Rand) *half {
	h := &half{draw: draw}
	h.shape(n, link)
	return h
}

// shape sets the link for what is sent from now on.
func (h *half) shape(n *Network, link Link) {
	h.link = link
	h.latency = n.latency + max(link.Latency, 0)
	h.jitter = n.jitter + max(link.Jitter, 0)
	h.window = n.window
	if link.Window > 0 {
		h.window = link.Window
	}
	h.cutLeft = max(link.Cut.After, 0)
}

// delay draws the time a packet travels.
func (h *half) delay() time.Duration {
	if h.jitter > 0 {
		return h.latency + time.Duration(h.draw.Int64N(int64(h.jitter)))
	}
	return h.latency
}

// arrival is when something that leaves at an instant arrives.
func (h *half) arrival(leaves time.Time) time.Time {
	at := later(leaves.Add(h.delay()), h.last)
	if h.held { // in the same instant as the hold, but after it
		at = later(at, h.heldAt.Add(1))
	}
	h.last = at
	return at
}

// visible reports whether what arrives at an instant is there now. The zero instant never is.
func (h *half) visible(at, now time.Time) bool {
	return !at.IsZero() && !at.After(now) && (!h.held || !at.After(h.heldAt))
}

// pending is at, if it will be visible without anybody's doing, and else zero.
func (h *half) pending(at time.Time) time.Time {
	if at.IsZero() || h.held && at.After(h.heldAt) {
		return time.Time{}
	}
	return at
}

// readable reports whether bytes have arrived.
func (h *half) readable(now time.Time) bool {
	return len(h.queue) > 0 && h.visible(h.queue[0].at, now)
}

// next is the earliest instant at which the receiver can see something more, or zero.
func (h *half) next() time.Time {
	var head time.Time
	if len(h.queue) > 0 {
		head = h.pending(h.queue[0].at)
	}
	return earliest(head, h.pending(h.finAt), h.pending(h.rstAt))
}

// take moves bytes that have arrived to b.
func (h *half) take(b []byte, now time.Time) int {
	n := 0
	for n < len(b) && h.readable(now) {
		p := &h.queue[0]
		k := copy(b[n:], p.data)
		n += k
		if p.data = p.data[k:]; len(p.data) == 0 {
			h.queue[0] = packet{}
			h.queue = h.queue[1:]
		}
	}
	h.queued -= n
	return n
}

// room is how many bytes the window has left.
func (h *half) room() int { return max(h.window-h.queued, 0) }

// ended reports whether the sender's stream has its end already.
func (h *half) ended() bool { return !h.finAt.IsZero() || !h.rstAt.IsZero() }

// send takes bytes from the sender. The caller has checked the room.
func (h *half) send(b []byte, now time.Time) {
	h.sent += int64(len(b))
	if h.ended() { // by a cut or a reset the sender does not know of yet
		if h.orphan && !h.held {
			h.back.reset(h.arrival(now))
		}
		return
	}
	cut := h.link.Cut.How != CutNever && int64(len(b)) >= h.cutLeft
	if cut {
		b = b[:h.cutLeft]
	}
	h.cutLeft -= int64(len(b))
	for len(b) > 0 && !h.deaf {
		k := h.packetLen(len(b))
		data := append([]byte(nil), b[:k]...)
		h.queue = append(h.queue, packet{data, h.arrival(h.leave(k, now))})
		h.queued += k
		b = b[k:]
	}
	if cut {
		h.sever(now)
	}
	h.bounce(now)
}

func (h *half) packetLen(n int) int {
	if h.link.Chunk > 0 {
		return min(n, h.link.Chunk)
	}
	if h.link.BytesPerSecond > 0 {
		return min(n, packetSize)
	}
	return n
}

// leave is when a packet of n bytes is on its way, and occupies the line for it.
func (h *half) leave(n int, now time.Time) time.Time {
	at := later(now, h.free)
	if h.link.BytesPerSecond > 0 {
		at = at.Add(time.Duration(float64(n) / float64(h.link.BytesPerSecond) * float64(time.Second)))
	}
	h.free = at
	if h.link.Chunk > 0 {
		h.free = at.Add(max(h.link.Every, 0))
	}
	return at
}

// finish sends the end of stream, behind the bytes on their way.
func (h *half) finish(now time.Time) {
	if !h.ended() {
		h.finAt = h.arrival(now)
	}
}

// reset sends a reset, behind the bytes on their way.
func (h *half) reset(now time.Time) {
	if h.rstAt.IsZero() {
		h.rstAt = h.arrival(now)
	}
}

// shutReceiver makes the receiver deaf.
func (h *half) shutReceiver() {
	h.deaf = true
	h.queue, h.queued = nil, 0
}

// leaveReceiver makes the receiver gone. Bytes it has not read, now or later, are answered with a reset.
func (h *half) leaveReceiver(now time.Time) {
	h.orphan, h.deaf = true, false
	h.bounce(now)
}

// bounce answers bytes sent to a receiver that is gone. They go on filling the window: nobody acknowledges them.
func (h *half) bounce(now time.Time) {
	if !h.orphan || len(h.queue) == 0 || h.held {
		return
	}
	h.back.reset(later(h.queue[0].at, now))
	h.queue = nil
}

// sever carries out the cut.
func (h *half) sever(now time.Time) {
	how := h.link.Cut.How
	h.link.Cut = Cut{}
	switch how {
	case CutFIN:
		h.finish(now)
	case CutRST:
		h.reset(now)
	case CutSilent:
		h.lose(later(now, h.last)) // the bytes before the cut still arrive
		h.back.lose(now)
		return
	}
	h.back.reset(now)
	h.back.leaveReceiver(now)
}

// hold keeps back what arrives after an instant.
func (h *half) hold(at time.Time) {
	if !h.held {
		h.held, h.heldAt = true, at
	}
}

func (h *half) release(now time.Time) {
	if h.held && !h.lost {
		h.held = false
		h.bounce(now)
	}
}

func (h *half) lose(at time.Time) {
	h.hold(at)
	h.lost = true
}
