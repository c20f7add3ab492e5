package auth

import "sync"

const (
	maxDigestRealms = 256 // realms of all origins and proxies that one Digest knows
	maxRealmNonces  = 4   // nonces of one realm: servers behind a balancer have one each
)

// digestNonces counts the uses of the servers' nonces. A realm's memory is lost when too many others came
// after it; its server then sends a challenge as it does to a stranger.
type digestNonces struct {
	mu     sync.Mutex // guards realms
	realms recent[digestRealm, realmNonces]
}

type digestRealm struct {
	space space
	realm string
}

// realmNonces are a realm's nonces, that of the last challenge first. There is one at least.
type realmNonces []*digestNonce

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
	r := n.realms.useOrAdd(digestRealm{to, c.realm}, maxDigestRealms)
	for i, known := range *r {
		if known.challenge.nonce == c.nonce && known.challenge.algorithm == c.algorithm {
			known.challenge = c
			copy((*r)[1:i+1], (*r)[:i])
			(*r)[0] = known
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
	r := n.realms.use(digestRealm{to, realm})
	if r == nil {
		return digestNonce{}, false
	}
	newest := (*r)[0]
	newest.count++
	return *newest, true
}

// replace lets next follow the nonce used, if that is still the newest one (RFC 7616 section 3.5,
// nextnonce). The key of an algorithm with "-sess" stays what it was.
func (n *digestNonces) replace(to space, realm, used, next string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.realms.use(digestRealm{to, realm})
	if r == nil || (*r)[0].challenge.nonce != used || used == next {
		return
	}
	newest := (*r)[0]
	fresh := &digestNonce{challenge: newest.challenge, first: newest.first}
	if fresh.challenge.nonce = next; fresh.challenge.sendable() {
		r.push(fresh)
	}
}

func (r *realmNonces) push(fresh *digestNonce) {
	*r = append(realmNonces{fresh}, *r...)
	if len(*r) > maxRealmNonces {
		*r = (*r)[:maxRealmNonces]
	}
}
