package event

// SealedListener lets a test outside the package implement Listener without
// NopListener, so that the compiler asks it for every event.
type SealedListener struct{}

func (SealedListener) sealedListener()           {}
func (SealedListener) sealedConnectionListener() {}
