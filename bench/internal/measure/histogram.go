package measure

import (
	"math/bits"
	"time"
)

// subBits is the resolution: 1<<subBits buckets for every power of two, so that
// a quantile is off by at most 1/64 of itself.
const subBits = 6

// Histogram counts durations in buckets that grow with them, without allocating.
// The zero value is empty. Not safe for concurrent use: each caller has one.
type Histogram struct {
	n      int64
	counts [(64 - subBits + 1) << subBits]int64
}

// Add counts d; a negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucket(uint64(max(d, 0)))]++
	h.n++
}

// Count is how many were added.
func (h *Histogram) Count() int64 { return h.n }

// Merge adds what other counted.
func (h *Histogram) Merge(other *Histogram) {
	h.n += other.n
	for i, c := range other.counts {
		h.counts[i] += c
	}
}

// Quantile is the duration that a share of q, between 0 and 1, doesn't exceed;
// 0 where nothing was added.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := max(int64(q*float64(h.n)+0.5), 1)
	for i, c := range h.counts {
		if rank -= c; rank <= 0 {
			return time.Duration(middle(i))
		}
	}
	return 0 // not reached: the counts add up to n
}

// bucket is v's place: the first 1<<subBits values have one each, then every
// power of two is cut into 1<<subBits.
func bucket(v uint64) int {
	shift := max(bits.Len64(v)-subBits-1, 0)
	return shift<<subBits + int(v>>shift)
}

// middle is the value in the middle of bucket i.
func middle(i int) uint64 {
	if i < 2<<subBits {
		return uint64(i)
	}
	shift := i>>subBits - 1
	low := uint64(i-shift<<subBits) << shift
	return low + 1<<shift/2
}
