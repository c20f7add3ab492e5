package auth

import "sync"

const (
	maxDigestRealms = 256 // realms of all origins and proxies that one Digest knows
	maxRealmNonces  = 4   // nonces of one realm: servers behind a balancer have one each
)

// digestNonces counts the uses of the servers' nonces. A realm's memory is lost when too many others came
// after it; its server then sends a challenge as it does to a stranger.
type digestNonces struct {
	mu     sync.Mutex // guards the fields below
	clock  uint64
	realms map[digestRealm]*realmNonces
}

type digestRealm struct {
	space space
	realm string
}

// realmNonces are a realm's nonces, that of the last challenge first.
type realmNonces struct {
	used   uint64 // the clock at the last use
	nonces []*digestNonce
}

// digestNonce is a challenge that was answered, and how often.
type digestNonce struct {
	challenge digestChallenge
	first     firstNonces
	count     uint32
}

// answer uses the nonce of a challenge that was just received once more.
func (n *digestNonces) answer(to space, c digestChallenge, cnonce string) digestNonce {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.realm(digestRealm{to, c.realm})
	for i, known := range r.nonces {
		if known.challenge.nonce == c.nonce && known.challenge.algorithm == c.algorithm {
			known.challenge = c
			copy(r.nonces[1:i+1], r.nonces[:i])
			r.nonces[0] = known
			known.count++
			return *known
		}
	}
	fresh := &digestNonce{challenge: c, first: firstNonces{c.nonce, cnonce}, count: 1}
	r.push(fresh)
	return *fresh
}

// again uses the newest nonce of a realm once more; false if there is none.
func (n *digestNonces) again(to space, realm string) (digestNonce, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.realms[digestRealm{to, realm}]
	if r == nil {
		return digestNonce{}, false
	}
	n.clock++
	r.used = n.clock
	newest := r.nonces[0]
	newest.count++
	return *newest, true
}

// replace lets next follow the nonce used, if that is still the newest one (RFC 7616 section 3.5,
// nextnonce). The key of an algorithm with "-sess" stays what it was.
func (n *digestNonces) replace(to space, realm, used, next string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.realms[digestRealm{to, realm}]
	if r == nil || r.nonces[0].challenge.nonce != used || used == next {
		return
	}
	fresh := &digestNonce{challenge: r.nonces[0].challenge, first: r.nonces[0].first}
	if fresh.challenge.nonce = next; fresh.challenge.sendable() {
		r.push(fresh)
	}
}

// realm finds or makes the memory of a realm. The caller pushes a nonce into a new one.
func (n *digestNonces) realm(key digestRealm) *realmNonces {
	n.clock++
	r := n.realms[key]
	if r == nil {
		if n.realms == nil {
			n.realms = make(map[digestRealm]*realmNonces)
		}
		if len(n.realms) >= maxDigestRealms {
			n.forgetOldest()
		}
		r = &realmNonces{}
		n.realms[key] = r
	}
	r.used = n.clock
	return r
}

func (n *digestNonces) forgetOldest() {
	var oldest digestRealm
	used := n.clock + 1
	for key, r := range n.realms {
		if r.used < used {
			oldest, used = key, r.used
		}
	}
	delete(n.realms, oldest)
}

func (r *realmNonces) push(fresh *digestNonce) {
	r.nonces = append([]*digestNonce{fresh}, r.nonces...)
	if len(r.nonces) > maxRealmNonces {
		r.nonces = r.nonces[:maxRealmNonces]
	}
}
