package event

// SealedListener lets a test outside the package implement Listener without
// NopListener, so that the compiler asks it for every event.
type SealedListener struct{}

//lint:ignore U1000 it completes the interface
func (SealedListener) sealedListener() {}

//lint:ignore U1000 it completes the interface
func (SealedListener) sealedConnectionListener() {}
