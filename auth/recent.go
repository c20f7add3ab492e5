package auth

// recent is a map that is bounded by forgetting what has not been used for longest. The zero value is
// empty. It has no lock of its own.
type recent[K comparable, V any] struct {
	clock   uint64 // counts uses
	entries map[K]*recentEntry[V]
}

type recentEntry[V any] struct {
	used  uint64 // the clock at the last use
	value V
}

// use finds the value of key; nil if there is none.
func (r *recent[K, V]) use(key K) *V {
	e := r.entries[key]
	if e == nil {
		return nil
	}
	r.clock++
	e.used = r.clock
	return &e.value
}

// useOrAdd finds the value of key, or adds a zero one for which another is forgotten where there are most
// already.
func (r *recent[K, V]) useOrAdd(key K, most int) *V {
	if known := r.use(key); known != nil {
		return known
	}
	if r.entries == nil {
		r.entries = make(map[K]*recentEntry[V])
	}
	if len(r.entries) >= most {
		r.forgetOldest()
	}
	r.entries[key] = &recentEntry[V]{}
	return r.use(key)
}

func (r *recent[K, V]) forget(key K) { delete(r.entries, key) }

func (r *recent[K, V]) forgetOldest() {
	var oldest K
	used := r.clock + 1
	for key, e := range r.entries {
		if e.used < used {
			oldest, used = key, e.used
		}
	}
	r.forget(oldest)
}
