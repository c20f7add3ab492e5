package http2

import (
	"sync"
	"sync/atomic"
)

const (
	// smallChunk is what an idle connection reads into, largeChunk a busy one.
	smallChunk = 1 << 10
	largeChunk = 64 << 10
)

// A chunk is a piece of memory that the socket is read into and that bodies are
// read from: what arrives is handed over without a copy. It goes back to its
// pool when nobody refers to it any more.
type chunk struct {
	b    []byte
	refs atomic.Int32
	// pinned counts the bytes of chunks that bodies hold, of one connection. It
	// is nil until a body refers to this one; set by the reading goroutine.
	pinned *atomic.Int64
}

var (
	smallChunks = sync.Pool{New: func() any { return &chunk{b: make([]byte, smallChunk)} }}
	largeChunks = sync.Pool{New: func() any { return &chunk{b: make([]byte, largeChunk)} }}
)

// newChunk takes a chunk, with one reference.
func newChunk(large bool) *chunk {
	pool := &smallChunks
	if large {
		pool = &largeChunks
	}
	k := pool.Get().(*chunk)
	k.refs.Store(1)
	return k
}

// pin counts the chunk, once: bodies of c hold it.
func (k *chunk) pin(c *Conn) {
	if k.pinned == nil {
		k.pinned = &c.pinned
		c.pinned.Add(int64(len(k.b)))
	}
}

// release drops one reference.
func (k *chunk) release() {
	if k.refs.Add(-1) > 0 {
		return
	}
	if k.pinned != nil {
		k.pinned.Add(-int64(len(k.b)))
		k.pinned = nil
	}
	if len(k.b) == largeChunk {
		largeChunks.Put(k)
	} else {
		smallChunks.Put(k)
	}
}

// A segment is a part of a body in a chunk. It holds a reference.
type segment struct {
	k    *chunk
	r, w int32
	// own is true where the chunk serves this body alone, so that what arrives
	// next may be added to it.
	own bool
}

func (g *segment) bytes() []byte { return g.k.b[g.r:g.w] }
