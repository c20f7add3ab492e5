package auth

// WithCnonce lets a Digest use one cnonce, as the examples of the RFCs do.
func WithCnonce(a Authenticator, cnonce string) Authenticator {
	a.(*digest).cnonce = func() string { return cnonce }
	return a
}

// DigestRealms is how many realms a Digest remembers.
func DigestRealms(a Authenticator) int {
	d := a.(*digest)
	d.nonces.mu.Lock()
	defer d.nonces.mu.Unlock()
	return len(d.nonces.realms.entries)
}

// StoreSpaces is how many origins and proxies a Store remembers.
func StoreSpaces(p Preemptive) int {
	s := p.(*store)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.realms.entries)
}

// StoreRealms is how many realms a Store remembers of one origin at most.
func StoreRealms(p Preemptive) int {
	s := p.(*store)
	s.mu.Lock()
	defer s.mu.Unlock()
	most := 0
	for _, known := range s.realms.entries {
		most = max(most, len(known.value))
	}
	return most
}
